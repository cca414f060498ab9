"""Torn files are found, and moved away on request."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from router_spark.errors import BadInput
from router_spark.periods import Period
from router_spark.validating import all_sequences, check_files, move_away, torn_files
from router_telemetry.schema import EVENTS, FLOWS

from support.pipeline.rows import tuples
from support.pipeline.telemetry import START_US, table, write

pytestmark = pytest.mark.spark


def events(*numbers: int, version: int = 1) -> pa.Table:
    """Rows with these sequence numbers."""
    values = {
        "schema_version": version,
        "router": "r",
        "router_epoch": 1,
        "time": START_US,
        "seq": pa.array(numbers, pa.int64()),
    }
    values["time"] = pa.array([START_US] * len(numbers), pa.int64())
    return table(EVENTS, len(numbers), values)


def test_torn_files_and_lost_rows(spark: SparkSession, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    write(lake, EVENTS, events(1, 2, 5))
    whole = write(lake, EVENTS, events(6), 2)
    newer = write(lake, EVENTS, events(7, version=2), 4)
    torn = whole.with_name("events-r-1-3.parquet")
    torn.write_bytes(whole.read_bytes()[:-20])
    checked = check_files(lake, Period())
    found = {(dataset, file) for dataset, file, _ in tuples(torn_files(spark, checked))}
    assert found == {("events", str(torn)), ("events", str(newer))}
    assert tuples(all_sequences(spark, checked)) == [("events", "r", 1, 4, 1, 6, 2, 0)]

    (moved,) = [
        move_away(each, lake, tmp_path / "bad") for each in checked[0].torn if each.path == torn
    ]
    assert moved.relative_to(tmp_path / "bad") == torn.relative_to(lake)
    assert moved.is_file()
    assert not torn.exists()
    torn.write_text("again")
    with pytest.raises(BadInput, match="exists already"):
        move_away(checked[0].torn[0], lake, tmp_path / "bad")


def test_a_folder_without_datasets(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="has none of the folders flows, deliveries, events"):
        check_files(tmp_path, Period())
    (tmp_path / FLOWS.name).mkdir()
    assert [each.whole for each in check_files(tmp_path, Period())] == [[]]
