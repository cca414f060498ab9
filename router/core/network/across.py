"""Credit where an address has senders or receivers on several sides of a network.

Each sender is backed by the receivers that may have what it sends (`sides`), and all together hold
no more than all receivers back, plus one message ahead each, as `credit` has it for one side. Two
sides of senders are never without a common receiver but where these two are all there is, so it is
enough that neither one side nor all sides hold too much. None of this runs for addresses that are
not sided; it takes a look at each sender and receiver, however many sides there are.
"""

from __future__ import annotations

from typing import Any

from router.core.address import Address, Producer
from router.core.credit import (
    has_too_much_unsettled,
    offer,
    replenish,
    stop,
    take_back,
    taken_by,
)

CLOSEST = 0
MULTICAST = 2
HERE = 0


class Backing:
    """What the receivers of an address can take: those at the same distance, or all of them.

    `by_side` has it for each of the sides that they are on.
    """

    def __init__(self) -> None:
        self.total = 0
        self.by_side: dict[int, int] = {}

    def serves(self, side: int) -> bool:
        """Whether there are receivers for what comes from a side."""
        count = len(self.by_side)
        return count > 1 or (count == 1 and (side == HERE or side not in self.by_side))

    def room(self, side: int) -> int:
        """How many more deliveries from a side these can take."""
        if side == HERE:
            return self.total
        own: int = self.by_side.get(side, 0)
        return self.total - own


def backing_at(address: Address, without: int) -> Backing:
    """The receivers of an address, but those on the side `without`; the nearest, with closest."""
    found = Backing()
    nearest = -1
    for consumer in address.consumers:
        if consumer.side == without != HERE:
            continue
        if address.treatment == CLOSEST:
            if nearest < 0 or consumer.cost < nearest:
                nearest = consumer.cost
                found = Backing()
            elif consumer.cost > nearest:
                continue
        credit = taken_by(consumer)
        found.total += credit
        found.by_side[consumer.side] = found.by_side.get(consumer.side, 0) + credit
    return found


def room(address: Address, side: int) -> int:
    """How many more deliveries from a side the receivers of an address can take."""
    found = backing_at(address, side)
    return found.total - address.waiting.by_side().get(side, 0)


def finish(forwarder: Any, address: Address) -> None:
    """At the end of a turn, see to an address that something has happened to."""
    if address.treatment == MULTICAST:
        replenish(address)
        return
    if address.waiting.count:
        # others may have been nearer until now
        for consumer in list(address.consumers):
            forwarder.serve(consumer)
    farther = forwarder.network.farther
    if farther:
        farther.offer(address)
    replenish_across(address)


def replenish_across(address: Address) -> None:
    """Share what the receivers can take among the senders of an address."""
    producers = address.producers
    if not producers:
        return
    nearest = backing_at(address, HERE)
    farther = nearest
    groups: dict[int, Group] = {}
    granted = 0
    waiting = address.waiting.by_side()
    for producer in producers:
        link = producer.link
        side = producer.side
        granted += link.credit
        group = groups.get(side)
        if group is None:
            backing = nearest
            if not nearest.serves(side):
                # with closest, it is the next ones for whom the nearest are on its own side
                backing = farther = backing_at(address, side)
            group = groups[side] = Group(side, backing, waiting.get(side, 0))
        group.count += 1
        group.granted += link.credit
    total = nearest.total - address.waiting.count
    if farther is not nearest:
        total += farther.total
    left = total - granted
    shares = share_out(list(groups.values()), total, len(producers))
    # what waits may wait for one lane while others have credit
    held_up: dict[Any, int] | None = None
    if address.lanes > 1 and address.waiting.count:
        held_up = address.waiting.senders()
    for producer in producers:
        group = groups[producer.side]
        if not group.is_served:
            _take_back(producer)
            continue
        share: int = shares[producer.side]
        given = offer(producer, share, group.room, min(left, group.room - group.granted))
        if held_up is not None and given == 0 and group.has_credit:
            link = producer.link
            if link.credit == 0 and link not in held_up and not has_too_much_unsettled(link):
                # one message ahead, which may be more urgent than all that waits
                session = link.session
                session.grant(link, 1, False)
                given = 1
        group.granted += given
        left -= given


class Group:
    """The senders of one side: how many, what they hold, and how much there is room for."""

    def __init__(self, side: int, backing: Backing, waiting: int) -> None:
        self.side = side
        self.is_served = backing.serves(side)
        self.room = backing.room(side) - waiting
        self.has_credit = self.room + waiting > 0
        self.count = 0
        self.granted = 0


def share_out(groups: list[Group], total: int, count: int) -> dict[int, int]:
    """How much one sender of each group may hold: who has little room leaves the rest to others."""
    shares = {}
    groups.sort(key=_room_each)
    for group in groups:
        share = max(1, min(group.room // group.count, total // max(1, count)))
        shares[group.side] = share
        total -= share * group.count
        count -= group.count
    return shares


def _room_each(group: Group) -> int:
    return group.room // group.count


def _take_back(producer: Producer) -> None:
    if producer.side != HERE:
        # a router has nothing of its own to send first, as a client may have that is drained
        producer.low_mark = -1
        stop(producer.link)
    else:
        take_back(producer)
