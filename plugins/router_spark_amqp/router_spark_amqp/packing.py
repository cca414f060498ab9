"""Partitions of received messages: packed in the driver as Arrow streams, read in the tasks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from router_spark_amqp.ledger import Row
from router_spark_amqp.rows import RowReader, wire_batch

# A task for fewer rows costs more than it saves.
FEWEST_ROWS = 500
# Maximum number of rows of an Arrow batch that Spark gets.
ROWS_AT_ONCE = 10_000


class Packed(InputPartition):
    """Partition that contains its rows, as an Arrow stream, so that no shared disk is needed."""

    def __init__(self, octets: bytes) -> None:
        super().__init__(octets)
        self.octets = octets


def to_wire_batch(rows: Sequence[Row]) -> pa.RecordBatch:
    """Return rows as a batch with the schema `WIRE`."""
    return wire_batch([(row.payload, row.message_format, row.is_settled) for row in rows])


def packed(rows: Sequence[Row], partitions: int) -> list[Packed]:
    """Divide rows into partitions of consecutive rows, with the sizes from `shares`."""
    return [
        Packed(pack(to_wire_batch(rows[begin:end]))) for begin, end in shares(len(rows), partitions)
    ]


def pack(batch: pa.RecordBatch) -> bytes:
    """Return a batch as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    octets: bytes = sink.getvalue().to_pybytes()
    return octets


def shares(count: int, partitions: int) -> list[tuple[int, int]]:
    """Return the begin and end of each partition of `count` rows.

    There is one partition for each `FEWEST_ROWS` rows, rounded up, but at most `partitions`.
    """
    number = min(partitions, -(-count // FEWEST_ROWS))
    ends = [count * (at + 1) // number for at in range(number)]
    return list(zip([0, *ends], ends, strict=False))


def read_packed(partition: Packed, reader: RowReader) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a partition, decoded to the query's columns."""
    with pa.ipc.open_stream(partition.octets) as stream:
        for batch in stream:
            yield from read_batch(batch, reader)


def read_batch(batch: pa.RecordBatch, reader: RowReader) -> Iterator[pa.RecordBatch]:
    """Yield a batch of `WIRE`, decoded to the query's columns, `ROWS_AT_ONCE` rows at a time."""
    for begin in range(0, batch.num_rows, ROWS_AT_ONCE):
        yield reader.read(batch.slice(begin, ROWS_AT_ONCE))
