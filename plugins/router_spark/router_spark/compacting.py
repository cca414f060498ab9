"""Merge the small files of past days, so that jobs open fewer of them.

A router writes a file a minute. Of a day that is over, each router's files become one. The merged
file is made in a hidden folder, which takes the place of the folder it was made from; readers see
the one or the other. If that is interrupted, the next run finishes it.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Final

import attrs
import pyarrow as pa
import pyarrow.parquet as pq
from router_telemetry.schema import Dataset

from router_spark.errors import BadInput
from router_spark.footers import day_of, finished_files

ROW_GROUP: Final = 131_072
NEW: Final = ".new-"
OLD: Final = ".old-"


@attrs.frozen
class Compacted:
    """A merged file, and how many files and rows it was made of."""

    path: Path
    files: int
    rows: int


def compact(directory: Path, datasets: tuple[Dataset, ...], before: date) -> Iterator[Compacted]:
    """Merge the files of each dataset, day and router, for the days before one.

    Yields what was merged, folder by folder. Raises BadInput if a file cannot be read; nothing of
    its folder has changed then.
    """
    if not directory.is_dir():
        raise BadInput(f"{directory}: is not a folder")
    for dataset in datasets:
        for day in sorted((directory / dataset.name).glob("dt=*")):
            if day_of(day) < before:
                _finish(day)
                for folder in sorted(day.glob("router_id=*")):
                    merged = _compact_folder(folder, dataset)
                    if merged is not None:
                        yield merged


def _finish(day: Path) -> None:
    """Finish what was interrupted: a folder without its successor comes back."""
    for old in day.glob(f"{OLD}*"):
        folder = day / old.name.removeprefix(OLD)
        if folder.exists():
            shutil.rmtree(old)
        else:
            old.rename(folder)
    for new in day.glob(f"{NEW}*"):
        shutil.rmtree(new)


def _compact_folder(folder: Path, dataset: Dataset) -> Compacted | None:
    paths = finished_files(folder)
    if len(paths) < 2:
        return None
    router = folder.name.removeprefix("router_id=")
    new = folder.with_name(f"{NEW}{folder.name}")
    new.mkdir()
    merged = new / f"{dataset.name}-{router}-compacted.parquet"
    try:
        rows = _merge(paths, merged, dataset.arrow_schema())
    except (OSError, ValueError, pa.ArrowException) as error:
        shutil.rmtree(new)
        reason = str(error).splitlines()[0]
        raise BadInput(f"{folder}: its files cannot be merged: {reason}") from error
    old = folder.with_name(f"{OLD}{folder.name}")
    folder.rename(old)
    new.rename(folder)
    shutil.rmtree(old)
    return Compacted(folder / merged.name, len(paths), rows)


def _merge(paths: list[Path], merged: Path, schema: pa.Schema) -> int:
    """Write the rows of all files into one, a row group at a time; return their number."""
    rows = 0
    with pq.ParquetWriter(merged, schema, compression="zstd") as writer:
        for path in paths:
            with pq.ParquetFile(path) as file:
                for batch in file.iter_batches(ROW_GROUP):
                    table = _as(schema, pa.Table.from_batches([batch]))
                    writer.write_table(table, row_group_size=ROW_GROUP)
                    rows += len(table)
    return rows


def _as(schema: pa.Schema, table: pa.Table) -> pa.Table:
    """Return a table with the columns of the newest schema; those it lacks are null."""
    columns = [
        table.column(field.name).cast(field.type)
        if field.name in table.schema.names
        else pa.nulls(len(table), field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)
