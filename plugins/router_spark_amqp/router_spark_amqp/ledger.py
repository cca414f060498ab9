"""Bookkeeping of received messages: waiting, in a batch, or committed by Spark.

The ledger depends neither on threads nor on AMQP. It returns the rows that it removes, and the
caller settles their deliveries.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Protocol

import attrs


class Settled(Protocol):
    """Interface of `router.client.ReceivedMessage` for settling the delivery of a row."""

    def accept(self) -> None:
        """Settle as accepted: the message was processed."""

    def release(self) -> None:
        """Settle as released: the message was not processed."""

    def modify(self, *, delivery_failed: bool = False, undeliverable_here: bool = False) -> None:
        """Settle as modified: the message may have been processed."""


@attrs.frozen(eq=False)
class Row:
    """Received message; if `is_settled`, the message was sent settled and is never redelivered."""

    delivery: Settled
    payload: bytes
    message_format: int
    is_settled: bool


@attrs.frozen(eq=False)
class Batch:
    """Rows of one micro-batch, from position `begin` up to but not including `end`."""

    begin: int
    end: int
    rows: list[Row]


class Ledger:
    """Ledger of held rows, which first wait, and then are in a batch until it is committed.

    `count` and `octets` are the totals of all held rows, which the caller limits.
    """

    def __init__(self) -> None:
        self.position = 0
        self.count = 0
        self.octets = 0
        self._waiting: deque[Row] = deque()
        self._batches: deque[Batch] = deque()

    @property
    def waiting(self) -> int:
        """Return how many rows are in no batch yet."""
        return len(self._waiting)

    @property
    def has_uncommitted(self) -> bool:
        """Return whether there is a batch that Spark has not committed."""
        return bool(self._batches)

    def add(self, rows: Iterable[Row]) -> None:
        """Add received rows."""
        for row in rows:
            self._waiting.append(row)
            self.count += 1
            self.octets += len(row.payload)

    def make_batch(self, limit: int | None) -> Batch | None:
        """Make a batch of at most `limit` waiting rows; return None if there are none."""
        count = len(self._waiting) if limit is None else min(limit, len(self._waiting))
        if not count:
            return None
        rows = [self._waiting.popleft() for _ in range(count)]
        batch = Batch(self.position, self.position + count, rows)
        self.position = batch.end
        self._batches.append(batch)
        return batch

    def between(self, begin: int, end: int) -> list[Row]:
        """Return the rows of the uncommitted batches between the positions `begin` and `end`."""
        return [
            row
            for batch in self._batches
            if begin <= batch.begin and batch.end <= end
            for row in batch.rows
        ]

    def commit(self, position: int) -> list[Row]:
        """Remove the batches up to a position, which Spark has committed; return their rows."""
        taken: list[Row] = []
        while self._batches and self._batches[0].end <= position:
            taken += self._batches.popleft().rows
        self._forget(taken)
        return taken

    def lose_link(self) -> int:
        """Drop waiting rows that cannot be settled because the link is lost; return how many.

        The peer will deliver their messages again. Rows that were sent settled are kept, since they
        will not be delivered again. Batches keep their rows, which Spark may be reading.
        """
        dropped = [row for row in self._waiting if not row.is_settled]
        self._waiting = deque(row for row in self._waiting if row.is_settled)
        self._forget(dropped)
        return len(dropped)

    def give_up(self) -> tuple[list[Row], list[Row]]:
        """Remove all rows; return the waiting rows, and the rows of uncommitted batches."""
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
