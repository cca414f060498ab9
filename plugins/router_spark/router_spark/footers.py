"""The Parquet files of a dataset, judged by their names and footers, before Spark opens them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime
from pathlib import Path
from typing import TypeVar

import attrs
import pyarrow as pa
import pyarrow.parquet as pq
from router_telemetry.schema import Dataset

from router_spark.errors import BadInput
from router_spark.periods import Period

THREADS = 8
Value = TypeVar("Value", int, datetime)


@attrs.frozen
class Footer:
    """What a file says of itself. `earliest` and `latest` are by the dataset's time column."""

    path: Path
    rows: int
    version: int | None
    earliest: datetime | None
    latest: datetime | None
    schema: pa.Schema


@attrs.frozen
class TornFile:
    """A file that cannot be read, and why."""

    path: Path
    reason: str


def find_files(directory: Path, dataset: Dataset, period: Period) -> list[Path]:
    """Return the finished files of the days within a period, in order. Raises BadInput."""
    folder = directory / dataset.name
    if not folder.is_dir():
        raise BadInput(f"{directory}: has no folder {dataset.name}, which the job reads")
    try:
        days = [each for each in sorted(folder.iterdir()) if _is_within(each, period)]
        return [path for day in days for path in _finished_files(day)]
    except OSError as error:
        raise BadInput(f"{error.filename}: cannot be read: {error.strerror}") from error


def _is_within(folder: Path, period: Period) -> bool:
    if not folder.name.startswith("dt="):
        return False
    try:
        return period.may_hold(date.fromisoformat(folder.name.removeprefix("dt=")))
    except ValueError:
        raise BadInput(f"{folder}: is not named as a day, as dt=2026-11-25") from None


def _finished_files(day: Path) -> Iterator[Path]:
    for folder in sorted(day.glob("router_id=*")):
        # pathlib's glob hides errors, iterdir tells them
        for path in sorted(folder.iterdir()):
            if path.suffix == ".parquet" and not path.name.startswith((".", "_")):
                yield path


def read_footers(paths: Sequence[Path], dataset: Dataset) -> tuple[list[Footer], list[TornFile]]:
    """Open all files, several at a time; return those that are whole, and those that are not."""
    with ThreadPoolExecutor(THREADS) as pool:
        read = list(pool.map(lambda path: _read_footer(path, dataset), paths))
    return (
        [each for each in read if isinstance(each, Footer)],
        [each for each in read if isinstance(each, TornFile)],
    )


def _read_footer(path: Path, dataset: Dataset) -> Footer | TornFile:
    try:
        with pq.ParquetFile(path) as file:
            metadata, schema = file.metadata, file.schema_arrow
    except (OSError, ValueError, pa.ArrowException) as error:
        return TornFile(path, str(error).splitlines()[0])
    versions = _limits(metadata, "schema_version", int)
    times = _limits(metadata, dataset.time_column, datetime)
    return Footer(
        path,
        metadata.num_rows,
        max(versions, default=None),
        min(times, default=None),
        max(times, default=None),
        schema,
    )


def _limits(metadata: pq.FileMetaData, column: str, kind: type[Value]) -> list[Value]:
    """Return the least and greatest values of a column in each row group, if they are known."""
    limits: list[Value] = []
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        for index in range(group.num_columns):
            chunk = group.column(index)
            if chunk.path_in_schema == column and chunk.is_stats_set:
                if chunk.statistics.has_min_max:
                    found = (chunk.statistics.min, chunk.statistics.max)
                    limits += [each for each in found if isinstance(each, kind)]
    return limits
