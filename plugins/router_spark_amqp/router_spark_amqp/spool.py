"""Messages in files until Spark has committed them: `delivery = "spool"`.

A batch is written to a file that is synced before its messages are accepted. From then on the file
stands for the sender: a batch that is replayed is read from it again, row for row.
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
from router_spark_amqp.packing import read_batch, shares, wire
from router_spark_amqp.readers import OptionError
from router_spark_amqp.rows import RowReader
from router_spark_amqp.stream import POLL_S, AmqpStreamReader, Offset

SUFFIX = ".arrow"


class SpoolLost(RuntimeError):
    """Spark wants rows that are not in the folder any more."""


@attrs.frozen
class Segment:
    """A file with the rows behind the position `begin`, up to `end`; its name says which."""

    path: Path
    begin: int
    end: int

    @classmethod
    def named(cls, path: Path) -> Self:
        """The segment that a file's name tells of."""
        begin, _, end = path.stem.partition("-")
        return cls(path, int(begin), int(end))


class Spooled(InputPartition):
    """Some rows of a segment, which is read in the task."""

    def __init__(self, path: Path, begin: int, end: int) -> None:
        super().__init__((str(path), begin, end))
        self.path = path
        self.begin = begin
        self.end = end


class Spool:
    """A folder of segments, for one query at a time. Raises OptionError where another has it."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._lock = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            raise OptionError(
                f"option spoolDirectory is {str(folder)!r}, which another query has:"
                " allowed is a folder for each query"
            ) from None
        for unfinished in folder.glob(f".*{SUFFIX}"):
            unfinished.unlink()
        self._segments = sorted(map(Segment.named, folder.glob(f"*{SUFFIX}")), key=_begin)

    @property
    def end(self) -> int:
        """Up to where there are rows, or were; 0 where nothing is here."""
        return self._segments[-1].end if self._segments else 0

    def write(self, begin: int, rows: Sequence[Row]) -> Segment:
        """Write rows to a segment; it is on the disk when this returns. Raises OSError."""
        end = begin + len(rows)
        path = self._folder / f"{begin:020d}-{end:020d}{SUFFIX}"
        unfinished = path.with_name(f".{path.name}")
        batch = wire(rows)
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
        """Where a batch of whole segments behind a position would end; None where there is none.

        It has no more rows than `limit`, except where the first segment has more.
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
        """The segments of a range. Raises SpoolLost where some of them are not here."""
        found = [each for each in self._segments if begin <= each.begin and each.end <= end]
        if not found or found[-1].end != end:
            raise SpoolLost(f"rows {begin} to {end} are not in {self._folder}: was it emptied?")
        return found

    def forget(self, position: int) -> None:
        """Remove what lies up to a position."""
        while self._segments and self._segments[0].end <= position:
            self._segments.pop(0).path.unlink(missing_ok=True)

    def close(self) -> None:
        """Let another query have the folder."""
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
    """Micro-batches that can be replayed, from files in `spoolDirectory`.

    A message is accepted when the file with it is synced, before Spark knows of it; the file goes
    when its batch is committed. A batch that is replayed has the same rows again. A message comes
    twice where this process dies, or the link is lost, between the sync and the accept.
    """

    def __init__(self, options: Options, schema: StructType) -> None:
        super().__init__(options, schema)
        self._spool: Spool | None = None

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # type: ignore[override]  # noqa: N802
        """Where a batch of what is in files, or has come since, would end.

        Raises SourceLost, OSError where a file cannot be written, and OptionError where another
        query has the folder.
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
            batch = intake.cut(most) if intake.wait(POLL_S) else None
            if batch is not None:
                spool.write(batch.begin, batch.rows)
                intake.commit(batch.end)
                return Offset(run=start["run"], position=batch.end, beat=0)
            if intake.is_dry or not self._drains:
                return start

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:  # type: ignore[override]
        """Shares of the segments between two offsets. Raises SpoolLost."""
        if start["position"] == end["position"]:
            return []
        return [
            Spooled(segment.path, first, last)
            for segment in self._opened().between(start["position"], end["position"])
            for first, last in shares(segment.end - segment.begin, self._options.partitions)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read and decode rows of a segment; in a task."""
        assert isinstance(partition, Spooled)
        reader = RowReader(self._options, self._schema)
        with pa.memory_map(str(partition.path)) as file, pa.ipc.open_file(file) as segment:
            rows = segment.get_batch(0).slice(partition.begin, partition.end - partition.begin)
            yield from read_batch(rows, reader)

    def commit(self, end: Offset) -> None:  # type: ignore[override]
        """Remove the files of what Spark wants no more."""
        self._opened().forget(end["position"])

    def stop(self) -> None:
        """Close the connection, and let go of the folder."""
        super().stop()
        if self._spool is not None:
            self._spool.close()

    def _opened(self) -> Spool:
        if self._spool is None:
            folder = self._options.spool_directory
            assert folder is not None, "checked with the options"
            self._spool = Spool(folder)
        return self._spool
