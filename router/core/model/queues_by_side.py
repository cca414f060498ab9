"""Queues of deliveries that came from other sides of a network, or that leave on a separate lane.

There is a queue for each priority, lane and side, and each edge is a side, so there may be
thousands. The queues of a priority and lane form a group, ordered by the arrival of their first
deliveries: a consumer that takes from most sides finds the oldest without examining each queue.
"""

from __future__ import annotations

import heapq
from collections import deque

from router.engine.delivery import Delivery

# A queue's number consists of its priority, its lane and its side. A group's number is the same
# without a side.
LEVEL_BITS = 4
LANE_BITS = 8
GROUP_BITS = LEVEL_BITS + LANE_BITS
LEVEL_MASK = (1 << LEVEL_BITS) - 1
GROUP_MASK = (1 << GROUP_BITS) - 1
# The number of empty queues that are kept for reuse when no delivery is left.
MOST_EMPTY = 16
# A queue's entry in the order of its group.
Place = tuple[float, int, int]


class QueuesBySide:
    """Set of numbered queues; `count` is how many deliveries wait in all of them."""

    def __init__(self) -> None:
        self.count = 0
        self.queues: dict[int, deque[Delivery]] = {}
        # how many queues the last `first` examined
        self.examined = 0
        # for each group a heap of its queues: the arrival of the first delivery of each, or of an
        # earlier one that has left; how many queues were made before it; and its number
        self._orders: dict[int, list[Place]] = {}
        self._made = 0

    def append(self, number: int, delivery: Delivery) -> None:
        """Append a delivery to the queue with this number."""
        self.count += 1
        queue = self.queues.get(number)
        if queue is None:
            queue = self.queues[number] = deque()
            order = self._orders.setdefault(number & GROUP_MASK, [])
            heapq.heappush(order, (delivery.arrived, self._made, number))
            self._made += 1
        queue.append(delivery)

    def note_removed(self) -> None:
        """Note that a delivery has left its queue."""
        self.count -= 1
        if self.count == 0 and len(self.queues) > MOST_EMPTY:
            self.queues.clear()
            self._orders.clear()

    def groups(self) -> list[int]:
        """Return the numbers of groups (priority and lane) in which deliveries wait or waited."""
        return list(self._orders)

    def first(
        self, group: int, sides: set[int] | None, aside: list[Place]
    ) -> deque[Delivery] | None:
        """Return that queue of a group whose first delivery is the oldest; None if all are empty.

        Only the queues for `sides` are considered, or all queues if `sides` is None. Queues for
        other sides are moved from the group's order to `aside`; `put_back` restores them.
        """
        order = self._orders.get(group)
        self.examined = 0
        while order:
            self.examined += 1
            came, made, number = order[0]
            queue = self.queues[number]
            if not queue:
                heapq.heappop(order)
                del self.queues[number]
                continue
            if sides is not None and number >> GROUP_BITS not in sides:
                aside.append(heapq.heappop(order))
                continue
            head: Delivery = queue[0]
            if head.arrived <= came:
                return queue
            heapq.heapreplace(order, (head.arrived, made, number))
        if order is not None and not order and not aside:
            del self._orders[group]
        return None

    def put_aside(self, group: int, aside: list[Place]) -> None:
        """Move the first queue in a group's order to `aside`."""
        aside.append(heapq.heappop(self._orders[group]))

    def put_back(self, group: int, aside: list[Place]) -> None:
        """Put the queues in `aside` back into the order of their group."""
        for each in aside:
            heapq.heappush(self._orders[group], each)

    def top(self, takes: int) -> int:
        """Return the highest priority that waits for a lane in the mask `takes`, or -1 if none."""
        highest = -1
        for group in list(self._orders):
            level = group & LEVEL_MASK
            if level > highest and takes >> (group >> LEVEL_BITS) & 1:
                if self.first(group, None, []) is not None:
                    highest = level
        return highest


def level_of(group: int) -> int:
    """Return the priority of the group of queues with this number."""
    return group & LEVEL_MASK


def lane_of(group: int) -> int:
    """Return the lane of the group of queues with this number."""
    return group >> LEVEL_BITS


def number_in(group: int, side: int) -> int:
    """Return the number of a group's queue for deliveries from `side`."""
    return side << GROUP_BITS | group


def number_of(delivery: Delivery, side: int) -> int:
    """Return the number of the queue for a delivery that came from `side`."""
    return (side << LANE_BITS | delivery.lane) << LEVEL_BITS | delivery.priority
