"""Write batches of rows as Parquet files, which do not change once they have their final names."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

from router_telemetry.schema import Dataset

ROW_GROUP = 131_072
LIMITED = ("schema_version", "router", "router_epoch", "seq", "hop")


def storage(dataset: Dataset) -> dict[str, Any]:
    """Return how to store a dataset, as arguments of pyarrow's `write_table`.

    These arguments halve the writing time and make files smaller. Sequence numbers, times and
    durations are delta-encoded. Random ids are not compressed. All other columns have few different
    values, and use dictionaries. Statistics are kept for the columns by which readers choose files
    and row groups, and for `hop`, which shows readers how long paths can be.
    """
    time = dataset.time_column
    names = [column.name for column in dataset.columns]
    varying = {"seq", time} | {name for name in names if name.endswith("_ns")}
    ids = {column.name for column in dataset.columns if pa.types.is_fixed_size_binary(column.type)}
    return {
        "compression": {name: "none" if name in ids else "zstd" for name in names},
        "use_dictionary": [name for name in names if name not in varying | ids],
        "column_encoding": dict.fromkeys(sorted(varying), "DELTA_BINARY_PACKED"),
        "write_statistics": [name for name in names if name in {*LIMITED, time}],
        "row_group_size": ROW_GROUP,
        # Arrow's schema is omitted: it would depend on the encoding of columns in memory
        "store_schema": False,
    }


class Writable(Protocol):
    """Batch of rows of one dataset and one day, to be written."""

    @property
    def dataset(self) -> Dataset:
        """Return the dataset."""

    @property
    def day(self) -> int:
        """Return the day, in days since 1970."""

    def __len__(self) -> int:
        """Return the number of rows."""

    def table(self) -> pa.Table:
        """Return the rows as an Arrow table."""


class Files:
    """Writer of the files of one run of a router, below a directory.

    `write` may run in a thread, one call at a time.
    """

    def __init__(self, directory: Path, router: str, epoch: int) -> None:
        self._directory = directory
        self._router = quote(router, safe="")
        self._epoch = epoch
        self._number = 0

    def write(self, batch: Writable) -> Path:
        """Write a batch, and return the path of its file.

        Raises OSError if that fails. Then there is no file, unless only the sync of its folder has
        failed; in that case the file is replaced when the batch is written again.
        """
        number = self._number + 1
        day = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=batch.day)
        name = batch.dataset.name
        folder = self._directory / name / f"dt={day:%Y-%m-%d}" / f"router_id={self._router}"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{name}-{self._router}-{self._epoch}-{number}.parquet"
        partial = path.with_name(f".{path.name}.part")
        try:
            with partial.open("wb") as file:
                pq.write_table(batch.table(), file, **storage(batch.dataset))
                file.flush()
                os.fsync(file.fileno())
            partial.rename(path)
            _sync_folder(folder)
        except OSError:
            partial.unlink(missing_ok=True)
            raise
        self._number = number
        return path


def _sync_folder(folder: Path) -> None:
    """Sync a folder, so that a new name in it survives a power failure."""
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
