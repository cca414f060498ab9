"""The streaming source: batches of what an `Intake` holds, settled when Spark commits them."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from typing import TypedDict

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from router_spark_amqp.intake import LOG, Intake
from router_spark_amqp.options import Options
from router_spark_amqp.packing import Packed, packed, read_packed
from router_spark_amqp.rows import RowReader

# How long Spark is kept waiting for a message; it asks again in a matter of milliseconds.
POLL_S = 0.2


class Offset(TypedDict):
    """How many rows were in batches up to here, by which process (`run`) that was counted, and how
    often a batch without rows was asked for so that the one before is committed (`beat`).
    """

    run: str
    position: int
    beat: int


class AmqpStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Micro-batches from one address, at least once.

    A message is accepted after the batch that it is in has been committed, and Spark commits a
    batch when it plans the next one. So that the last batch is committed while no message comes, a
    batch without rows follows it. A message whose batch is not committed comes again, in a later
    batch, from wherever its sender sends it to next.

    What was planned and not committed when the process died is replayed *empty*: its rows were in
    the memory of that process. So a batch id does not stand for the same rows twice, and a sink
    that takes it for a key of idempotency has duplicates all the same. Remove them by message id.
    """

    def __init__(self, options: Options, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._run = secrets.token_hex(8)
        self._drains = False
        # in the driver's process alone: this very object is also copied to the tasks
        self._intake: Intake | None = None

    def initialOffset(self) -> Offset:  # type: ignore[override]  # noqa: N802
        """Where a new query begins."""
        return Offset(run=self._run, position=0, beat=0)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """The most rows of a micro-batch."""
        return ReadMaxRows(self._options.rows_per_batch)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Drain the sender instead of asking for more and more."""
        self._drains = True

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # type: ignore[override]  # noqa: N802
        """Where a batch of what has come since `start` would end.

        Raises SourceLost where the source cannot be connected to.
        """
        intake = self._started(start)
        while True:
            intake.check()
            if intake.wait(POLL_S):
                most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
                batch = intake.cut(most)
                if batch is not None:
                    return Offset(run=self._run, position=batch.end, beat=start["beat"])
            if intake.has_uncommitted:
                return Offset(run=self._run, position=start["position"], beat=start["beat"] + 1)
            if intake.is_dry or not self._drains:
                return start

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:  # type: ignore[override]
        """The rows between two offsets; none where they were another process's."""
        if end["run"] != self._run:
            lost = end["position"] - start["position"]
            if lost:
                LOG.warning("a batch of %d rows is replayed empty; they come again", lost)
            return []
        rows = self._started(start).between(start["position"], end["position"])
        return packed(rows, self._options.partitions) if rows else []

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Decode the rows of a partition; in a task."""
        assert isinstance(partition, Packed)
        yield from read_packed(partition, RowReader(self._options, self._schema))

    def commit(self, end: Offset) -> None:  # type: ignore[override]
        """Settle as accepted what lies up to an offset of this process."""
        if end["run"] == self._run and self._intake is not None:
            self._intake.commit(end["position"])

    def stop(self) -> None:
        """Give back what is not committed, and close the connection."""
        if self._intake is not None:
            self._intake.stop()

    def _started(self, start: Offset) -> Intake:
        if self._intake is None:
            self._intake = Intake(self._options, drains=self._drains)
            self._intake.start(start["position"])
        return self._intake
