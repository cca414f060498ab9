"""Share credit if an address has senders or receivers on several sides of a network.

A sender gets credit only for receivers that may get its messages (`sides`). The senders of one side
together hold no more credit than these receivers have given, and all senders together no more than
all receivers have given. In addition, each sender may hold a credit of one, as in `credit`.

Nothing in this module runs for addresses whose links are all on one side. Each link is examined
once, however many sides there are. If there are very many links, they are examined in later turns
(`Sharing`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sized
from functools import partial
from typing import TYPE_CHECKING

from router.core.deliveries.credit import (
    TreeCredit,
    has_too_much_unsettled,
    offer,
    replenish_trees,
    room_of,
    take_back,
)
from router.core.model.address import Address

if TYPE_CHECKING:
    from router.core.ports import Core
    from router.engine.link import IncomingLink

# the same values as in `model.address`; typed in the .pxd file, for fast comparison
CLOSEST = 0
MULTICAST = 2
HERE = 0
# Up to this many links of an address are examined in one turn; if it has more, A_STEP links are
# examined in each step of later turns.
AT_ONCE = 2048
A_STEP = 128


class Capacity:
    """Count of the deliveries that an address's receivers can take, in total and for each side.

    If the treatment is closest, only the nearest receivers count.
    """

    def __init__(self) -> None:
        self.total = 0
        self.by_side: dict[int, int] = {}
        # with closest, the cost of these receivers; -1 as long as there are none
        self.nearest = -1

    def add(self, address: Address, without: int, start: int, end: int) -> None:
        """Add the capacity of an address's consumers from index `start` up to `end`.

        Consumers on the side `without` are skipped, unless it is HERE.
        """
        consumers = address.consumers
        for at in range(start, end):
            consumer = consumers[at]
            if consumer.side == without != HERE:
                continue
            if address.treatment == CLOSEST:
                if self.nearest < 0 or consumer.cost < self.nearest:
                    self.nearest = consumer.cost
                    self.total = 0
                    self.by_side = {}
                elif consumer.cost > self.nearest:
                    continue
            credit = room_of(consumer)
            self.total += credit
            self.by_side[consumer.side] = self.by_side.get(consumer.side, 0) + credit

    def serves(self, side: int) -> bool:
        """Return whether any of the counted receivers may get messages from `side`."""
        count = len(self.by_side)
        return count > 1 or (count == 1 and (side == HERE or side not in self.by_side))

    def room(self, side: int) -> int:
        """Return how many more deliveries from `side` the counted receivers can take."""
        if side == HERE:
            return self.total
        own: int = self.by_side.get(side, 0)
        return self.total - own


def capacity_of(address: Address, without: int) -> Capacity:
    """Return the capacity of an address's receivers, except those on the side `without`.

    If the treatment is closest, only the nearest of the other receivers count.
    """
    found = Capacity()
    found.add(address, without, 0, len(address.consumers))
    return found


def room(address: Address, side: int) -> int:
    """Return how many more deliveries from `side` the receivers of an address can take."""
    found = capacity_of(address, side)
    return found.total - address.waiting.by_side().get(side, 0)


def finish(forwarder: Core, address: Address) -> None:
    """Serve the receivers of an address that has several sides, and share their credit.

    Call it at the end of a turn. If the address has more than AT_ONCE links, the work is done in
    later turns (`Sharing`).
    """
    if len(address.consumers) + len(address.producers) > AT_ONCE:
        if isinstance(address.sharing, Sharing):
            address.sharing.is_again_due = True
        else:
            address.sharing = Sharing(forwarder, address)
            forwarder.turn.deferred.add(address.sharing)
        return
    if address.treatment == MULTICAST:
        replenish_trees(address)
        return
    if address.waiting.count:
        # a nearer receiver may have left: farther ones may now get the waiting messages
        for consumer in list(address.consumers):
            forwarder.queues.serve(consumer)
    farther = forwarder.network.farther
    if farther:
        farther.offer(address)
    replenish_across(address)


def replenish_across(address: Address) -> None:
    """Share the receivers' credit among an address's senders on several sides, in this turn."""
    count = len(address.producers)
    if count == 0:
        return
    shares = Shares(address)
    shares.nearest.add(address, HERE, 0, len(address.consumers))
    shares.add_holdings(0, count)
    shares.divide()
    shares.offer(0, count)


class Shares:
    """Computation of the credit that each sender of an address may hold.

    The methods are called in this order: `nearest.add`, `add_holdings`, `divide`, `offer`. All but
    `divide` handle a range of links, so that the work may be spread over several turns.
    """

    def __init__(self, address: Address) -> None:
        self.address = address
        self.nearest = Capacity()
        self.farther = self.nearest
        self.groups: dict[int, SideSenders] = {}
        self.by_side: dict[int, int] = {}
        self.granted = 0
        self.left = 0
        # senders with waiting deliveries, if these may wait for one lane while others have credit
        self.held_up: dict[IncomingLink | None, int] | None = None

    def add_holdings(self, start: int, end: int) -> None:
        """Add up the credit that the senders from index `start` up to `end` hold, by side."""
        address = self.address
        producers = address.producers
        waiting = address.waiting.by_side()
        for at in range(start, end):
            producer = producers[at]
            link = producer.link
            side = producer.side
            self.granted += link.credit
            group = self.groups.get(side)
            if group is None:
                backing = self.nearest
                if not backing.serves(side):
                    # with closest, if the nearest are on the sender's side, the next nearest count
                    backing = self.farther = capacity_of(address, side)
                group = self.groups[side] = SideSenders(side, backing, waiting.get(side, 0))
            group.count += 1
            group.granted += link.credit

    def divide(self) -> None:
        """Compute, for each side, how much credit one of its senders may hold."""
        address = self.address
        total = self.nearest.total - address.waiting.count
        if self.farther is not self.nearest:
            total += self.farther.total
        self.left = total - self.granted
        self.by_side = share_out(list(self.groups.values()), total, len(address.producers))
        if address.lanes > 1 and address.waiting.count:
            self.held_up = address.waiting.senders()

    def offer(self, start: int, end: int) -> None:
        """Grant credit to the senders from index `start` up to `end`.

        If no receiver may get a sender's messages, its credit is revoked instead.
        """
        producers = self.address.producers
        for at in range(start, end):
            producer = producers[at]
            group = self.groups.get(producer.side)
            if group is None:
                # this is the first producer of its side, and was attached meanwhile
                continue
            if not group.is_served:
                take_back(producer)
                continue
            share: int = self.by_side[producer.side]
            room_left = min(self.left, group.room - group.granted)
            given = offer(producer, share, group.room, room_left)
            if self.held_up is not None and given == 0 and group.has_credit:
                link = producer.link
                if (
                    link.credit == 0
                    and link not in self.held_up
                    and not has_too_much_unsettled(link)
                ):
                    # one message ahead: it may be more urgent than all messages that wait
                    session = link.session
                    session.grant(link, 1, False)
                    given = 1
            group.granted += given
            self.left -= given


class Sharing:
    """Deferred task that does the work of `finish` for an address with very many links."""

    def __init__(self, forwarder: Core, address: Address) -> None:
        self.is_again_due = False
        self._forwarder = forwarder
        self._address = address
        self._steps = self._shared()

    def step(self) -> bool:
        """Examine the next few links; return whether any work is left."""
        address = self._address
        is_ours = address.remote_ends and address.related_addresses is None
        if is_ours and next(self._steps, self) is not self:
            return True
        if is_ours and self.is_again_due:
            self.is_again_due = False
            self._steps = self._shared()
            return True
        if address.sharing is self:
            address.sharing = None
        if not is_ours:
            # the address's credit is now shared in another way
            self._forwarder.credit.note(address, None)
        return False

    def _shared(self) -> Iterator[None]:
        """Serve the address's receivers and share their credit; yield after every few links.

        If links are added or removed meanwhile, the address is examined again.
        """
        forwarder, address = self._forwarder, self._address
        consumers, producers = address.consumers, address.producers
        if address.treatment == MULTICAST:
            spread = TreeCredit(address)
            yield from _in_steps(spread.add_receivers, consumers)
            yield from _in_steps(spread.add_holdings, producers)
            yield from _in_steps(spread.offer, producers)
            return
        if address.waiting.count:
            # a nearer receiver may have left: farther ones may now get the waiting messages
            for at in range(0, len(consumers), A_STEP):
                for consumer in consumers[at : at + A_STEP]:
                    forwarder.queues.serve(consumer)
                yield
        farther = forwarder.network.farther
        if farther:
            farther.offer(address)
        if not producers:
            return
        shares = Shares(address)
        yield from _in_steps(partial(shares.nearest.add, address, HERE), consumers)
        yield from _in_steps(shares.add_holdings, producers)
        shares.divide()
        yield from _in_steps(shares.offer, producers)


def _in_steps(examine: Callable[[int, int], object], links: Sized) -> Iterator[None]:
    """Call `examine` with the bounds of each range of A_STEP `links`; yield after each call.

    Links may be added or removed meanwhile.
    """
    at = 0
    while at < len(links):
        end = min(at + A_STEP, len(links))
        examine(at, end)
        at = end
        yield


class SideSenders:
    """Group of the senders on one side: their count, credit, and room for their messages."""

    def __init__(self, side: int, backing: Capacity, waiting: int) -> None:
        self.side = side
        self.is_served = backing.serves(side)
        self.room = backing.room(side) - waiting
        self.has_credit = self.room + waiting > 0
        self.count = 0
        self.granted = 0


def share_out(groups: list[SideSenders], total: int, count: int) -> dict[int, int]:
    """Return, for each side, how much credit one of its senders may hold.

    `total` is divided equally among all `count` senders. If the receivers for a side have room for
    less than that side's share, the other sides get the rest.
    """
    shares = {}
    groups.sort(key=_room_each)
    for group in groups:
        share = max(1, min(group.room // group.count, total // max(1, count)))
        shares[group.side] = share
        total -= share * group.count
        count -= group.count
    return shares


def _room_each(group: SideSenders) -> int:
    return group.room // group.count
