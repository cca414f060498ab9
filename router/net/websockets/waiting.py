"""Requests for WebSockets that wait for their turn, of which there may be only so many.

A client can send requests faster than they are answered, and then close: each would be kept, with
its task and its socket, until its turn. So if too many wait, the oldest request from the host with
the most is given up.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import trio

from router.fairness import HostFairQueue

# Answering so many takes about a quarter of a second.
MOST_WAITING: Final = 128


class WaitingRequests:
    """Requests that wait for `step(host)` to return."""

    def __init__(self, step: Callable[[str], Awaitable[object]], most: int = MOST_WAITING) -> None:
        self._step = step
        self._most = most
        self._waiting: HostFairQueue[trio.CancelScope] = HostFairQueue()

    async def turn(self, host: str) -> bool:
        """Wait until a request may be answered; return False if it was given up instead."""
        with trio.CancelScope() as scope:
            self._waiting.add(host, scope)
            if len(self._waiting) > self._most:
                largest = self._waiting.largest()
                oldest = self._waiting.oldest(largest)
                self._waiting.discard(largest, oldest)
                oldest.cancel()
            try:
                await self._step(host)
            finally:
                self._waiting.discard(host, scope)
        return not scope.cancelled_caught
