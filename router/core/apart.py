"""What waits apart: the queues of what came from other sides of a network, or goes on by a lane.

There is a queue for each priority, lane and side, and there may be thousands of sides: each edge is
one. So the queues of a priority and lane, a group, are kept in the order in which their first
deliveries came, and who takes from most sides finds the oldest without a look at each.
"""

from __future__ import annotations

import heapq
from collections import deque
from typing import Any

from router.engine.delivery import Delivery

# How the number of a queue is made up: its priority, its lane and its side. That of a group is the
# same without a side.
LEVEL_BITS = 4
LANE_BITS = 8
GROUP_BITS = LEVEL_BITS + LANE_BITS
LEVEL_MASK = (1 << LEVEL_BITS) - 1
GROUP_MASK = (1 << GROUP_BITS) - 1
# When nothing is left, so many empty queues are kept for what comes next.
MOST_EMPTY = 16
# Where a queue stands in the order of its group.
Place = tuple[float, int, int]


class Apart:
    """The queues by their numbers; `count` is how many deliveries wait in them."""

    def __init__(self) -> None:
        self.count = 0
        self.queues: dict[int, deque[Any]] = {}
        # at how many queues the last `first` has looked
        self.looked_at = 0
        # for each group a heap of its queues: when the first delivery of each came, or an earlier
        # one that has left; how many queues were made before it; and its number
        self._orders: dict[int, list[Place]] = {}
        self._made = 0

    def append(self, number: int, delivery: Delivery) -> None:
        """Put a delivery behind the others of a queue."""
        self.count += 1
        queue = self.queues.get(number)
        if queue is None:
            queue = self.queues[number] = deque()
            order = self._orders.setdefault(number & GROUP_MASK, [])
            heapq.heappush(order, (delivery.arrived, self._made, number))
            self._made += 1
        queue.append(delivery)

    def leaves(self) -> None:
        """Count a delivery that has left its queue."""
        self.count -= 1
        if self.count == 0 and len(self.queues) > MOST_EMPTY:
            self.queues.clear()
            self._orders.clear()

    def groups(self) -> list[int]:
        """Return the groups that something waits in, or has waited in."""
        return list(self._orders)

    def first(self, group: int, sides: set[int] | None, aside: list[Place]) -> Any:
        """Return the queue of a group whose first delivery is the oldest; None without one.

        What is not from one of the sides is taken out of the order, and put `aside`.
        """
        order = self._orders.get(group)
        self.looked_at = 0
        while order:
            self.looked_at += 1
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
        """Take the first queue of a group out of the order for now."""
        aside.append(heapq.heappop(self._orders[group]))

    def put_back(self, group: int, aside: list[Place]) -> None:
        """Let the queues be in the order of their group again."""
        for each in aside:
            heapq.heappush(self._orders[group], each)

    def top(self, takes: int) -> int:
        """Return the highest priority of what waits, for some lanes, given as bits; -1 where
        nothing does.
        """
        highest = -1
        for group in list(self._orders):
            level = group & LEVEL_MASK
            if level > highest and takes >> (group >> LEVEL_BITS) & 1:
                if self.first(group, None, []) is not None:
                    highest = level
        return highest


def level_of(group: int) -> int:
    """Return the priority of what waits in a group."""
    return group & LEVEL_MASK


def lane_of(group: int) -> int:
    """Return the lane by which what waits in a group goes on."""
    return group >> LEVEL_BITS


def number_in(group: int, side: int) -> int:
    """Return the number of the queue of a group for what comes from a side."""
    return side << GROUP_BITS | group


def number_of(delivery: Delivery, side: int) -> int:
    """Return the number of the queue that a delivery from a side waits in."""
    return (side << LANE_BITS | delivery.lane) << LEVEL_BITS | delivery.priority
