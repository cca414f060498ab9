"""Sinks: each task sends its rows, and ends when all of them are accepted."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from itertools import count

import attrs
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from router_spark_amqp.messages import MessageWriter
from router_spark_amqp.options import Options
from router_spark_amqp.sending import Octets, send_all

# Number of rows that are encoded at a time.
ROWS_AT_ONCE = 1000


@attrs.frozen
class Sent(WriterCommitMessage):
    """Result of a task: how many messages it has sent, all of which were accepted."""

    count: int


class AmqpWriter(DataSourceArrowWriter):
    """Writer that sends the rows of a DataFrame at least once.

    A row that is not accepted fails its task. Spark retries the task, which sends all of its rows
    again. A row without a `message_id` gets the id `job/partition/row`, which is the same in each
    attempt if the partition has the same rows in the same order.
    """

    def __init__(self, options: Options, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        # chosen in the driver, before the writer is pickled for the tasks: one id for all of them
        self._job = secrets.token_hex(8)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Sent:
        """Send a partition's rows; called in a task. Raises WriteFailed if that fails."""
        return _send(self._options, self._schema, self._job, iterator)


class AmqpStreamWriter(DataSourceStreamArrowWriter):
    """Writer that sends the rows of each micro-batch at least once.

    It works like `AmqpWriter`, but a row without a `message_id` gets the id
    `queryId/batchId/partition/row`, which is the same after a restart if the plan gives each
    partition the same rows in the same order.
    """

    def __init__(self, options: Options, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Sent:
        """Send a partition's rows; called in a task. Raises WriteFailed if that fails."""
        context = _context()
        query = context.getLocalProperty("sql.streaming.queryId")
        batch = context.getLocalProperty("streaming.sql.batchId")
        return _send(self._options, self._schema, f"{query}/{batch}", iterator)


def _context() -> TaskContext:
    context = TaskContext.get()
    assert context is not None, "a sink writes in tasks"
    return context


def _send(
    options: Options, schema: StructType, job: str, batches: Iterator[pa.RecordBatch]
) -> Sent:
    prefix = f"{job}/{_context().partitionId()}"
    chunks = _encoded(MessageWriter(options, schema), prefix, batches)
    return Sent(send_all(options, chunks))


def _encoded(
    writer: MessageWriter, prefix: str, batches: Iterator[pa.RecordBatch]
) -> Iterator[Octets]:
    first = 0
    for batch in batches:
        for begin in range(0, batch.num_rows, ROWS_AT_ONCE):
            part = batch.slice(begin, ROWS_AT_ONCE)
            yield writer.write(part, (f"{prefix}/{row}" for row in count(first)))
            first += part.num_rows
