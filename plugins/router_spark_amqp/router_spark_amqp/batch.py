"""Batch source: one task drains an address, and accepts the messages once all rows are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import attrs
import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from router_spark_amqp.intake import Intake
from router_spark_amqp.options import Options
from router_spark_amqp.packing import read_batch, to_wire_batch
from router_spark_amqp.rows import RowReader
from router_spark_amqp.selectors import selector_of


class AmqpBatchReader(DataSourceReader):
    """Batch reader of one address, which receives only the messages that the sender has now.

    The messages stay unsettled until Spark has read the last row; then they are accepted. If the
    task fails earlier, the messages are delivered again, possibly to the next attempt. If the job
    fails later, they are lost. A query that must not lose messages should be a stream with the
    trigger `availableNow`.

    Each evaluation of the DataFrame is a new read, of the messages that are available then. A read
    receives at most `maxRowsPerBatch` rows (100,000 by default) and about `maxBytes` octets; other
    messages stay with the sender.
    """

    def __init__(self, options: Options, schema: StructType) -> None:
        # There is no second batch, so no credit is granted for one. A lost link fails the task, and
        # its next attempt connects again.
        self._options = attrs.evolve(
            options,
            credit=options.rows_per_read,
            max_rows_per_batch=options.rows_per_read,
            reconnect_timeout_s=0.0,
        )
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        """Return one partition: several would share the messages of the node at random."""
        return [InputPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Drain the address, yield all rows, then accept their messages; called in a task.

        Raises SourceLost if the connection fails.
        """
        reader = RowReader(self._options, self._schema)
        intake = Intake(self._options, drains=True)
        intake.start(0)
        try:
            rows = intake.drain()
            yield from read_batch(to_wire_batch(rows), reader)
            intake.commit(len(rows))
        finally:
            intake.stop()


class AmqpFilteringReader(AmqpBatchReader):
    """Batch reader that asks the peer to apply the query's filters (`pushFilters`).

    Messages that the peer does not select stay with it. Spark applies all filters again, so that
    the rows are the same with a peer that does not support selectors.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802
        """Make a selector from those filters that a selector can express; return all filters."""
        self._options = attrs.evolve(self._options, pushed_selector=selector_of(filters))
        return filters
