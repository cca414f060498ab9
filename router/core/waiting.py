"""What waits, in the order in which it is to be taken: by priority, and oldest first within one.

A header's priority (section 3.2.1) is looked at only here, among what waits: what can be sent on at
once overtakes nothing. There are ten levels, 0 to 9. Nearly everything has the ordinary one, 4, and
its queue is always there; the others are made when something of their priority waits, and gone
when nothing does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from router.engine.delivery import Delivery

LEVELS = 10
ORDINARY = 4


class WaitingQueue:
    """Deliveries by their `priority`; `count` is how many there are."""

    def __init__(self) -> None:
        self.count = 0
        self._ordinary: deque[Any] = deque()
        # one for each priority that something had of late, and `_ordinary` among them; None as
        # long as all that waits is ordinary
        self._levels: list[deque[Any] | None] | None = None

    def append(self, delivery: Delivery) -> None:
        """Put a delivery behind the others of its priority."""
        self.count += 1
        if delivery.priority == ORDINARY:
            self._ordinary.append(delivery)
        else:
            self._level(delivery.priority).append(delivery)

    def popleft(self) -> Delivery:
        """Take the oldest of the highest priority; IndexError where nothing waits."""
        levels = self._levels
        if levels is None:
            taken: Delivery = self._ordinary.popleft()
            self.count -= 1
            return taken
        for level in range(LEVELS - 1, -1, -1):
            queue = levels[level]
            if queue:
                self.count -= 1
                taken = queue.popleft()
                self._forget_levels()
                return taken
        raise IndexError("nothing waits")

    def remove(self, delivery: Delivery) -> bool:
        """Take a delivery out, wherever it stands; whether it was here."""
        for queue in self._queues():
            if delivery in queue:
                queue.remove(delivery)
                self.count -= 1
                self._forget_levels()
                return True
        return False

    def take_out(self, is_meant: Callable[[Any], bool]) -> list[Any]:
        """Take out all that `is_meant` is true of, in the order in which they would be taken."""
        taken: list[Any] = []
        kept: list[Any] = []
        for delivery in self:
            (taken if is_meant(delivery) else kept).append(delivery)
        if taken:
            self.clear()
            self.extend(kept)
        return taken

    def extend(self, deliveries: Iterable[Delivery]) -> None:
        """Put deliveries behind the others, each in its priority."""
        for delivery in deliveries:
            self.append(delivery)

    def clear(self) -> None:
        """Let go of everything."""
        self.count = 0
        self._ordinary.clear()
        self._levels = None

    def __len__(self) -> int:
        return self.count

    def __bool__(self) -> bool:
        return self.count > 0

    def __iter__(self) -> Iterator[Delivery]:
        """All, in the order in which they would be taken."""
        for queue in self._queues():
            yield from queue

    def _queues(self) -> list[deque[Any]]:
        if self._levels is None:
            return [self._ordinary]
        return [queue for queue in reversed(self._levels) if queue is not None]

    def _level(self, priority: int) -> deque[Any]:
        if self._levels is None:
            self._levels = [None] * LEVELS
            self._levels[ORDINARY] = self._ordinary
        queue = self._levels[priority]
        if queue is None:
            queue = self._levels[priority] = deque()
        return queue

    def _forget_levels(self) -> None:
        """Keep no empty queues when nothing but ordinary deliveries is left."""
        if self._levels is not None and self.count == len(self._ordinary):
            self._levels = None
