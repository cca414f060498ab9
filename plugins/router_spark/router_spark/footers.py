"""Parquet files of a dataset, selected by their names and footers before Spark opens them."""

from __future__ import annotations

from collections.abc import Sequence
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
Value = TypeVar("Value", int, str, datetime)


@attrs.frozen(order=True)
class RowRange:
    """Range of sequence numbers that a file has from one run of a router."""

    router: str
    router_epoch: int
    first: int
    last: int


@attrs.frozen
class Footer:
    """Metadata of a file. `earliest` and `latest` are the limits of the dataset's time column.

    `runs` has one range for each run of a router in the file. It is empty if the runs are unknown,
    because statistics are missing or a row group has several runs. `greatest_hop` is None if the
    dataset has no hops, or statistics are missing.
    """

    path: Path
    rows: int
    version: int | None
    earliest: datetime | None
    latest: datetime | None
    schema: pa.Schema
    runs: tuple[RowRange, ...] = ()
    greatest_hop: int | None = None


@attrs.frozen
class TornFile:
    """File that cannot be read, with the reason."""

    path: Path
    reason: str


def find_files(directory: Path, dataset: Dataset, period: Period) -> list[Path]:
    """Return the finished files of all days in a period, in order.

    Raises BadInput if a folder is missing, cannot be read, or is not named as a day.
    """
    folder = dataset_folder(directory, dataset)
    try:
        days = [each for each in sorted(folder.iterdir()) if each.name.startswith("dt=")]
        return [
            path
            for day in days
            if period.may_hold(day_of(day))
            for router in sorted(day.glob("router_id=*"))
            for path in finished_files(router)
        ]
    except OSError as error:
        raise BadInput(f"{error.filename}: cannot be read: {error.strerror}") from error


def dataset_folder(directory: Path, dataset: Dataset) -> Path:
    """Return the folder of a dataset. Raises BadInput if there is none."""
    folder = directory / dataset.name
    if not folder.is_dir():
        raise BadInput(f"{directory}: has no folder {dataset.name} to read from")
    return folder


def day_of(folder: Path) -> date:
    """Return the day of a folder with a name such as `dt=2026-11-25`.

    Raises BadInput if the name has another form.
    """
    try:
        return date.fromisoformat(folder.name.removeprefix("dt="))
    except ValueError:
        raise BadInput(f"{folder}: is not named as a day, such as dt=2026-11-25") from None


def finished_files(folder: Path) -> list[Path]:
    """Return the finished files of one day and router, in order.

    Raises OSError if the folder cannot be read.
    """
    # iterdir raises OSError, which pathlib's glob ignores
    return [
        path
        for path in sorted(folder.iterdir())
        if path.suffix == ".parquet" and not path.name.startswith((".", "_"))
    ]


def read_footers(paths: Sequence[Path], dataset: Dataset) -> tuple[list[Footer], list[TornFile]]:
    """Read the footers of all files, in parallel; return footers, and files without a valid one."""
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
        _runs(metadata),
        _greatest_hop(metadata),
    )


def _runs(metadata: pq.FileMetaData) -> tuple[RowRange, ...]:
    routers = _limits(metadata, "router", str)
    epochs = _limits(metadata, "router_epoch", int)
    numbers = _limits(metadata, "seq", int)
    if not len(routers) == len(epochs) == len(numbers) == 2 * metadata.num_row_groups > 0:
        return ()
    found: dict[tuple[str, int], list[int]] = {}
    # the limits of each row group: the least, then the greatest
    for index in range(0, len(numbers), 2):
        if routers[index] != routers[index + 1] or epochs[index] != epochs[index + 1]:
            return ()
        of_run = found.setdefault((routers[index], epochs[index]), [])
        of_run += numbers[index : index + 2]
    return tuple(RowRange(*run, min(found[run]), max(found[run])) for run in sorted(found))


def _greatest_hop(metadata: pq.FileMetaData) -> int | None:
    hops = _limits(metadata, "hop", int)
    return max(hops) if len(hops) == 2 * metadata.num_row_groups > 0 else None


def _limits(metadata: pq.FileMetaData, column: str, kind: type[Value]) -> list[Value]:
    """Return the least and greatest value of a column in each row group that has statistics."""
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
