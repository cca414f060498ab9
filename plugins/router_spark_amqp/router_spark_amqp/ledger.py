"""Which messages are here, which of them are in a batch, and which batches Spark has not committed.

Nothing here knows of threads or of AMQP beyond the one delivery of each row, which is settled by
whoever takes the row out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Protocol

import attrs


class Settled(Protocol):
    """The delivery of a row, as `router.client.Received` is one."""

    def accept(self) -> None:
        """It was processed."""

    def release(self) -> None:
        """It was not processed."""

    def modify(self, *, delivery_failed: bool = False, undeliverable_here: bool = False) -> None:
        """It may have been processed."""


@attrs.frozen(eq=False)
class Row:
    """A message that came; `is_settled` says that its sender settled it and will not repeat it."""

    delivery: Settled
    payload: bytes
    message_format: int
    is_settled: bool


@attrs.frozen(eq=False)
class Batch:
    """The rows behind the position `begin`, up to `end`: one micro-batch has them."""

    begin: int
    end: int
    rows: list[Row]


class Ledger:
    """Rows on their way: waiting, then in a batch, then gone.

    `count` and `octets` are of all of them, so that they can be bounded.
    """

    def __init__(self) -> None:
        self.position = 0
        self.count = 0
        self.octets = 0
        self._waiting: deque[Row] = deque()
        self._batches: deque[Batch] = deque()

    @property
    def waiting(self) -> int:
        """How many rows are in no batch yet."""
        return len(self._waiting)

    @property
    def has_uncommitted(self) -> bool:
        """Whether a batch has been cut that Spark has not committed."""
        return bool(self._batches)

    def add(self, rows: Iterable[Row]) -> None:
        """Rows have come."""
        for row in rows:
            self._waiting.append(row)
            self.count += 1
            self.octets += len(row.payload)

    def cut(self, limit: int | None) -> Batch | None:
        """Make a batch of what waits, of no more rows than `limit`; None where nothing waits."""
        count = len(self._waiting) if limit is None else min(limit, len(self._waiting))
        if not count:
            return None
        rows = [self._waiting.popleft() for _ in range(count)]
        batch = Batch(self.position, self.position + count, rows)
        self.position = batch.end
        self._batches.append(batch)
        return batch

    def between(self, begin: int, end: int) -> list[Row]:
        """The rows of the uncommitted batches behind `begin`, up to `end`."""
        return [
            row
            for batch in self._batches
            if begin <= batch.begin and batch.end <= end
            for row in batch.rows
        ]

    def commit(self, position: int) -> list[Row]:
        """Take out the batches up to a position: Spark wants them no more."""
        taken: list[Row] = []
        while self._batches and self._batches[0].end <= position:
            taken += self._batches.popleft().rows
        self._forget(taken)
        return taken

    def lose_link(self) -> int:
        """The link is lost, and so is the right to settle; returns how many rows were dropped.

        What waits comes again, so it goes, except for what was settled by its sender. Batches keep
        their rows: Spark may be reading them.
        """
        dropped = [row for row in self._waiting if not row.is_settled]
        self._waiting = deque(row for row in self._waiting if row.is_settled)
        self._forget(dropped)
        return len(dropped)

    def give_up(self) -> tuple[list[Row], list[Row]]:
        """Take everything out: what no batch had, and what one had that was not committed."""
        waiting = list(self._waiting)
        batched = [row for batch in self._batches for row in batch.rows]
        self._waiting.clear()
        self._batches.clear()
        self._forget(waiting)
        self._forget(batched)
        return waiting, batched

    def _forget(self, rows: Iterable[Row]) -> None:
        for row in rows:
            self.count -= 1
            self.octets -= len(row.payload)
