"""Merge the small files of past days, so that jobs open fewer of them.

By default a router writes a file a minute for each dataset. When a day is over, each router's files
become one. The merged file is written to a hidden folder, which then replaces the original one by
two renames; in between, readers see neither. If that is interrupted, the next run completes or
undoes it.
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
COMPACTED: Final = "-compacted.parquet"


@attrs.frozen
class Compacted:
    """Merged file, with the number of files that it replaces and of its rows."""

    path: Path
    files: int
    rows: int


def compact(directory: Path, datasets: tuple[Dataset, ...], before: date) -> Iterator[Compacted]:
    """Merge the files of each dataset, day and router, for the days before `before`.

    Yields a result for each merged folder. Raises BadInput if files cannot be merged; their folder
    is unchanged then.
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


def is_compacted(path: Path) -> bool:
    """Return whether a file was merged from others, which may have had rows in common."""
    return path.name.endswith(COMPACTED)


def _finish(day: Path) -> None:
    """Complete an interrupted merge, or undo it if the new folder is not in place."""
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
    merged = new / f"{dataset.name}-{router}{COMPACTED}"
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
    """Return a table with the columns of the newest schema; missing ones are null."""
    columns = [
        table.column(field.name).cast(field.type)
        if field.name in table.schema.names
        else pa.nulls(len(table), field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)
