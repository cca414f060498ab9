"""The stream with deduplication: files come a few at a time, some of them twice."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Final

import attrs
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from router_spark.jobs import losses
from router_spark.streaming import Stream, start
from router_telemetry.schema import DELIVERIES

from bench.pipeline.batch import must_be_right
from bench.pipeline.timing import Measured, measured, say, watch

from support.pipeline.answers import answers
from support.pipeline.checks import differences
from support.pipeline.crowds import ROUTERS, crowd
from support.pipeline.telemetry import write_world

HOURS: Final = 1.0
EVERY: Final = 10
"""So many files come once for one that comes again under another name."""

BATCHES: Final = 10


@attrs.frozen
class Streamed:
    """Size of the input. Rows of files that came again count, since they are read like others."""

    rows: int
    files: int
    duplicates: int


def arrange(folder: Path, rows: int) -> Streamed:
    """Write an hour of telemetry, some ten files for each router, and repeat a few of them."""
    world = crowd(rows, hours=HOURS)
    write_world(folder, world, rows_per_file=max(1, rows // (BATCHES * ROUTERS)))
    files = sorted((folder / DELIVERIES.name).glob("dt=*/*/*.parquet"))
    again = files[::EVERY]
    for path in again:
        os.link(path, path.with_name(f"copy-of-{path.name}"))
    _let_come_in_turn(files)
    counts = [pq.read_metadata(path).num_rows for path in (*files, *again)]
    return Streamed(sum(counts), len(counts), len(again))


def _let_come_in_turn(files: list[Path]) -> None:
    """Give files the times at which routers would have written them: Spark takes the oldest first.

    A file that came again is the same one, so that it comes at the same time.
    """
    for path in files:
        number = int(path.stem.rsplit("-", 1)[1])
        os.utime(path, (number, number))


def run_stream(spark: SparkSession, folder: Path, rows: int, repeats: int) -> Measured:
    """Stream `losses` in batches, and check that each row was counted once."""
    came = arrange(folder / "lake", rows)
    say(f"stream: {came.rows:,} rows in {came.files} files, {came.duplicates} of them again")
    out = folder / "out"
    stream = Stream(
        folder / "lake",
        out,
        DELIVERIES,
        lambda rows: {"losses": losses.losses(rows)},
        files=-(-came.files // BATCHES),
    )
    times = []
    for repeat in range(1 + repeats):
        shutil.rmtree(out, ignore_errors=True)
        with watch() as taken:
            start(spark, stream).awaitTermination()
        times.append(taken.taken_s)
        say(f"stream, run {repeat + 1}: {came.rows / taken.taken_s / 1e3:.1f} k rows/s")
    must_be_right("stream", check_stream(out, rows))
    return measured("stream", came.rows, times)


def check_stream(out: Path, rows: int) -> list[str]:
    """Compare the losses of all hours with those that were planted."""
    names = ("outcome", "decided_by", "reason", "router", "link", "next_container")
    table = pa.concat_tables(
        [pq.read_table(each, partitioning=None) for each in sorted((out / "losses").glob("hour=*"))]
    )
    counted = table.group_by(list(names)).aggregate([("sampled", "sum")])
    found = {tuple(row[name] for name in names): row["sampled_sum"] for row in counted.to_pylist()}
    return differences("loss", found, answers(crowd(rows, hours=HOURS)).losses)
