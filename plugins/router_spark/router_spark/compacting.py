"""Merge the small files of past days, so that jobs open fewer of them.

By default a router writes one file per minute and dataset. When a day has ended, each router's
files are merged into one, with each row once. The merged file is written to a hidden folder, which
then replaces the original folder by two renames; between the renames, readers see neither. The next
run completes or undoes an interrupted merge.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import date
from itertools import groupby
from pathlib import Path
from typing import Final

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from router_telemetry.files import ROW_GROUP, storage
from router_telemetry.schema import Dataset

from router_spark.duplicates import IDENTITY, sort_files
from router_spark.errors import BadInput
from router_spark.footers import day_of, finished_files, read_footers

Mask = npt.NDArray[np.bool_]

NEW: Final = ".new-"
OLD: Final = ".old-"
COMPACTED: Final = "-compacted.parquet"


@attrs.frozen
class Compacted:
    """Merged file, with the counts of merged files, of rows, and of omitted duplicates."""

    path: Path
    files: int
    rows: int
    duplicates: int


def compact(directory: Path, datasets: tuple[Dataset, ...], before: date) -> Iterator[Compacted]:
    """Merge the files of each dataset, day and router, for the days before `before`.

    Yields a result for each merged folder. Raises BadInput if `directory` is not a folder, or if
    the files of a folder cannot be merged, which leaves that folder unchanged.
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
    """Complete or undo the interrupted merges of a day.

    A merge is completed if its result has replaced the original folder; otherwise, it is undone.
    """
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
        rows, duplicates = _merge(paths, merged, dataset)
    except (OSError, ValueError, pa.ArrowException) as error:
        shutil.rmtree(new)
        reason = str(error).splitlines()[0]
        raise BadInput(f"{folder}: its files cannot be merged: {reason}") from error
    old = folder.with_name(f"{OLD}{folder.name}")
    folder.rename(old)
    new.rename(folder)
    shutil.rmtree(old)
    return Compacted(folder / merged.name, len(paths), rows, duplicates)


def _merge(paths: list[Path], merged: Path, dataset: Dataset) -> tuple[int, int]:
    """Write the rows of all files into one; return the counts of rows and of duplicates.

    A row group has rows of only one run of the router, so that its statistics identify the run.
    """
    footers, torn = read_footers(paths, dataset)
    if torn:
        raise ValueError(f"{torn[0].path.name}: {torn[0].reason}")
    found = sort_files([each for each in footers if each.rows > 0])
    chosen = _first_of_each([each.path for each in found.doubtful])
    options = storage(dataset)
    row_group = options.pop("row_group_size")
    rows = 0
    files = sorted([*found.distinct, *found.doubtful], key=lambda each: (each.runs, each.path))
    batches = (
        batch
        for each in files
        for batch in _batches(each.path, dataset.arrow_schema(), chosen.get(each.path))
    )
    with pq.ParquetWriter(merged, dataset.arrow_schema(), **options) as writer:
        for _, of_run in groupby(batches, key=_ends_of_runs):
            waiting: list[pa.Table] = []
            for batch in of_run:
                waiting.append(batch)
                if sum(map(len, waiting)) >= row_group:
                    rows += _write(writer, waiting, row_group)
            rows += _write(writer, waiting, row_group)
    return rows, sum(each.rows for each in footers) - rows


def _ends_of_runs(batch: pa.Table) -> tuple[object, object]:
    """Return the runs of the router to which the first and last row of a batch belong."""
    epochs = batch.column("router_epoch")
    return epochs[0].as_py(), epochs[-1].as_py()


def _first_of_each(paths: list[Path]) -> dict[Path, Mask]:
    """Return, for each file, a mask of the rows to keep, which omits duplicates."""
    if not paths:
        return {}
    columns = list(IDENTITY[1:])  # a folder has files of one router only
    tables = [pq.read_table(path, columns=columns, partitioning=None) for path in paths]
    merged = pa.concat_tables(tables)
    for name in columns:
        if merged.column(name).null_count:
            raise ValueError(f"a row has no {name}")
    identities = np.rec.fromarrays(
        [merged.column(name).to_numpy() for name in columns],
        dtype=[(name, np.int64) for name in columns],
    )
    keep = np.zeros(len(identities), dtype=np.bool_)
    keep[np.unique(identities, return_index=True)[1]] = True
    ends = np.cumsum([len(each) for each in tables])
    return dict(zip(paths, np.split(keep, ends[:-1]), strict=True))


def _batches(path: Path, schema: pa.Schema, keep: Mask | None) -> Iterator[pa.Table]:
    """Yield the rows of a file by row group, or only the rows that the mask `keep` selects."""
    begin = 0
    with pq.ParquetFile(path) as file:
        for number in range(file.num_row_groups):
            for batch in file.iter_batches(ROW_GROUP, row_groups=[number]):
                table = _as(schema, pa.Table.from_batches([batch]))
                end = begin + len(table)
                if keep is not None:
                    table = table.filter(pa.array(keep[begin:end]))
                if len(table):
                    yield table
                begin = end


def _write(writer: pq.ParquetWriter, waiting: list[pa.Table], row_group: int) -> int:
    """Write the waiting tables as row groups, and clear the list; return how many rows it had."""
    if not waiting:
        return 0
    table = pa.concat_tables(waiting)
    waiting.clear()
    writer.write_table(table, row_group_size=row_group)
    return len(table)


def _as(schema: pa.Schema, table: pa.Table) -> pa.Table:
    """Return a table with the columns of `schema`; missing columns are null."""
    columns = [
        table.column(field.name).cast(field.type)
        if field.name in table.schema.names
        else pa.nulls(len(table), field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)
