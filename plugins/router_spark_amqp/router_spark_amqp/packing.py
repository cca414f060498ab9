"""What a streaming source sends from its driver to the tasks, and how the tasks read it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from router_spark_amqp.ledger import Row
from router_spark_amqp.rows import RowReader, wire_batch

# A task for fewer rows costs more than it saves.
FEWEST_ROWS = 500
# The most rows of one Arrow batch that Spark is given.
ROWS_AT_ONCE = 10_000


class Packed(InputPartition):
    """Rows in the partition itself, as an Arrow stream, so that no disk has to be shared."""

    def __init__(self, octets: bytes) -> None:
        super().__init__(octets)
        self.octets = octets


def wire(rows: Sequence[Row]) -> pa.RecordBatch:
    """Rows as a batch of `WIRE`."""
    return wire_batch([(row.payload, row.message_format, row.is_settled) for row in rows])


def packed(rows: Sequence[Row], partitions: int) -> list[Packed]:
    """Rows in as many partitions as are worth it, each with rows that came one after another."""
    return [Packed(pack(wire(rows[begin:end]))) for begin, end in shares(len(rows), partitions)]


def pack(batch: pa.RecordBatch) -> bytes:
    """A batch as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    octets: bytes = sink.getvalue().to_pybytes()
    return octets


def shares(count: int, partitions: int) -> list[tuple[int, int]]:
    """Where each of the partitions of so many rows begins and ends."""
    number = min(partitions, -(-count // FEWEST_ROWS))
    ends = [count * (at + 1) // number for at in range(number)]
    return list(zip([0, *ends], ends, strict=False))


def read_packed(partition: Packed, reader: RowReader) -> Iterator[pa.RecordBatch]:
    """The rows of a partition, with the query's columns."""
    with pa.ipc.open_stream(partition.octets) as stream:
        for batch in stream:
            yield from read_batch(batch, reader)


def read_batch(batch: pa.RecordBatch, reader: RowReader) -> Iterator[pa.RecordBatch]:
    """A batch of `WIRE` with the query's columns, in pieces that are not too large."""
    for begin in range(0, batch.num_rows, ROWS_AT_ONCE):
        yield reader.read(batch.slice(begin, ROWS_AT_ONCE))
