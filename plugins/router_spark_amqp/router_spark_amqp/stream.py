"""Streaming source: micro-batches of an `Intake`'s rows, accepted when Spark commits them."""

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

# Longest wait for a message in `latestOffset`, which Spark calls again within milliseconds.
POLL_S = 0.2


class Offset(TypedDict):
    """Offset in a stream: `position` is how many rows have been in batches so far.

    `run` identifies the process that counted these rows. `beat` counts the batches without rows,
    which are planned so that Spark commits the preceding batch.
    """

    run: str
    position: int
    beat: int


class AmqpStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Streaming reader of one address, which delivers each message at least once.

    A message is accepted once its batch is committed, and Spark commits a batch when it plans the
    next one. So the last batch with rows is followed by a batch without rows. A message whose batch
    is not committed is delivered again, in a later batch.

    A batch that was planned but not committed when the process died is replayed *empty*: its rows
    were in the memory of that process. A batch id therefore does not always stand for the same
    rows, and a sink that uses the batch id as an idempotency key still writes duplicates. Remove
    duplicates by message id.
    """

    def __init__(self, options: Options, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._run = secrets.token_hex(8)
        self._drains = False
        # set only in the driver; the copies of this object in tasks have none
        self._intake: Intake | None = None

    def initialOffset(self) -> Offset:  # type: ignore[override]  # noqa: N802
        """Return the offset at which a new query begins."""
        return Offset(run=self._run, position=0, beat=0)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return the maximum number of rows of a micro-batch."""
        return ReadMaxRows(self._options.rows_per_batch)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Drain the sender from now on, so that the query ends."""
        self._drains = True

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # type: ignore[override]  # noqa: N802
        """Return the end of a batch of the rows received since `start`.

        If there are no such rows, return the end of an empty batch if the last batch is still to be
        committed, and otherwise `start`.

        Raises SourceLost if the source has no connection and has given up reconnecting.
        """
        intake = self._started(start)
        while True:
            intake.check()
            if intake.wait(POLL_S):
                most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
                batch = intake.make_batch(most)
                if batch is not None:
                    return Offset(run=self._run, position=batch.end, beat=start["beat"])
            if intake.has_uncommitted:
                return Offset(run=self._run, position=start["position"], beat=start["beat"] + 1)
            if intake.is_dry or not self._drains:
                return start

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:  # type: ignore[override]
        """Return partitions of the rows between two offsets.

        There are no partitions if another process, which had the rows, planned the offsets.
        """
        if end["run"] != self._run:
            lost = end["position"] - start["position"]
            if lost:
                LOG.warning("a batch of %d rows is replayed empty; they are redelivered", lost)
            return []
        rows = self._started(start).between(start["position"], end["position"])
        return packed(rows, self._options.partitions) if rows else []

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Decode the rows of a partition; called in a task."""
        assert isinstance(partition, Packed)
        yield from read_packed(partition, RowReader(self._options, self._schema))

    def commit(self, end: Offset) -> None:  # type: ignore[override]
        """Accept the messages up to an offset, if this process has planned the offset."""
        if end["run"] == self._run and self._intake is not None:
            self._intake.commit(end["position"])

    def stop(self) -> None:
        """Release or modify uncommitted messages, and close the connection."""
        if self._intake is not None:
            self._intake.stop()

    def _started(self, start: Offset) -> Intake:
        if self._intake is None:
            self._intake = Intake(self._options, drains=self._drains)
            self._intake.start(start["position"])
        return self._intake
