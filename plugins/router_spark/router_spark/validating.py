"""Find files that cannot be read, and rows that are lost or duplicated."""

from __future__ import annotations

from pathlib import Path

import attrs
from pyspark.sql import DataFrame, SparkSession, functions as sf
from router_telemetry.schema import DATASETS, Dataset

from router_spark.errors import BadInput
from router_spark.footers import Footer, TornFile, find_files, read_footers
from router_spark.jobs.sequences import sequences
from router_spark.periods import Period
from router_spark.reading import check_footer, read_files


@attrs.frozen
class Checked:
    """Result of a check of one dataset: usable files with rows, and unusable (`torn`) files."""

    dataset: Dataset
    whole: list[Footer]
    torn: list[TornFile]


def check_files(directory: Path, period: Period) -> list[Checked]:
    """Check the files of all datasets in a directory by their footers.

    Raises BadInput if there is no dataset, or a folder cannot be read.
    """
    there = [each for each in DATASETS if (directory / each.name).is_dir()]
    if not there:
        names = ", ".join(each.name for each in DATASETS)
        raise BadInput(f"{directory}: has none of the folders {names}")
    checked = []
    for dataset in there:
        whole, torn = read_footers(find_files(directory, dataset, period), dataset)
        usable = []
        for footer in whole:
            try:
                if footer.rows > 0:
                    check_footer(footer, dataset)
                    usable.append(footer)
            except BadInput as error:
                torn.append(TornFile(footer.path, error.message))
        checked.append(Checked(dataset, usable, torn))
    return checked


def move_away(file: TornFile, directory: Path, quarantine: Path) -> Path:
    """Move a file to the same relative path below the quarantine folder.

    Raises BadInput if that fails.
    """
    target = quarantine / file.path.relative_to(directory)
    try:
        if target.exists():
            raise BadInput(f"{file.path}: {target} exists already, so it was not moved")
        target.parent.mkdir(parents=True, exist_ok=True)
        file.path.rename(target)
    except OSError as error:
        raise BadInput(f"{file.path}: cannot be moved to {target}: {error.strerror}") from error
    return target


def torn_files(spark: SparkSession, checked: list[Checked]) -> DataFrame:
    """Return a row for each unusable file: dataset, file and reason."""
    rows = [
        (each.dataset.name, str(torn.path), torn.reason) for each in checked for torn in each.torn
    ]
    return spark.createDataFrame(rows, "dataset string, file string, reason string")


def all_sequences(spark: SparkSession, checked: list[Checked]) -> DataFrame:
    """Count lost rows and duplicates, as `sequences` does, in all datasets."""
    found = spark.createDataFrame(
        [],
        "dataset string, router string, router_epoch long, rows long, first_seq long, "
        "last_seq long, lost long, duplicates long",
    )
    for each in checked:
        if each.whole:
            rows = sequences(read_files(spark, each.whole, each.dataset))
            found = found.unionByName(rows.withColumn("dataset", sf.lit(each.dataset.name)))
    return found
