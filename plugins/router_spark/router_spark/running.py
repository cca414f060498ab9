"""Run a job: read, compute, write, and report progress on stderr."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Concatenate, ParamSpec

import attrs
import click
from pyspark.sql import DataFrame, SparkSession
from router_telemetry.schema import Dataset

from router_spark.periods import Period, parse_period
from router_spark.reading import checked_files, read_rows
from router_spark.session import SessionSettings, spark_session
from router_spark.writing import check_out, format_table, write_table

Tables = Mapping[str, DataFrame]
"""Result of a job: tables by name."""

P = ParamSpec("P")


@attrs.frozen
class Run:
    """Options common to all jobs: input, output, and how to start Spark."""

    directory: Path
    period: Period
    out: Path | None
    overwrite: bool
    rows: int
    session: SessionSettings


def say(text: str) -> None:
    """Print a line on stderr, to report progress."""
    click.echo(text, err=True)


def run_job(
    run: Run,
    name: str,
    datasets: tuple[Dataset, ...],
    compute: Callable[..., Tables],
    *,
    read: Period | None = None,
) -> None:
    """Read the datasets, call `compute` with their DataFrames, and write or print its tables.

    `read` is the period to read, if it is longer than the period of the run. Raises BadInput if
    options or files are invalid, and JobFailed if Spark fails.
    """
    check_out(run.out, overwrite=run.overwrite)
    period = run.period if read is None else read
    files = {each.name: checked_files(run.directory, each, period) for each in datasets}
    for dataset, found in files.items():
        rows = sum(each.rows for each in found)
        say(f"{dataset}: {rows:,} rows in {len(found):,} files, {run.period}")
    say(f"starting Spark at {run.session.master}")
    with spark_session(name, run.session) as spark:
        frames = [read_rows(spark, files[each.name], each, period) for each in datasets]
        write_or_print(run, name, lambda: compute(*frames))


def write_or_print(run: Run, name: str, compute: Callable[[], Tables]) -> None:
    """Compute the tables of a job, and write or print them."""
    began = time.monotonic()
    say(f"running {name}")
    for table, frame in compute().items():
        if run.out is None:
            click.echo(f"{table}:\n{format_table(frame, run.rows)}\n")
        else:
            say(f"wrote {write_table(frame, run.out, table)}")
    say(f"{name}: done in {time.monotonic() - began:.1f} s")


def with_session(run: Run, name: str, compute: Callable[[SparkSession], Tables]) -> None:
    """Start Spark, and run a job that reads its own input."""
    say(f"starting Spark at {run.session.master}")
    with spark_session(name, run.session) as spark:
        write_or_print(run, name, lambda: compute(spark))


def session_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add Spark's options to a command, which gets `SessionSettings` as its first argument."""

    @click.option("--master", default="local[2]", show_default=True, help="The Spark master.")
    @click.option("--memory", default="4g", show_default=True, help="Memory of Spark's driver.")
    @click.option(
        "--shuffle-partitions",
        default=8,
        show_default=True,
        type=click.IntRange(1),
        help="Number of shuffle partitions: 2 to 4 for each core.",
    )
    @click.option("--verbose", is_flag=True, help="Show Spark's log.")
    @functools.wraps(command)
    def wrapper(
        master: str,
        memory: str,
        shuffle_partitions: int,
        verbose: bool,
        **options: object,
    ) -> None:
        session = SessionSettings(master, memory, shuffle_partitions, quiet=not verbose)
        command(session, **options)

    return wrapper


def run_options(command: Callable[Concatenate[Run, P], None]) -> Callable[..., None]:
    """Add the options of all jobs to a command, which gets them as a `Run`, its first argument."""

    @click.argument("directory", type=click.Path(path_type=Path))
    @click.option("--from", "start", metavar="TIME", help="Start of the period (ISO 8601, UTC).")
    @click.option("--to", "end", metavar="TIME", help="End of the period (ISO 8601, UTC).")
    @click.option("--out", type=click.Path(path_type=Path), help="Write Parquet to this folder.")
    @click.option("--overwrite", is_flag=True, help="Replace the content of --out.")
    @click.option(
        "--rows", default=20, show_default=True, type=click.IntRange(1), help="Rows to print."
    )
    @session_options
    @functools.wraps(command)
    def wrapper(
        session: SessionSettings,
        directory: Path,
        start: str | None,
        end: str | None,
        out: Path | None,
        overwrite: bool,
        rows: int,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> None:
        run = Run(directory, parse_period(start, end), out, overwrite, rows, session)
        command(run, *args, **kwargs)

    return wrapper
