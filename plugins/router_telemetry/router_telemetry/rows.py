"""Rows, stored by column, that wait in memory to be written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import attrs
import pyarrow as pa

from router_telemetry.schema import VERSION, Dataset

US: Final = 1_000_000
DAY_US: Final = 24 * 3600 * US

Row = dict[str, object]
"""Values of one row, by column name."""
Columns = dict[str, list[Any]]
"""Values of all rows, by column name; Arrow checks their types."""


@attrs.frozen
class Batch:
    """Batch of rows of one dataset and one day, to be written. `day` is in days since 1970."""

    dataset: Dataset
    day: int
    columns: Columns = attrs.field(repr=False)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.columns["seq"])

    def table(self) -> pa.Table:
        """Return the rows as an Arrow table."""
        schema = self.dataset.arrow_schema()
        arrays = [pa.array(self.columns[field.name], field.type) for field in schema]
        return pa.Table.from_arrays(arrays, schema=schema)


class Rows:
    """Buffer of rows of one dataset that have not been taken for writing yet.

    Every row gets a sequence number, even if there is no room for the row, so that gaps in the
    files show how many rows were lost.
    """

    def __init__(self, dataset: Dataset, router: str, epoch: int, most: int) -> None:
        self.dataset = dataset
        self.lost = 0
        self._router = router
        self._epoch = epoch
        self._most = most
        self._seq = 0
        self._columns: Columns = self._empty()
        # rows that were taken but are not written yet
        self.taken = 0
        # called with each row that is added
        self.on_row: Callable[[Row], None] | None = None

    def _empty(self) -> Columns:
        return {column.name: [] for column in self.dataset.columns}

    def __len__(self) -> int:
        """Return the number of waiting rows."""
        return len(self._columns["seq"])

    def add(self, **values: object) -> None:
        """Add a row, or count it as lost if too many are in memory. Missing values are null."""
        self._seq += 1
        if len(self) + self.taken >= self._most:
            self.lost += 1
            return
        values["schema_version"] = VERSION
        values["router"] = self._router
        values["router_epoch"] = self._epoch
        values["seq"] = self._seq
        for name, column in self._columns.items():
            column.append(values.get(name))
        if self.on_row is not None:
            self.on_row(values)

    def take(self) -> list[Batch]:
        """Remove all waiting rows, and return them as one batch for each day, in order."""
        columns, self._columns = self._columns, self._empty()
        days = [time // DAY_US for time in columns[self.dataset.time_column]]
        self.taken += len(days)
        batches = []
        for day in dict.fromkeys(days):
            if days.count(day) == len(days):
                batches.append(Batch(self.dataset, day, columns))
                continue
            kept = [each == day for each in days]
            part = {
                name: [value for value, keep in zip(values, kept, strict=True) if keep]
                for name, values in columns.items()
            }
            batches.append(Batch(self.dataset, day, part))
        return batches
