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
HERE = 0


class WaitingQueue:
    """Deliveries by their `priority`; `count` is how many there are."""

    def __init__(self) -> None:
        self.count = 0
        self._ordinary: deque[Any] = deque()
        # one for each priority that something had of late, and `_ordinary` among them; None as
        # long as all that waits is ordinary
        self._levels: list[deque[Any] | None] | None = None
        # how many came from each side of a network but `HERE`; None where none did
        self._elsewhere: dict[int, int] | None = None

    def append(self, delivery: Delivery) -> None:
        """Put a delivery behind the others of its priority."""
        self.count += 1
        link: Any = delivery.incoming
        if link is not None and link.side:
            self._count_side(link.side, 1)
        if delivery.priority == ORDINARY:
            self._ordinary.append(delivery)
        else:
            self._level(delivery.priority).append(delivery)

    def popleft(self) -> Delivery:
        """Take the oldest of the highest priority; IndexError where nothing waits."""
        levels = self._levels
        if levels is None:
            taken: Delivery = self._ordinary.popleft()
            self._leaves(taken)
            return taken
        for level in range(LEVELS - 1, -1, -1):
            queue = levels[level]
            if queue:
                taken = queue.popleft()
                self._leaves(taken)
                self._forget_levels()
                return taken
        raise IndexError("nothing waits")

    def top(self) -> int:
        """The highest priority of what waits; -1 where nothing does."""
        levels = self._levels
        if levels is None:
            return ORDINARY if self.count else -1
        for level in range(LEVELS - 1, -1, -1):
            if levels[level]:
                return level
        return -1

    def remove(self, delivery: Delivery) -> bool:
        """Take a delivery out, wherever it stands; whether it was here."""
        for queue in self._queues():
            if delivery in queue:
                queue.remove(delivery)
                self._leaves(delivery)
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
        self._elsewhere = None

    def by_side(self) -> dict[int, int]:
        """How many wait of what came from each side of a network that something came from."""
        counts = {} if self._elsewhere is None else dict(self._elsewhere)
        here = self.count - sum(counts.values())
        if here:
            counts[HERE] = here
        return counts

    def has_moved(self, before: int, side: int) -> None:
        """The sender of one delivery goes on from another side than it came from."""
        if self.by_side().get(before, 0) == 0:
            # it waits elsewhere, for one receiver alone
            return
        if before:
            self._count_side(before, -1)
        if side:
            self._count_side(side, 1)

    def _leaves(self, delivery: Delivery) -> None:
        self.count -= 1
        if self._elsewhere is not None:
            link: Any = delivery.incoming
            if link is not None and link.side:
                self._count_side(link.side, -1)

    def _count_side(self, side: int, count: int) -> None:
        counts = self._elsewhere
        if counts is None:
            counts = self._elsewhere = {}
        left = counts.get(side, 0) + count
        if left:
            counts[side] = left
        else:
            counts.pop(side, None)
            if not counts:
                self._elsewhere = None

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
