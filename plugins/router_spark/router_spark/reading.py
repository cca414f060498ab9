"""Read a dataset with the newest schema, or fail with a one-line error."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession, functions as sf
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DoubleType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)
from router_telemetry.schema import VERSION, Dataset

from router_spark.duplicates import IDENTITY, sort_files
from router_spark.errors import BadInput
from router_spark.footers import Footer, find_files, read_footers
from router_spark.periods import Period

SPARK_TYPES: Final[dict[str, DataType]] = {
    "bool": BooleanType(),
    "double": DoubleType(),
    "fixed_size_binary[16]": BinaryType(),
    "int16": ShortType(),
    "int64": LongType(),
    "list<item: string>": ArrayType(StringType()),
    "string": StringType(),
    "timestamp[us, tz=UTC]": TimestampType(),
}
"""Spark's type for each Arrow type of the schema."""

GREATEST: Final = "greatest"
"""Key, in the metadata of a column, of its greatest value."""


def spark_schema(dataset: Dataset, greatest_hop: int | None = None) -> StructType:
    """Return a dataset's columns as a Spark schema.

    The greatest hop, if it is known, is stored in the metadata of the column `hop`, as `GREATEST`.
    """
    metadata = {} if greatest_hop is None else {"hop": {GREATEST: greatest_hop}}
    return StructType(
        [
            StructField(each.name, SPARK_TYPES[str(each.type)], metadata=metadata.get(each.name))
            for each in dataset.columns
        ]
    )


def check_footer(footer: Footer, dataset: Dataset, newest: int = VERSION) -> None:
    """Raise BadInput if a file's version is unknown, or a column is missing or of a wrong type."""
    version = footer.version
    if version is None:
        raise BadInput(f"{footer.path}: has no column schema_version, or only nulls in it")
    if version > newest:
        raise BadInput(
            f"{footer.path}: has version {version} of the schema; "
            f"this release reads up to version {newest}"
        )
    types = dict(zip(footer.schema.names, footer.schema.types, strict=True))
    for column in dataset.columns:
        if column.since > version:
            continue
        found = types.get(column.name)
        if found is None:
            raise BadInput(f"{footer.path}: lacks the column {column.name} of {dataset.name}")
        if found != column.type:
            raise BadInput(
                f"{footer.path}: column {column.name} is of type {found}, not {column.type}"
            )


def checked_files(
    directory: Path, dataset: Dataset, period: Period, newest: int = VERSION
) -> list[Footer]:
    """Return the footers of the files with rows in a period.

    Raises BadInput if a file is unusable, or there are no rows.
    """
    footers, torn = read_footers(find_files(directory, dataset, period), dataset)
    if torn:
        raise BadInput(
            f"{torn[0].path}: {torn[0].reason} ({len(torn)} such files; "
            "`trioute-spark validate --quarantine FOLDER` moves them away)"
        )
    footers = [each for each in footers if each.rows > 0]
    for footer in footers:
        check_footer(footer, dataset, newest)
    within = [
        each
        for each in footers
        if each.earliest is None
        or each.latest is None
        or period.overlaps(each.earliest, each.latest)
    ]
    if not within:
        raise BadInput(f"{directory / dataset.name}: has no rows from {period}")
    return within


def read_files(spark: SparkSession, files: Sequence[Footer], dataset: Dataset) -> DataFrame:
    """Read files with the newest schema; columns that a file lacks are null."""
    return _read(spark, files, _schema_of(files, dataset))


def read_rows(
    spark: SparkSession, files: Sequence[Footer], dataset: Dataset, period: Period
) -> DataFrame:
    """Read the rows of a period without duplicates, even if files have rows in common."""
    found = sort_files(files)
    # of all files: a union keeps the metadata of its first part only
    schema = _schema_of(files, dataset)
    rows = within_period(_read(spark, found.distinct, schema), dataset, period)
    if found.doubtful:
        doubtful = within_period(_read(spark, found.doubtful, schema), dataset, period)
        rows = rows.unionByName(doubtful.dropDuplicates(list(IDENTITY)))
    return rows


def _schema_of(files: Sequence[Footer], dataset: Dataset) -> StructType:
    """Return a Spark schema, with the greatest hop if the footers of all files have it."""
    hops = [each.greatest_hop for each in files if each.greatest_hop is not None]
    return spark_schema(dataset, max(hops) if len(hops) == len(files) > 0 else None)


def _read(spark: SparkSession, files: Sequence[Footer], schema: StructType) -> DataFrame:
    if not files:
        return spark.createDataFrame([], schema)
    return spark.read.schema(schema).parquet(*(str(each.path) for each in files))


def within_period(frame: DataFrame, dataset: Dataset, period: Period) -> DataFrame:
    """Return the rows of a period."""
    time = sf.col(dataset.time_column)
    if period.start is not None:
        frame = frame.where(time >= sf.lit(period.start))
    if period.end is not None:
        frame = frame.where(time < sf.lit(period.end))
    return frame
