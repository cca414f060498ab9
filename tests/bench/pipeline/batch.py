"""Run each job over a lake, check its answer, and take the time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import attrs
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from router_spark.periods import Period
from router_spark.validating import check_files
from router_spark.writing import write_table

from bench.pipeline.timing import Measured, measured, say, watch

from support.pipeline.answers import Answers
from support.pipeline.checks import check_validate
from support.pipeline.damage import Damage
from support.pipeline.jobs import JOBS, validate_tables


class WrongAnswer(Exception):
    """A job has not found what was planted; the message says where it differs."""


@attrs.frozen
class Bench:
    """Context of all measurements: Spark, the lake and its answers, and a folder for tables."""

    spark: SparkSession
    lake: Path
    answers: Answers
    out: Path
    repeats: int


def must_be_right(name: str, wrong: list[str]) -> None:
    """Raise WrongAnswer if there is anything wrong."""
    if wrong:
        raise WrongAnswer(f"{name}: {'; '.join(wrong)}")


def run_job(bench: Bench, name: str) -> Measured:
    """Run a job: from the opening of its files until its tables are written as Parquet."""
    job = JOBS[name]
    times, rows = [], 0
    for repeat in range(1 + bench.repeats):
        with watch() as taken:
            files = job.files(bench.lake)
            write(job.tables(bench.spark, files, bench.answers.world), bench.out / name)
        times.append(taken.taken_s)
        rows = sum(each.rows for found in files.values() for each in found)
        say(f"{name}, run {repeat + 1}: {rows / taken.taken_s / 1e6:.2f} M rows/s")
    say(f"{name}: checking the answer")
    tables = read(bench.out / name)
    must_be_right(name, job.check(bench.answers, bench.lake, tables))
    return measured(name, rows, times)


def run_validate(bench: Bench, done: Damage) -> Measured:
    """Run `validate` over a lake that was spoiled."""
    times, rows = [], 0
    for repeat in range(1 + bench.repeats):
        with watch() as taken:
            checked = check_files(done.directory, Period())
            write(validate_tables(bench.spark, checked), bench.out / "validate")
        times.append(taken.taken_s)
        rows = sum(each.rows for found in checked for each in found.whole)
        say(f"validate, run {repeat + 1}: {rows / taken.taken_s / 1e6:.2f} M rows/s")
    must_be_right("validate", check_validate(done, read(bench.out / "validate")))
    return measured("validate", rows, times)


def write(frames: Mapping[str, DataFrame], out: Path) -> None:
    """Write tables as the commands do."""
    for name, frame in frames.items():
        write_table(frame, out, name)


def read(out: Path) -> dict[str, pa.Table]:
    """Read tables that were written."""
    return {each.name: pq.read_table(each) for each in sorted(out.iterdir()) if each.is_dir()}
