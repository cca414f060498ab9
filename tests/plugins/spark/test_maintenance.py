"""The commands stream, compact and register."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from plugins.spark.test_compacting import write
from router_spark.cli import main
from router_spark.maintenance import JOBS
from router_telemetry.schema import DATASETS

pytestmark = pytest.mark.spark

DAY = date(2026, 11, 24)


def invoked(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(each) for each in arguments])


def refused(*arguments: str | Path) -> str:
    """Run a command that must be refused; return what it says last."""
    done = invoked(*arguments)
    assert done.exit_code == 2
    assert "Traceback" not in done.stderr
    return done.stderr.splitlines()[-1]


def test_past_days_are_compacted(tmp_path: Path) -> None:
    write(tmp_path, "a", DAY, DAY)
    done = invoked("compact", tmp_path)
    assert done.exit_code == 0
    assert "4 rows of 2 files" in done.stderr
    assert done.stderr.endswith("compact: done, 1 folders\n")


def test_what_cannot_be_compacted(tmp_path: Path) -> None:
    assert "not a day, such as 2026-11-25" in refused("compact", tmp_path, "--before", "soon")
    tomorrow = datetime.now(UTC).date() + timedelta(days=1)
    assert "is in the future" in refused("compact", tmp_path, "--before", str(tomorrow))


def test_files_are_registered(tmp_path: Path) -> None:
    write(tmp_path / "lake", "a", DAY)
    (tmp_path / "warehouse").mkdir()
    properties = {
        "type": "sql",
        "uri": f"sqlite:///{tmp_path}/catalog.db",
        "warehouse": f"file://{tmp_path}/warehouse",
    }
    options = [f"--property={name}={value}" for name, value in properties.items()]
    done = invoked("register", tmp_path / "lake", *options)
    assert done.exit_code == 0, done.output
    assert done.stderr == "telemetry.flows: 1 files added, 2 rows\n"


def test_what_cannot_be_registered(tmp_path: Path) -> None:
    assert "uri: not NAME=VALUE" in refused("register", tmp_path, "--property", "uri")
    assert "has none of the folders flows, " in refused("register", tmp_path)


def test_what_cannot_be_streamed(tmp_path: Path) -> None:
    assert "'losses'" in refused("stream", "all", tmp_path, "--out", tmp_path / "out")
    assert "Missing option '--out'" in refused("stream", "losses", tmp_path)


def test_each_job_that_is_streamed_reads_a_dataset() -> None:
    assert {each.dataset for each in JOBS.values()} == set(DATASETS)
