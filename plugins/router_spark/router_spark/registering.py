"""Register files with an Iceberg catalogue, so that query engines see them as tables.

Routers write files and do not use the catalogue. One process registers new files, as often as
desired, so commits come from one place, and an unreachable catalogue does not delay routers. Files
stay in place; the table refers to them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import attrs
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.table import Table
from router_telemetry.schema import Dataset

from router_spark.footers import find_files
from router_spark.periods import Period


@attrs.frozen
class Registered:
    """Result of registering: how many files and rows were added to a table."""

    table: str
    files: int
    rows: int


def open_catalog(name: str, properties: Mapping[str, str]) -> Catalog:
    """Open an Iceberg catalogue; other properties come from PyIceberg's configuration."""
    return load_catalog(name, **properties)


def register(
    catalog: Catalog, namespace: str, directory: Path, dataset: Dataset, period: Period
) -> Registered:
    """Add the new files of a dataset and period to the dataset's table, in one commit.

    Creates the table if there is none, and adds columns that are new in the schema. Raises BadInput
    if the dataset has no folder.
    """
    table = _table(catalog, namespace, dataset)
    known = set(table.inspect.files().column("file_path").to_pylist())
    paths = [str(path.absolute()) for path in find_files(directory, dataset, period)]
    new = [path for path in paths if path not in known]
    before = _row_count(table)
    if new:
        table.add_files(new)
        table.refresh()
    return Registered(f"{namespace}.{dataset.name}", len(new), _row_count(table) - before)


def _table(catalog: Catalog, namespace: str, dataset: Dataset) -> Table:
    """Return the table of a dataset; create the table, or add columns to it, if necessary."""
    catalog.create_namespace_if_not_exists(namespace)
    name = f"{namespace}.{dataset.name}"
    schema = dataset.arrow_schema()
    try:
        table = catalog.load_table(name)
    except NoSuchTableError:
        return catalog.create_table(name, schema)
    if set(schema.names) - set(table.schema().column_names):
        with table.update_schema() as update:
            update.union_by_name(schema)
        table = catalog.load_table(name)
    return table


def _row_count(table: Table) -> int:
    return sum(table.inspect.files().column("record_count").to_pylist())
