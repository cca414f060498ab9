"""The command line, as far as it goes without Spark: one line on stderr, and exit code 2."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from router_spark.cli import main
from router_spark.commands import COMMANDS
from router_telemetry.schema import FLOWS

from support.pipeline.telemetry import write_world
from support.pipeline.worlds import Stream, World, line_of

pytestmark = pytest.mark.spark


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Flows and deliveries of one stream."""
    lines, clients = line_of("A B", s="A", x="B")
    folder = tmp_path / "lake"
    write_world(folder, World(lines, clients, (Stream("s", "a", "x", 10),)))
    return folder


def refused(*arguments: str | Path) -> str:
    """Run a command that must be refused; return what it says last."""
    done = CliRunner().invoke(main, [str(each) for each in arguments])
    assert done.exit_code == 2
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    return done.stderr.splitlines()[-1]


def test_each_job_is_described() -> None:
    told = CliRunner().invoke(main, ["--help"]).output
    for name in (*(each.name for each in COMMANDS), "validate", "report"):
        assert f"\n  {name} " in told


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--from", "soon"), "--from soon: not a time in ISO 8601"),
        (("--from", "2030-01-01"), "has no rows from 2030-01-01 00:00:00 to now"),
        (("--master", "sparc"), "--master sparc: not a Spark master"),
        (("--master", "spark://127.0.0.1:1"), "--master spark://127.0.0.1:1: cannot connect"),
        (("--memory", "much"), "--memory much: not an amount of memory"),
    ],
)
def test_arguments_that_make_no_sense(lake: Path, arguments: tuple[str, ...], told: str) -> None:
    assert told in refused("skew", lake, *arguments)


def test_folders_that_cannot_be_used(lake: Path, tmp_path: Path) -> None:
    assert "has no folder events" in refused("incidents", lake)
    assert "has no folder flows" in refused("skew", tmp_path / "nothing")
    assert "is not empty; --overwrite replaces" in refused("skew", lake, "--out", lake)
    (tmp_path / "file").touch()
    assert "is not a folder" in refused("skew", lake, "--out", tmp_path / "file")
    inside = refused("validate", lake, "--quarantine", lake / "bad")
    assert "is inside" in inside


def test_a_torn_file_is_named(lake: Path) -> None:
    torn = next((lake / FLOWS.name).rglob("*.parquet"))
    torn.write_text("torn" * 10)
    told = refused("skew", lake)
    assert str(torn) in told
    assert "`trioute-spark validate --quarantine FOLDER` moves them away" in told
