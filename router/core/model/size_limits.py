"""Largest message that any receiver of an address accepts, found without examining all receivers.

Nearly all links take messages of any size; only limits are noted (max-message-size, section 2.7.3).
"""

from __future__ import annotations

import heapq

# Stale limits are removed only if there are more than this many.
FEW_STALE = 64


class SizeLimits:
    """Collection of the size limits of an address's receivers.

    `count` is how many receivers have a limit.
    """

    def __init__(self) -> None:
        self.count = 0
        # how many receivers have each limit
        self._receivers: dict[int, int] = {}
        # heap of the negative limits, each once: the largest is first; some are stale
        self._order: list[int] = []

    def add(self, limit: int) -> None:
        """Note a receiver's limit."""
        self.count += 1
        if limit not in self._receivers:
            self._receivers[limit] = 0
            heapq.heappush(self._order, -limit)
        self._receivers[limit] += 1

    def remove(self, limit: int) -> None:
        """Remove the limit of a receiver that has left."""
        self.count -= 1
        self._receivers[limit] -= 1
        while self._order and not self._receivers[-self._order[0]]:
            del self._receivers[-heapq.heappop(self._order)]
        if len(self._order) > 2 * self.count + FEW_STALE:
            self._receivers = {each: count for each, count in self._receivers.items() if count}
            self._order = [-each for each in self._receivers]
            heapq.heapify(self._order)

    def largest(self) -> int:
        """Return the largest limit, in octets; there must be at least one limit."""
        return -self._order[0]
