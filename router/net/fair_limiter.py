"""Limit concurrent work fairly: each requester has a queue, and the queues take turns.

A requester (`who`) with many requests does not delay the requests of other requesters.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio


class FairLimiter:
    """Limiter of concurrent work, with `capacity` slots that requesters share fairly."""

    def __init__(self, capacity: int) -> None:
        self._free = capacity
        # the queue whose turn is next comes first
        self._queues: dict[str, deque[trio.Event]] = {}

    @property
    def waiting(self) -> int:
        """Return the number of requests that wait for a slot."""
        return sum(map(len, self._queues.values()))

    def waiting_of(self, who: str) -> int:
        """Return the number of requests of `who` that wait for a slot."""
        return len(self._queues.get(who, ()))

    @asynccontextmanager
    async def slot(self, who: str) -> AsyncIterator[None]:
        """Wait for a slot for the requester `who`, and hold it until the `with` block ends."""
        if self._free:
            self._free -= 1
        else:
            await self._wait(who)
        try:
            yield
        finally:
            self._next()

    async def _wait(self, who: str) -> None:
        mine = trio.Event()
        self._queues.setdefault(who, deque()).append(mine)
        try:
            await mine.wait()
        except trio.Cancelled:
            if mine.is_set():
                self._next()
            else:
                queue = self._queues[who]
                queue.remove(mine)
                if not queue:
                    del self._queues[who]
            raise

    def _next(self) -> None:
        """Pass the released slot to the first request in the next queue, or free the slot."""
        if not self._queues:
            self._free += 1
            return
        who = next(iter(self._queues))
        queue = self._queues.pop(who)
        queue.popleft().set()
        if queue:
            self._queues[who] = queue
