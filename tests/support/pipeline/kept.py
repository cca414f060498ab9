"""Rows of simulated routers that are kept in memory."""

from __future__ import annotations

from collections import defaultdict

import pyarrow as pa
from router_telemetry.files import Writable
from router_telemetry.schema import Dataset
from router_telemetry.simulated import Store


class KeptRows:
    """All rows that the routers of a simulation have written, by dataset."""

    def __init__(self) -> None:
        self._rows: dict[str, list[pa.Table]] = defaultdict(list)

    def store_of(self, router: str, epoch: int) -> Store:
        """Return what takes the rows of one router, as `SimulatedRecords` wants it."""

        def store(batch: Writable) -> None:
            schema = batch.dataset.arrow_schema()
            table = batch.table()
            decoded = [
                column.cast(field.type) for column, field in zip(table.columns, schema, strict=True)
            ]
            self._rows[batch.dataset.name].append(pa.Table.from_arrays(decoded, schema=schema))

        return store

    def table(self, dataset: Dataset) -> pa.Table:
        """Return the rows of a dataset so far."""
        return pa.concat_tables([*self._rows[dataset.name], dataset.arrow_schema().empty_table()])
