"""Run jobs as a stream: when files appear, recompute the hours of their rows.

Spark's file source finds new files, and thus the hours that have new rows. The job, the same
function as in batch, recomputes each of these hours from all files, without duplicates, and
replaces the previous result. The result of an hour therefore depends on the files alone: not on the
order of their arrival, on restarts of the stream, or on how late a row is. The stream has no state,
and needs no watermarks, which would drop late rows. (docs/decisions/0106-streams-without-state.md)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import attrs
from pyspark.sql import DataFrame, SparkSession, functions as sf
from pyspark.sql.streaming.query import StreamingQuery
from router_telemetry.schema import Dataset

from router_spark.errors import BadInput
from router_spark.footers import Footer, dataset_folder, find_files, read_footers
from router_spark.periods import Period
from router_spark.reading import read_rows, spark_schema

HOUR: Final = "%Y-%m-%dT%H"
"""Format of an hour, in UTC: `hour=2026-11-25T14` is a folder of a table."""

Job = Callable[[DataFrame], Mapping[str, DataFrame]]
"""Function that returns tables by name, from the rows of one hour."""


@attrs.frozen
class Stream:
    """Stream from a dataset in `directory`, where routers write, to tables in `out`.

    `job` is computed for each hour. A micro-batch has at most `files` new files.
    """

    directory: Path
    out: Path
    dataset: Dataset
    job: Job
    files: int = 1000

    @property
    def folder(self) -> Path:
        """Return the folder of the dataset."""
        return self.directory / self.dataset.name


def start(spark: SparkSession, stream: Stream, interval_s: float | None = None) -> StreamingQuery:
    """Start a stream; without an interval, it ends when all files have been read.

    The stream keeps its progress in the folder `_checkpoint`. Raises BadInput if the dataset has no
    folder.
    """
    folder = dataset_folder(stream.directory, stream.dataset)
    # A torn file fails the stream, with an error that names it. Spark repeats the failed batch at
    # the next start, when the torn file may have been moved away: so missing files are ignored.
    spark.conf.set("spark.sql.files.ignoreCorruptFiles", "false")
    spark.conf.set("spark.sql.files.ignoreMissingFiles", "true")
    writer = (
        spark.readStream.schema(spark_schema(stream.dataset))
        .option("maxFilesPerTrigger", stream.files)
        .option("recursiveFileLookup", "true")
        .option("pathGlobFilter", "*.parquet")
        .parquet(str(folder))
        .select(stream.dataset.time_column)
        .writeStream.foreachBatch(lambda batch, _: compute_batch(stream, batch))
        .option("checkpointLocation", str(stream.out / "_checkpoint"))
        .queryName(f"trioute {stream.dataset.name}")
    )
    if interval_s is None:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{interval_s} seconds").start()


def compute_batch(stream: Stream, batch: DataFrame) -> None:
    """Recompute each hour that has rows in a micro-batch."""
    hours = batch.select(sf.date_trunc("hour", stream.dataset.time_column).alias("hour")).distinct()
    epochs = hours.select(sf.unix_timestamp("hour").alias("hour")).orderBy("hour").collect()
    for row in epochs:
        compute_hour(stream, batch.sparkSession, datetime.fromtimestamp(row["hour"], UTC))


def compute_hour(stream: Stream, spark: SparkSession, hour: datetime) -> None:
    """Compute the tables of an hour from all files; replace this hour's folder of each table."""
    for name, table in stream.job(hour_rows(stream, spark, hour)).items():
        folder = stream.out / name / f"hour={hour.strftime(HOUR)}"
        table.write.mode("overwrite").parquet(str(folder))


def hour_rows(stream: Stream, spark: SparkSession, hour: datetime) -> DataFrame:
    """Return the rows of an hour, without duplicates. Raises BadInput if a file is unreadable."""
    period = Period(hour, hour + timedelta(hours=1))
    footers, torn = read_footers(
        find_files(stream.directory, stream.dataset, period), stream.dataset
    )
    if torn:
        raise BadInput(f"{torn[0].path}: {torn[0].reason}")
    files = [each for each in footers if _may_have_rows(each, period)]
    return read_rows(spark, files, stream.dataset, period)


def _may_have_rows(footer: Footer, period: Period) -> bool:
    if footer.earliest is None or footer.latest is None:
        return footer.rows > 0
    return period.overlaps(footer.earliest, footer.latest)
