"""Reading: the newest schema, or one line that says why not."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path

import attrs
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import Row, SparkSession
from router_spark.errors import BadInput
from router_spark.periods import Period
from router_spark.reading import (
    GREATEST,
    checked_files,
    read_files,
    read_rows,
    spark_schema,
    within_period,
)
from router_telemetry.schema import DATASETS, DELIVERIES, FLOWS, Column

from support.pipeline.telemetry import START_US, table, write
from support.pipeline.worlds import START

pytestmark = pytest.mark.spark

WHOLE = Period()
DAY_US = 24 * 3_600_000_000
NEWER = attrs.evolve(FLOWS, columns=(*FLOWS.columns, Column("octets", pa.int64(), "Octets.", 2)))


def some_flows(*times_us: int, version: int = 1) -> pa.Table:
    """Rows at these times after START."""
    values = {
        "schema_version": version,
        "router": "r",
        "router_epoch": 1,
        "seq": pa.array(range(1, len(times_us) + 1), pa.int64()),
        "interval_start": pa.array([START_US + each for each in times_us], pa.int64()),
    }
    return table(FLOWS, len(times_us), values)


def test_all_columns_have_a_type_of_spark() -> None:
    for dataset in DATASETS:
        assert spark_schema(dataset).names == [column.name for column in dataset.columns]


def test_only_rows_of_the_period_are_read(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path, FLOWS, some_flows(0, 10, 20))
    write(tmp_path, FLOWS, some_flows(DAY_US))
    (tmp_path / "flows/dt=2026-11-25/router_id=r/.flows-r-1-2.parquet.part").write_text("torn")
    whole = Period()
    assert read_files(spark, checked_files(tmp_path, FLOWS, whole), FLOWS).count() == 4
    part = Period(START + timedelta(microseconds=10), START + timedelta(microseconds=20))
    files = checked_files(tmp_path, FLOWS, part)
    assert [each.rows for each in files] == [3]
    rows = within_period(read_files(spark, files, FLOWS), FLOWS, part)
    assert [row["seq"] for row in rows.collect()] == [2]


def deliveries(*hops: int, first: int = 1) -> pa.Table:
    """Rows with these hops, numbered from `first` on."""
    values = {
        "schema_version": 1,
        "router": "r",
        "router_epoch": 1,
        "seq": pa.array(range(first, first + len(hops)), pa.int64()),
        "arrived": pa.array([START_US] * len(hops), pa.int64()),
        "hop": pa.array(hops, pa.int16()),
    }
    return table(DELIVERIES, len(hops), values)


def test_the_greatest_hop_is_known_if_all_files_have_its_limits(
    spark: SparkSession, tmp_path: Path
) -> None:
    def greatest() -> object:
        files = checked_files(tmp_path, DELIVERIES, Period())
        return read_files(spark, files, DELIVERIES).schema["hop"].metadata.get(GREATEST)

    write(tmp_path, DELIVERIES, deliveries(1, 3))
    assert greatest() == 3
    write(tmp_path, DELIVERIES, deliveries(2, 5, 4), 2)
    assert greatest() == 5
    other = write(tmp_path, DELIVERIES, deliveries(7), 3)
    # as an older release has written it
    limits = [name for name in DELIVERIES.arrow_schema().names if name != "hop"]
    pq.write_table(pq.ParquetFile(other).read(), other, write_statistics=limits)
    assert greatest() is None


def test_the_greatest_hop_is_that_of_all_files_also_if_some_have_rows_in_common(
    spark: SparkSession, tmp_path: Path
) -> None:
    write(tmp_path, DELIVERIES, deliveries(1, 1, first=10))
    write(tmp_path, DELIVERIES, deliveries(1, 4), 2)
    write(tmp_path, DELIVERIES, deliveries(1, 4, 2), 3)
    files = checked_files(tmp_path, DELIVERIES, Period())
    rows = read_rows(spark, files, DELIVERIES, Period())
    assert rows.schema["hop"].metadata == {GREATEST: 4}
    assert rows.count() == 5


def test_each_row_is_read_once(spark: SparkSession, tmp_path: Path) -> None:
    first = write(tmp_path, FLOWS, some_flows(0, 10))
    shutil.copy(first, first.with_name("copy.parquet"))
    third = some_flows(0, 10, 20)
    assert [row["seq"] for row in rows_of(spark, tmp_path)] == [1, 2]
    write(tmp_path, FLOWS, third, 3)
    assert [row["seq"] for row in rows_of(spark, tmp_path)] == [1, 2, 3]
    end = START + timedelta(microseconds=15)
    assert [row["seq"] for row in rows_of(spark, tmp_path, Period(end=end))] == [1, 2]


def rows_of(spark: SparkSession, directory: Path, period: Period = WHOLE) -> list[Row]:
    """Return the flows of a period in order, as a job reads them."""
    files = checked_files(directory, FLOWS, period)
    return read_rows(spark, files, FLOWS, period).orderBy("seq").collect()


def test_columns_that_an_older_file_lacks_are_null(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path, FLOWS, some_flows(0))
    newer = some_flows(1, version=2).append_column("octets", pa.array([7], pa.int64()))
    write(tmp_path, NEWER, newer, 2)
    files = checked_files(tmp_path, NEWER, Period(), newest=2)
    rows = read_files(spark, files, NEWER).select("schema_version", "octets").collect()
    assert sorted((row[0], row[1]) for row in rows) == [(1, None), (2, 7)]


def wrong_folders(folder: Path, kind: str) -> None:
    """Make a folder that cannot be read."""
    match kind:
        case "has no folder flows":
            pass
        case "is not named as a day":
            (folder / "flows" / "dt=today").mkdir(parents=True)
        case "has no rows from the beginning to now":
            (folder / "flows" / "dt=2026-11-25").mkdir(parents=True)
        case "magic bytes":
            write(folder, FLOWS, some_flows(0)).write_text("torn" * 10)
        case "lacks the column role of flows":
            path = write(folder, FLOWS, some_flows(0))
            pq.write_table(some_flows(0).drop_columns(["role"]), path)
        case "column role is of type int64, not string":
            path = write(folder, FLOWS, some_flows(0))
            rows = some_flows(0)
            index = rows.schema.get_field_index("role")
            pq.write_table(rows.set_column(index, "role", pa.array([1], pa.int64())), path)
        case "has version 2 of the schema; this release reads up to version 1":
            write(folder, FLOWS, some_flows(0, version=2))
        case _:
            path = write(folder, FLOWS, some_flows(0))
            pq.write_table(some_flows(0).drop_columns(["schema_version"]), path)


@pytest.mark.parametrize(
    "kind",
    [
        "has no folder flows",
        "is not named as a day",
        "has no rows from the beginning to now",
        "magic bytes",
        "lacks the column role of flows",
        "column role is of type int64, not string",
        "has version 2 of the schema; this release reads up to version 1",
        "has no column schema_version",
    ],
)
def test_what_cannot_be_read_is_told_in_one_line(tmp_path: Path, kind: str) -> None:
    wrong_folders(tmp_path, kind)
    with pytest.raises(BadInput) as told:
        checked_files(tmp_path, FLOWS, Period())
    assert kind in told.value.message
    assert str(tmp_path) in told.value.message
    assert "\n" not in told.value.message
    assert told.value.exit_code == 2
