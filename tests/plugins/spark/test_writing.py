"""Tables: written as Parquet, or printed."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from router_spark.writing import format_table, hardly_repeats, write_table

from support.pipeline.rows import at

pytestmark = pytest.mark.spark


def test_a_table_is_printed_in_columns(spark: SparkSession) -> None:
    rows = [("a", 1.5, at(0), ["x", "y"], b"\x01"), (None, None, None, None, None)]
    frame = spark.createDataFrame(
        rows, "name string, n double, time timestamp, list array<string>, id binary"
    )
    assert format_table(frame.coalesce(1), 2).splitlines() == [
        "name  n    time                 list  id",
        "----  ---  -------------------  ----  --",
        "a     1.5  2026-11-25 08:00:00  x, y  01",
        "-     -    -                    -     -",
    ]
    told = format_table(frame.coalesce(1), 1).splitlines()[-1]
    assert told == "(the first 1 rows; --rows shows more, --out writes all)"
    assert format_table(frame.where("n > 2"), 1).splitlines()[-1] == "(no rows)"


def test_ids_times_and_durations_have_no_dictionary(spark: SparkSession, tmp_path: Path) -> None:
    rows = 100 * [(b"x", at(0), 7, "router", 1)]
    columns = "id binary, arrived timestamp, settle_ns long, router string, copies int"
    frame = spark.createDataFrame(rows, columns)
    plain = ["id", "arrived", "settle_ns"]
    assert [field.name for field in frame.schema.fields if hardly_repeats(field)] == plain
    (file,) = write_table(frame.coalesce(1), tmp_path, "paths").glob("*.parquet")
    group = pq.ParquetFile(file).metadata.row_group(0)
    columns_of_file = [group.column(index) for index in range(group.num_columns)]
    assert [
        each.path_in_schema for each in columns_of_file if not each.has_dictionary_page
    ] == plain


def test_a_table_replaces_the_one_before(spark: SparkSession, tmp_path: Path) -> None:
    write_table(spark.range(3), tmp_path, "numbers")
    folder = write_table(spark.range(2), tmp_path, "numbers")
    assert folder == tmp_path / "numbers"
    assert spark.read.parquet(str(folder)).count() == 2
