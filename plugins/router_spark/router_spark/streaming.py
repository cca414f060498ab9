"""Run jobs as a stream: when files appear, compute the hours again that they have rows of.

A job of one hour is the same function as in batch. Spark's file source says which files are new,
and so which hours have got rows; each of these is computed from all files that are there, without
duplicates, and replaces what was computed before. So an hour's result depends on the files alone:
not on when or in which order they came, how often the stream was restarted, or how late a row is.
Watermarks would bound the state of a stream, and drop what is later than they allow; here there is
no state. (docs/decisions/0106-streams-without-state.md)
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

from router_spark.footers import dataset_folder
from router_spark.reading import spark_schema

IDENTITY: Final = ("router", "router_epoch", "seq")
"""The columns that tell which row it is."""

HOUR: Final = "%Y-%m-%dT%H"
"""How hours are named, in UTC: `hour=2026-11-25T14` is a folder of a table."""

Job = Callable[[DataFrame], Mapping[str, DataFrame]]
"""Returns tables by their names, of the rows of one hour."""


@attrs.frozen
class Stream:
    """What is streamed: a dataset of `directory`, where routers write, to tables in `out`.

    `job` is computed for each hour. At most `files` new files are looked at in one batch.
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
    """Start a stream; without an interval it ends when everything that is there has been read.

    How far it is, it keeps in the folder `_checkpoint`. Raises BadInput if the dataset has no
    folder.
    """
    folder = dataset_folder(stream.directory, stream.dataset)
    # A torn file ends the stream, which names it. The batch that has failed is planned, so that it
    # has to go on without the file once that has been moved away.
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
    """Compute each hour again that new rows belong to."""
    hours = batch.select(sf.date_trunc("hour", stream.dataset.time_column).alias("hour")).distinct()
    epochs = hours.select(sf.unix_timestamp("hour").alias("hour")).orderBy("hour").collect()
    for row in epochs:
        compute_hour(stream, batch.sparkSession, datetime.fromtimestamp(row["hour"], UTC))


def compute_hour(stream: Stream, spark: SparkSession, hour: datetime) -> None:
    """Compute an hour from all files that are there, and replace its part of each table."""
    for name, table in stream.job(hour_rows(stream, spark, hour)).items():
        folder = stream.out / name / f"hour={hour.strftime(HOUR)}"
        table.write.mode("overwrite").parquet(str(folder))


def hour_rows(stream: Stream, spark: SparkSession, hour: datetime) -> DataFrame:
    """Return the rows of an hour, each once."""
    time = sf.col(stream.dataset.time_column)
    day = stream.folder / f"dt={hour:%Y-%m-%d}"
    rows = (
        spark.read.schema(spark_schema(stream.dataset))
        .option("recursiveFileLookup", "true")
        .option("pathGlobFilter", "*.parquet")
        .parquet(str(day))
    )
    within = (time >= sf.lit(hour)) & (time < sf.lit(hour + timedelta(hours=1)))
    return rows.where(within).dropDuplicates(list(IDENTITY))
