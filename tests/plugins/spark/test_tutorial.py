"""The tutorial's commands do what it says, line by line."""

from __future__ import annotations

import re
import shlex
from contextlib import nullcontext
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession
from router_spark.cli import main as spark_main
from router_telemetry.cli import main as telemetry_main

pytestmark = pytest.mark.spark

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "tutorial-telemetry.md").read_text(encoding="utf-8")
COMMANDS = {"trioute-spark ": spark_main, "python -m router_telemetry ": telemetry_main}


def blocks(language: str) -> list[str]:
    """Return the code blocks of the page in a language."""
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def words(line: str) -> list[str]:
    """Split a line into words, so that column widths do not matter."""
    return line.split()


def test_each_command_prints_what_the_page_says(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("router_spark.running", "router_spark.cli"):
        monkeypatch.setattr(f"{module}.spark_session", lambda *_: nullcontext(spark))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "deploy").symlink_to(ROOT / "deploy")
    ran = 0
    for block in blocks("console"):
        command, *said = block.removeprefix("$ ").splitlines()
        for prefix, program in COMMANDS.items():
            if command.startswith(prefix):
                # the process of Spark that all tests share is in another folder
                arguments = [
                    str(tmp_path / each) if each in ("records", "tables") else each
                    for each in shlex.split(command.removeprefix(prefix))
                ]
                done = CliRunner().invoke(program, arguments)
                assert done.exit_code == 0, done.stderr
                printed = [words(line) for line in (done.stdout + done.stderr).splitlines()]
                assert [line for line in said if words(line) not in printed] == [], done.stdout
                ran += 1
    assert ran == 7
    assert (tmp_path / "report.html").stat().st_size > 10_000
    (query,) = re.findall(r'"""(.*?)"""', "".join(blocks("python")), re.DOTALL)
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        rows = database.execute(query).fetchall()
    found = [
        f"| {path} | {minute:%H:%M} | {messages} | {ms:.0f} |"
        for path, minute, messages, ms in rows
    ]
    assert [row for row in found if row not in PAGE] == []
    assert len(found) == 5
