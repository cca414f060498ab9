"""Jobs as streams: exact to the row, whatever comes when, twice, late or torn."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession, functions as sf
from router_spark.errors import BadInput
from router_spark.streaming import Stream, hour_rows, start
from router_telemetry.files import Files
from router_telemetry.rows import US, Rows
from router_telemetry.schema import FLOWS

from support.pipeline.worlds import START

pytestmark = pytest.mark.spark

EPOCH = 1_700_000_000_000_000


def counts(flows: DataFrame) -> Mapping[str, DataFrame]:
    """How many rows there are of each address, and how many deliveries."""
    return {
        "counts": flows.groupBy("address").agg(
            sf.count("*").alias("rows"), sf.sum("deliveries").alias("deliveries")
        )
    }


class Lake:
    """Files as one router writes them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._rows = Rows(FLOWS, "r", EPOCH, 10_000)
        self._files = Files(directory, "r", EPOCH)

    def write(self, hours: float, *deliveries: int) -> Path:
        """Write a file with rows of so many hours after START."""
        time = round((START + timedelta(hours=hours)).timestamp() * US)
        for count in deliveries:
            self._rows.add(interval_start=time, address="q", deliveries=count)
        (batch,) = self._rows.take()
        return self._files.write(batch)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Create a lake to which no router has written yet."""
    (tmp_path / "in" / "flows").mkdir(parents=True)
    return Lake(tmp_path / "in")


def streamed(spark: SparkSession, lake: Lake, files: int = 1000) -> dict[str, tuple[int, int]]:
    """Read what is there; return rows and deliveries of each hour, as they are in the table."""
    out = lake.directory.parent / "out"
    stream = Stream(lake.directory, out, FLOWS, counts, files)
    start(spark, stream).awaitTermination()
    if not (out / "counts").exists():
        return {}
    found = spark.read.parquet(str(out / "counts")).collect()
    return {str(row["hour"]): (row["rows"], row["deliveries"]) for row in found}


def hour(number: int) -> str:
    """Return the name of the hour that is `number` hours after START."""
    return (START + timedelta(hours=number)).strftime("%Y-%m-%dT%H")


def test_a_stream_that_is_restarted_goes_on(spark: SparkSession, lake: Lake) -> None:
    assert streamed(spark, lake) == {}
    lake.write(0, 1, 2)
    lake.write(1, 4)
    first = {hour(0): (2, 3), hour(1): (1, 4)}
    assert streamed(spark, lake) == first
    # nothing new
    assert streamed(spark, lake) == first
    lake.write(1.2, 8)
    lake.write(2, 16)
    assert streamed(spark, lake) == {**first, hour(1): (2, 12), hour(2): (1, 16)}


def test_many_batches_are_as_one(spark: SparkSession, lake: Lake) -> None:
    for number in range(4):
        lake.write(number / 3, 2**number)
    assert streamed(spark, lake, files=1) == {hour(0): (3, 7), hour(1): (1, 8)}


def test_late_rows_and_files_that_come_twice(spark: SparkSession, lake: Lake) -> None:
    first = lake.write(0, 1)
    lake.write(30, 2)
    streamed(spark, lake)
    shutil.copy(first, first.with_name("copy.parquet"))
    assert streamed(spark, lake) == {hour(0): (1, 1), hour(30): (1, 2)}
    # more than a day late
    lake.write(0.1, 4)
    assert streamed(spark, lake) == {hour(0): (2, 5), hour(30): (1, 2)}


def test_files_that_have_only_some_rows_in_common(spark: SparkSession, lake: Lake) -> None:
    first = lake.write(0, 1, 2)
    second = lake.write(0.1, 4)
    lake.write(0.2, 8)
    both = pa.concat_tables([pq.read_table(each, partitioning=None) for each in (first, second)])
    pq.write_table(both, first.with_name("both.parquet"))
    assert streamed(spark, lake) == {hour(0): (4, 15)}
    rows = hour_rows(Stream(lake.directory, lake.directory, FLOWS, counts), spark, START)
    assert sorted(row["seq"] for row in rows.collect()) == [1, 2, 3, 4]


def test_files_that_are_not_finished_are_not_read(spark: SparkSession, lake: Lake) -> None:
    whole = lake.write(0, 1)
    whole.with_name(".flows-r-2.parquet.part").write_bytes(b"half of it")
    whole.with_name("_flows-r-3.parquet").write_bytes(b"half of it")
    assert streamed(spark, lake) == {hour(0): (1, 1)}


def test_a_torn_file_ends_the_stream_until_it_is_moved_away(
    spark: SparkSession, lake: Lake
) -> None:
    lake.write(0, 1)
    streamed(spark, lake)
    torn = lake.write(1, 2)
    torn.write_bytes(torn.read_bytes()[:-20])
    lake.write(1, 4)
    lake.write(2, 8)
    with pytest.raises(StreamingQueryException, match=torn.name):
        streamed(spark, lake)
    torn.unlink()
    assert streamed(spark, lake) == {hour(0): (1, 1), hour(1): (1, 4), hour(2): (1, 8)}


def test_an_hour_ends_where_the_next_begins(spark: SparkSession, lake: Lake) -> None:
    lake.write(0.999_999_9, 1)
    lake.write(1, 2)
    stream = Stream(lake.directory, lake.directory, FLOWS, counts)
    (row,) = hour_rows(stream, spark, START).collect()
    assert row["deliveries"] == 1
    assert isinstance(row["interval_start"], datetime)


def test_without_a_folder_there_is_nothing_to_stream(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="has no folder flows"):
        start(spark, Stream(tmp_path, tmp_path / "out", FLOWS, counts))
