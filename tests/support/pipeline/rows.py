"""Small DataFrames of telemetry, row by row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession
from router_spark.reading import spark_schema
from router_telemetry.schema import VERSION, Dataset

from support.pipeline.worlds import START


def at(seconds: float) -> datetime:
    """Return the time that is `seconds` after START."""
    return START + timedelta(seconds=seconds)


def frame(spark: SparkSession, dataset: Dataset, rows: Sequence[Mapping[str, object]]) -> DataFrame:
    """Return rows of a dataset; columns that a row does not name are null."""
    common = {"schema_version": VERSION, "router": "r", "router_epoch": 1}
    names = [column.name for column in dataset.columns]
    complete = []
    for number, row in enumerate(rows, 1):
        known = {**common, "seq": number, dataset.time_column: START, **row}
        assert set(known) <= set(names)
        complete.append({name: known.get(name) for name in names})
    # of lists of rows, Spark makes a table in Python processes, which take a second to start
    table = pa.Table.from_pylist(complete, dataset.arrow_schema())
    return spark.createDataFrame(table, spark_schema(dataset))


def tuples(found: DataFrame, *columns: str) -> list[tuple[object, ...]]:
    """Return the rows, or these columns of them, in order."""
    rows: list[Row] = (found.select(*columns) if columns else found).collect()
    return sorted((tuple(_aware(value) for value in row) for row in rows), key=repr)


def _aware(value: object) -> object:
    # Spark returns times without a zone, in the local time of this machine
    return value.astimezone(UTC) if isinstance(value, datetime) else value
