"""The batch source: what is at an address now, in one task, accepted when all of it was read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs
import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from router_spark_amqp.intake import Intake
from router_spark_amqp.options import Options
from router_spark_amqp.packing import read_batch, wire
from router_spark_amqp.rows import RowReader


class AmqpBatchReader(DataSourceReader):
    """Drains one address: the sender is asked for what it has now, and for no more.

    All of it is unsettled until Spark has taken the last row; then it is accepted. A task that
    fails before that accepts nothing, and the messages come again: to its next attempt, too. What
    fails later, in the same job, comes too late: these messages are gone. A query that must not
    lose any is a stream with the trigger availableNow.

    Each time that Spark evaluates the frame it reads anew, and gets what has come meanwhile. One
    read takes `maxRowsPerBatch` rows (100,000 where that is not given) and about `maxBytes` octets
    at most; the rest stays at the sender.
    """

    def __init__(self, options: Options, schema: StructType) -> None:
        # no second batch follows, so there is no credit for one; and where the link is lost it is
        # the next attempt of the task that connects again
        self._options = attrs.evolve(
            options,
            credit=options.rows_per_read,
            max_rows_per_batch=options.rows_per_read,
            reconnect_timeout_s=0.0,
        )
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        """One: there is one node to take from, which would share its messages out at random."""
        return [InputPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Drain, yield all of it, then accept it; in a task. Raises SourceLost."""
        reader = RowReader(self._options, self._schema)
        intake = Intake(self._options, drains=True)
        intake.start(0)
        try:
            rows = intake.drain()
            yield from read_batch(wire(rows), reader)
            intake.commit(len(rows))
        finally:
            intake.stop()
