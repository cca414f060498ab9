"""Queue of waiting deliveries: by priority, and oldest first within one priority.

A header's priority (section 3.2.1) matters only here, among waiting deliveries: those that can be
forwarded immediately do not overtake others. There are ten levels, 0 to 9. Nearly all deliveries
have the ordinary level, 4, whose queue always exists; the other queues are made when a delivery of
their priority waits, and removed when none does.

Deliveries that came from elsewhere in a network, or leave on a separate lane, wait apart: there is
a queue for each priority, lane and side, so that a consumer that takes only some of these finds its
next delivery quickly, however many others wait before it. Of several such queues, the one
whose first delivery arrived first is served first. Deliveries from different senders that arrived
in the same turn may be taken in any order.

A delivery removed from the middle is only marked: it stays in its queue, as a husk, until it comes
to the front or the end, or until there are more husks than deliveries. So a removal costs the same
however many deliveries wait (docs/decisions/0096-taking-from-the-middle.md).
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Any

from router.core.model.queues_by_side import (
    Place,
    QueuesBySide,
    lane_of,
    level_of,
    number_in,
    number_of,
)
from router.core.model.size_index import SizeIndex
from router.engine.delivery import Delivery
from router.engine.link import IncomingLink

LEVELS = 10
ORDINARY = 4
HERE = 0
EVERY_LANE = 2**64 - 1
UNLIMITED = 2**64 - 1
# Husks are removed only if there are more than this many.
FEW_HUSKS = 64
# If this many deliveries at the front are too large, the next one is searched by size.
FEW_EXAMINED = 32


class WaitingQueue:
    """Queue of deliveries, ordered by `priority`; `count` is how many deliveries wait."""

    def __init__(self) -> None:
        self.count = 0
        self._ordinary: deque[Delivery] = deque()
        # a queue for each recently used priority, including `_ordinary`; None as long as all
        # deliveries are ordinary
        self._levels: list[deque[Delivery] | None] | None = None
        # the queues of deliveries that wait apart; None if there never were any
        self._apart: QueuesBySide | None = None
        # number of deliveries and queues that the last `take_matching` has visited, and whether it
        # has to be repeated in a later step
        self.examined = 0
        self.is_unfinished = False
        # removed deliveries that are still in a queue; None if there are none, and no `_sized`
        self._husks: set[Delivery] | None = None
        # indices of queues that were searched by size; None if none was
        self._sized: SizeIndex | None = None
        # number of deliveries from each side of a network except `HERE`; None if there are none
        self._elsewhere: dict[int, int] | None = None
        # number of deliveries from each link; None until `senders` is called
        self._senders: dict[IncomingLink | None, int] | None = None

    def append(self, delivery: Delivery) -> None:
        """Append a delivery to the queue of its priority."""
        self._enter(delivery, delivery.incoming)

    def _enter(self, delivery: Delivery, link: IncomingLink | None) -> None:
        if self._husks is not None and delivery in self._husks:
            # otherwise it would still be found at its former place
            self._sweep()
        self.count += 1
        delivery.waits_in = self
        side = HERE if link is None else link.side
        if side:
            self._count_side(side, 1)
        if self._senders is not None:
            self._count_sender(link, 1)
        if side or delivery.lane:
            if self._apart is None:
                self._apart = QueuesBySide()
            self._apart.append(number_of(delivery, side), delivery)
        elif delivery.priority == ORDINARY:
            self._ordinary.append(delivery)
        else:
            self._level(delivery.priority).append(delivery)
        if self._sized is not None:
            self._sized.append(self.count, self._queue_of(delivery), delivery)

    def popleft(self) -> Delivery:
        """Take the oldest delivery of the highest priority; raise IndexError if nothing waits."""
        if self._apart is not None and self._apart.count:
            found = self.take_matching(EVERY_LANE, None, UNLIMITED)
            assert found is not None
            return found
        levels = self._levels
        if levels is None:
            taken: Delivery = self._ordinary.popleft()
            self._leaves(taken)
            if self._husks is not None:
                self._prune(self._ordinary)
            return taken
        for level in range(LEVELS - 1, -1, -1):
            queue = levels[level]
            if queue:
                taken = queue.popleft()
                self._leaves(taken)
                if self._husks is not None:
                    self._prune(queue)
                self._forget_levels()
                return taken
        raise IndexError("nothing waits")

    def take_matching(self, takes: int, sides: set[int] | None, limit: int) -> Delivery | None:
        """Take the next delivery that a consumer may have; return None if there is none.

        The delivery is for one of the lanes `takes` (a bit mask), came from one of `sides` (None
        for all), and has at most `limit` octets. If the search takes too long, return None and set
        `is_unfinished`.
        """
        best: Delivery | None = None
        highest = -1
        self.examined = 0
        self.is_unfinished = False
        if takes & 1 and (sides is None or HERE in sides):
            for queue in self._queues():
                best = self._first(queue, limit)
                if self.is_unfinished:
                    return None
                if best is not None:
                    highest = best.priority
                    break
        if self._apart is not None and self._apart.count:
            for group in self._apart.groups():
                level = level_of(group)
                if level < highest or not takes >> lane_of(group) & 1:
                    continue
                found = self._first_apart(group, sides, limit)
                if self.is_unfinished:
                    return None
                if found is None:
                    continue
                if best is None or level > highest or found.arrived < best.arrived:
                    best = found
                    highest = level
        if best is not None:
            self._take(best)
        return best

    def _first_apart(self, group: int, sides: set[int] | None, limit: int) -> Delivery | None:
        """Return a group's oldest delivery that came from `sides` and is not too large."""
        apart = self._apart
        assert apart is not None
        if sides is not None and len(sides) == 1:
            for side in sides:
                queue = apart.queues.get(number_in(group, side))
                self.examined += 1
                return self._first(queue, limit) if queue else None
        best: Delivery | None = None
        aside: list[Place] = []
        while True:
            queue = apart.first(group, sides, aside)
            self.examined += apart.examined
            if not queue:
                break
            oldest: Delivery = queue[0]
            if best is not None and oldest.arrived >= best.arrived:
                break
            found = self._first(queue, limit)
            if self.is_unfinished:
                break
            if found is not None and (best is None or found.arrived < best.arrived):
                best = found
            if found is oldest:
                break
            # the next queue may have an older delivery
            apart.put_aside(group, aside)
        apart.put_back(group, aside)
        return best

    def _first(self, queue: deque[Delivery], limit: int) -> Delivery | None:
        """Return the first delivery of a queue that has at most `limit` octets."""
        left = FEW_EXAMINED
        for each in queue:
            delivery: Delivery = each
            self.examined += 1
            if delivery.size <= limit and delivery.waits_in is self:
                return delivery
            left -= 1
            if not left:
                return self._first_by_size(queue, limit)
        return None

    def _first_by_size(self, queue: deque[Delivery], limit: int) -> Delivery | None:
        """Return the first delivery of at most `limit` octets, after many others were too large."""
        if self._sized is None:
            self._sized = SizeIndex()
        if self._husks is None:
            # so that queues are pruned whenever a delivery leaves them
            self._husks = set()
        found = self._sized.first(self, queue, limit)
        self.examined += self._sized.examined
        self.is_unfinished = self._sized.is_unfinished
        if found is not None and self._queue_of(found) is not queue:
            # it has moved to another queue meanwhile
            self._sized.forget(queue)
            self.is_unfinished = True
            return None
        return found

    def _queue_of(self, delivery: Delivery) -> Any:
        """Return the queue that a waiting delivery is in."""
        link: IncomingLink | None = delivery.incoming
        side = HERE if link is None else link.side
        if side or delivery.lane:
            return (
                None if self._apart is None else self._apart.queues.get(number_of(delivery, side))
            )
        if self._levels is None:
            return self._ordinary
        return self._levels[delivery.priority]

    def top(self, takes: int = EVERY_LANE) -> int:
        """Return the highest priority that waits for a lane in the mask `takes`, or -1 if none."""
        levels = self._levels
        highest = -1
        if not takes & 1:
            pass
        elif levels is None:
            if self.count > (0 if self._apart is None else self._apart.count):
                highest = ORDINARY
        else:
            for level in range(LEVELS - 1, -1, -1):
                if levels[level]:
                    highest = level
                    break
        if self._apart is not None and self._apart.count:
            highest = max(highest, self._apart.top(takes))
        return highest

    def remove(self, delivery: Delivery) -> bool:
        """Remove a delivery from any place in the queue; return whether it was in the queue."""
        if delivery.waits_in is not self:
            return False
        if self._husks is None:
            self._husks = set()
        self._husks.add(delivery)
        queue = self._queue_of(delivery)
        self._leaves_apart(delivery)
        self._leaves(delivery)
        self._prune(queue)
        if self._husks is not None and len(self._husks) > max(self.count, FEW_HUSKS):
            self._sweep()
        self._forget_levels()
        return True

    def _prune(self, queue: deque[Delivery]) -> None:
        """Remove husks, which are deliveries already removed, from both ends of a queue."""
        husks = self._husks
        if husks is None:
            return
        while queue:
            first: Delivery = queue[0]
            if first.waits_in is self:
                break
            queue.popleft()
            husks.discard(first)
        while queue:
            last: Delivery = queue[len(queue) - 1]
            if last.waits_in is self:
                break
            queue.pop()
            husks.discard(last)
        if self._sized is not None:
            self._sized.drop_departed(self, queue)
            if self.count == 0:
                self._sized = None
        if not husks and self._sized is None:
            self._husks = None

    def _sweep(self) -> None:
        """Remove all husks, which are deliveries already removed."""
        self._husks = None if self._sized is None else set()
        for queue in self._all_queues():
            kept = [each for each in queue if each.waits_in is self]
            queue.clear()
            queue.extend(kept)

    def _take(self, delivery: Delivery) -> None:
        """Take a delivery out of its queue."""
        queue = self._queue_of(delivery)
        first: Delivery = queue[0]
        if first is not delivery:
            self.remove(delivery)
            return
        queue.popleft()
        self._leaves_apart(delivery)
        self._leaves(delivery)
        self._prune(queue)
        self._forget_levels()

    def _leaves_apart(self, delivery: Delivery) -> None:
        link: IncomingLink | None = delivery.incoming
        if self._apart is not None and (delivery.lane or (link is not None and link.side)):
            self._apart.note_removed()

    def extend(self, deliveries: Iterable[Delivery]) -> None:
        """Append deliveries, each to the queue of its priority."""
        for delivery in deliveries:
            self.append(delivery)

    def clear(self) -> None:
        """Remove all deliveries."""
        for queue in self._all_queues():
            for delivery in queue:
                if delivery.waits_in is self:
                    delivery.waits_in = None
        self._husks = None
        self._sized = None
        self.count = 0
        self._ordinary.clear()
        self._levels = None
        self._apart = None
        self._elsewhere = None
        self._senders = None

    def by_side(self) -> dict[int, int]:
        """Return how many waiting deliveries came from each side of a network."""
        counts = {} if self._elsewhere is None else dict(self._elsewhere)
        here = self.count - sum(counts.values())
        if here:
            counts[HERE] = here
        return counts

    def senders(self) -> dict[IncomingLink | None, int]:
        """Return how many waiting deliveries came on each link."""
        if self._senders is None:
            self._senders = {}
            for delivery in self:
                self._count_sender(delivery.incoming, 1)
        return self._senders

    def move_to_link(self, delivery: Delivery, link: IncomingLink) -> bool:
        """Move a delivery to another link of its sender, before the delivery's `incoming` changes.

        Return whether the delivery waits in this queue.
        """
        before = delivery.incoming
        if before.side == link.side:
            # it keeps its place
            self._senders = None
            return delivery.waits_in is self
        if not self.remove(delivery):
            return False
        self._enter(delivery, link)
        return True

    def _leaves(self, delivery: Delivery) -> None:
        self.count -= 1
        delivery.waits_in = None
        if self._elsewhere is not None:
            link: IncomingLink | None = delivery.incoming
            if link is not None and link.side:
                self._count_side(link.side, -1)
        if self._senders is not None:
            self._count_sender(delivery.incoming, -1)

    def _count_sender(self, link: IncomingLink | None, count: int) -> None:
        senders = self._senders
        if senders is None:
            return
        left = senders.get(link, 0) + count
        if left > 0:
            senders[link] = left
        else:
            senders.pop(link, None)

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
        """Yield all deliveries, in the order in which they would be taken."""
        if self._apart is None or not self._apart.count:
            for queue in self._queues():
                for delivery in queue:
                    if delivery.waits_in is self:
                        yield delivery
            return
        levels: dict[int, list[deque[Delivery]]] = {}
        for queue in self._all_queues():
            if queue:
                levels.setdefault(queue[0].priority, []).append(queue)
        for level in sorted(levels, reverse=True):
            for delivery in heapq.merge(*levels[level], key=attrgetter("arrived")):
                if delivery.waits_in is self:
                    yield delivery

    def _all_queues(self) -> list[deque[Delivery]]:
        if self._apart is None:
            return self._queues()
        return [*self._queues(), *self._apart.queues.values()]

    def _queues(self) -> list[deque[Delivery]]:
        if self._levels is None:
            return [self._ordinary]
        return [queue for queue in reversed(self._levels) if queue is not None]

    def _level(self, priority: int) -> deque[Delivery]:
        if self._levels is None:
            self._levels = [None] * LEVELS
            self._levels[ORDINARY] = self._ordinary
        queue = self._levels[priority]
        if queue is None:
            queue = self._levels[priority] = deque()
        return queue

    def _forget_levels(self) -> None:
        """Remove the queues of other priorities once only ordinary deliveries are left."""
        levels = self._levels
        if levels is None:
            return
        for level in range(LEVELS):
            if level != ORDINARY and levels[level]:
                return
        self._levels = None
