"""Spool of messages in files until Spark commits them: `delivery = "spool"`.

A batch is written to a file, which is synced before its messages are accepted. From then on the
file replaces the sender's copy: a batch that is replayed is read from the file, row for row.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import attrs
import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows
from pyspark.sql.types import StructType

from router_spark_amqp.ledger import Row
from router_spark_amqp.options import Options
from router_spark_amqp.packing import read_batch, shares, to_wire_batch
from router_spark_amqp.readers import OptionError
from router_spark_amqp.rows import RowReader
from router_spark_amqp.stream import POLL_S, AmqpStreamReader, Offset

SUFFIX = ".arrow"


class SpoolLost(RuntimeError):
    """Error about rows that Spark requests, but that are no longer in the folder."""


@attrs.frozen
class Segment:
    """File with the rows from position `begin` up to but not including `end`."""

    path: Path
    begin: int
    end: int

    @classmethod
    def named(cls, path: Path) -> Self:
        """Return the segment in a file, which has the segment's positions in its name."""
        begin, _, end = path.stem.partition("-")
        return cls(path, int(begin), int(end))


class Spooled(InputPartition):
    """Partition of a segment, read in the task: rows from `begin` up to but not including `end`."""

    def __init__(self, path: Path, begin: int, end: int) -> None:
        super().__init__((str(path), begin, end))
        self.path = path
        self.begin = begin
        self.end = end


class Spool:
    """Folder of segments for one query. Raises OptionError if another query has locked it."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._lock = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            raise OptionError(
                f"option spoolDirectory is {str(folder)!r}, which another query uses:"
                " each query needs its own folder"
            ) from None
        for unfinished in folder.glob(f".*{SUFFIX}"):
            unfinished.unlink()
        self._segments = sorted(map(Segment.named, folder.glob(f"*{SUFFIX}")), key=_begin)

    @property
    def end(self) -> int:
        """Return the position at which the last segment ends, or 0 if there is none."""
        return self._segments[-1].end if self._segments else 0

    def write(self, begin: int, rows: Sequence[Row]) -> Segment:
        """Write rows to a segment, which is synced when this returns.

        Raises OSError if that fails.
        """
        end = begin + len(rows)
        path = self._folder / f"{begin:020d}-{end:020d}{SUFFIX}"
        unfinished = path.with_name(f".{path.name}")
        batch = to_wire_batch(rows)
        with unfinished.open("wb") as file:
            with pa.ipc.new_file(file, batch.schema) as writer:
                writer.write_batch(batch)
            file.flush()
            os.fsync(file.fileno())
        unfinished.rename(path)
        with _opened(self._folder) as folder:
            os.fsync(folder)
        segment = Segment(path, begin, end)
        self._segments.append(segment)
        return segment

    def next_end(self, position: int, limit: int | None) -> int | None:
        """Return the end of a batch from `position`, or None if no rows from there on are spooled.

        The batch has whole segments. They have at most `limit` rows, unless the first one has more.
        """
        end = None
        for segment in self._segments:
            if segment.begin < position:
                continue
            if end is not None and limit is not None and segment.end - position > limit:
                break
            end = segment.end
        return end

    def between(self, begin: int, end: int) -> list[Segment]:
        """Return the segments between the positions `begin` and `end`.

        Raises SpoolLost if a segment is missing.
        """
        found = [each for each in self._segments if begin <= each.begin and each.end <= end]
        begins = [each.begin for each in found]
        ends = [each.end for each in found]
        if [*begins, end] != [begin, *ends]:
            raise SpoolLost(f"rows {begin} to {end} are not in {self._folder}: was it emptied?")
        return found

    def forget(self, position: int) -> None:
        """Delete the segments up to a position."""
        while self._segments and self._segments[0].end <= position:
            self._segments.pop(0).path.unlink(missing_ok=True)

    def close(self) -> None:
        """Unlock the folder."""
        os.close(self._lock)


def _begin(segment: Segment) -> int:
    return segment.begin


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


class AmqpSpoolReader(AmqpStreamReader):
    """Streaming reader whose micro-batches can be replayed, from files in `spoolDirectory`.

    A message is accepted once its file is synced, before Spark plans the batch with the message.
    The file is deleted when the batch is committed. A replayed batch has the same rows again. A
    message is duplicated if this process dies, or the link is lost, after the sync and before the
    accept.
    """

    def __init__(self, options: Options, schema: StructType) -> None:
        super().__init__(options, schema)
        self._spool: Spool | None = None

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # type: ignore[override]  # noqa: N802
        """Return the end of the next batch, or `start` if there are no rows.

        If no rows after `start` are spooled, received rows are written to a new segment. Raises
        SourceLost if the source cannot reconnect, OSError if the segment cannot be written, and
        OptionError if another query has locked the folder.
        """
        spool = self._opened()
        position = start["position"]
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        end = spool.next_end(position, most)
        if end is not None:
            return Offset(run=start["run"], position=end, beat=0)
        begin = max(position, spool.end)
        intake = self._started(Offset(run=start["run"], position=begin, beat=0))
        while True:
            intake.check()
            batch = intake.make_batch(most) if intake.wait(POLL_S) else None
            if batch is not None:
                spool.write(batch.begin, batch.rows)
                intake.commit(batch.end)
                return Offset(run=start["run"], position=batch.end, beat=0)
            if intake.is_dry or not self._drains:
                return start

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:  # type: ignore[override]
        """Return partitions of the segments between two offsets.

        Raises SpoolLost if a segment is missing.
        """
        if start["position"] == end["position"]:
            return []
        return [
            Spooled(segment.path, first, last)
            for segment in self._opened().between(start["position"], end["position"])
            for first, last in shares(segment.end - segment.begin, self._options.partitions)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read and decode a partition; called in a task."""
        assert isinstance(partition, Spooled)
        reader = RowReader(self._options, self._schema)
        with pa.memory_map(str(partition.path)) as file, pa.ipc.open_file(file) as segment:
            rows = segment.get_batch(0).slice(partition.begin, partition.end - partition.begin)
            yield from read_batch(rows, reader)

    def commit(self, end: Offset) -> None:  # type: ignore[override]
        """Delete the segments that Spark has committed."""
        self._opened().forget(end["position"])

    def stop(self) -> None:
        """Close the connection and unlock the folder."""
        super().stop()
        if self._spool is not None:
            self._spool.close()

    def _opened(self) -> Spool:
        if self._spool is None:
            folder = self._options.spool_directory
            assert folder is not None, "checked with the options"
            self._spool = Spool(folder)
        return self._spool
