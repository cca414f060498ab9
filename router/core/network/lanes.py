"""Lanes: several links to one destination for one address, so that messages do not block others.

A link carries one message after the other, so a large message delays all messages after it. So
there may be further links beside the base link (lane 0), for priorities and for large messages
(`lane_numbers`). Messages of one sender and one priority take the same lane, which keeps their
order. Messages of senders with rcv-settle-mode second take lanes with the same mode, so that
outcome and settlement are passed end to end.

Only the router where a message enters the network chooses its lane. At each router on the path the
lane has a transit of its own (`transit`), and at the destination the lane is a sender like any
other. If a lane cannot be opened, its messages take lane 0 until the base link is replaced. Nothing
here runs per message, except that `Distributor.lane_for` chooses a lane for each.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import TYPE_CHECKING

from router.core.model.address import EVERY_LANE, Address, Consumer
from router.core.network.lane_links import LaneBase, LaneLink
from router.core.network.lane_numbers import lane_numbered, lane_of
from router.core.network.uplink_lanes import UplinkBase, may_have_lanes
from router.engine.link import OutgoingLink
from router.errors import AmqpError

if TYPE_CHECKING:
    from router.core.network.network import Network
    from router.engine.connection import Connection
    from router.engine.delivery import Delivery

# How long a lane is kept after it has become idle.
IDLE_S = 5.0
# If more deliveries than this wait for the first link, lanes are opened only once it has been idle,
# because assigning each delivery to a lane takes half a microsecond.
MAX_ASSIGNED = 10_000
# No lane is opened once 1/PART_OF_CHANNELS of a connection's channels are in use.
PART_OF_CHANNELS = 2


class Lanes:
    """Manager of the lanes that addresses have in addition to their base links."""

    def __init__(self, network: Network) -> None:
        self._network = network
        # the addresses that have lanes other than lane 0
        self._laned: OrderedDict[Address, None] = OrderedDict()
        # lanes that ended without being given up, until the end of the turn, when lane 0 takes
        # their messages
        self._lost: dict[Address, list[tuple[LaneBase, int]]] = {}
        # the addresses whose lanes are postponed because too many deliveries waited: how many
        # deliveries their links had carried at the last check, and since when that has not changed
        self._later: dict[Address, tuple[int, float]] = {}
        # links to the other ends of uplinks, which may have lanes as well
        self._uplinks: dict[Address, dict[Consumer, UplinkBase]] = {}

    def __len__(self) -> int:
        """Return how many addresses may have lanes, or are to get lanes later."""
        return len(self._laned) + len(self._later)

    def consumer_joined(self, consumer: Consumer) -> None:
        """Open lanes beside a consumer's link, if it leads to the other end of an uplink."""
        if may_have_lanes(self._network, consumer):
            consumer.lane_mask = 1
            base = UplinkBase(self._network, consumer)
            self._uplinks.setdefault(consumer.address, {})[consumer] = base
            self.joined(base)

    def consumer_left(self, consumer: Consumer) -> None:
        """Give up the lanes of a consumer that has left its address."""
        bases = self._uplinks.get(consumer.address)
        base = None if bases is None else bases.pop(consumer, None)
        if bases is not None and base is not None:
            if not bases:
                del self._uplinks[consumer.address]
            self.retire_lanes(base)

    def joined(self, base: LaneBase) -> None:
        """Open the lanes that an address and its waiting deliveries need beside a new base link."""
        address = base.address
        if base.consumer is None or base.consumer.lane_mask == EVERY_LANE:
            return
        if not address.lanes:
            # when the first link is attached, deliveries that wait have no lane yet
            if address in self._later or address.waiting.count > MAX_ASSIGNED:
                # all of them take the base link, in order, and so do the deliveries after them
                self._later.setdefault(address, (-1, 0.0))
                return
            self._assign_all(address)
        if address.lanes > 1:
            self._laned[address] = None
        for lane in _numbers(address.lanes):
            for each in self._bases(address):
                self._open_beside(each, lane)

    def _assign_all(self, address: Address) -> None:
        """Assign a lane to each waiting delivery of an address, and queue the deliveries anew."""
        lanes = 1
        waiting = list(address.waiting)
        address.waiting.clear()
        for delivery in waiting:
            self._assign(delivery)
            lanes |= 1 << delivery.lane
        address.waiting.extend(waiting)
        address.lanes = lanes

    def open(self, address: Address, lane: int) -> bool:
        """Open a lane to each router that messages of an address are sent to.

        Return False if the address has no lanes.
        """
        if not address.lanes:
            return False
        address.lanes |= 1 << lane
        self._laned[address] = None
        for base in self._bases(address):
            self._open_beside(base, lane)
        return True

    def enter(self, address: Address, delivery: Delivery) -> None:
        """Assign a lane to a waiting delivery that has been moved to another address."""
        delivery.lane = 0
        if address.lanes:
            self._assign(delivery)
            if not address.lanes >> delivery.lane & 1:
                self.open(address, delivery.lane)

    def _assign(self, delivery: Delivery) -> None:
        """Set the lane of a waiting delivery."""
        sender = delivery.incoming
        stripe = 0 if sender.owner is None else max(0, sender.owner.stripe)
        is_second = bool(sender.settles_second)
        delivery.lane = lane_of(delivery.priority, stripe, settles_second=is_second)

    def _bases(self, address: Address) -> list[LaneBase]:
        """Return the links of an address that may have additional lanes."""
        bases: list[LaneBase] = [
            *self._network.outward.links(address),
            *self._uplinks.get(address, {}).values(),
        ]
        return [
            each
            for each in bases
            if each.consumer is not None and each.consumer.lane_mask != EVERY_LANE
        ]

    def _open_beside(self, base: LaneBase, lane: int) -> None:
        consumer = base.consumer
        if consumer is None or consumer.lane_mask >> lane & 1 or lane in base.lanes:
            return
        if not has_channels(base.connection):
            consumer.lane_mask |= 1 << lane
            return
        link = base.beside(lane_numbered(lane))
        try:
            link.begin(base.connection)
        except AmqpError:
            # it was never attached, so it has not ended unexpectedly
            link.is_leaving = True
            link.detach()
            consumer.lane_mask |= 1 << lane
            return
        base.lanes[lane] = link
        if consumer.sibling_lanes is None:
            consumer.sibling_lanes = [consumer.link]
        assert link.consumer is not None
        consumer.sibling_lanes.append(link.consumer.link)
        link.consumer.sibling_lanes = consumer.sibling_lanes

    def retire_lanes(self, base: LaneBase) -> None:
        """Give up the lanes of a link that has ended, or takes no new messages."""
        for link in list(base.lanes.values()):
            self._drop(link)
            link.retire()
        address = base.address
        if (address.lanes or address in self._later) and not self._bases(address):
            self._laned.pop(address, None)
            self._later.pop(address, None)
            address.lanes = 0

    def give_up_for_multicast(self, address: Address) -> None:
        """Give up the lanes of an address that becomes multicast: each router gets one copy."""
        for base in self._bases(address):
            for link in list(base.lanes.values()):
                self._drop(link)
                link.retire()
        address.lanes &= 1
        self._later.pop(address, None)

    def _drop(self, link: LaneLink) -> None:
        base = link.base
        if base is None or base.lanes.get(link.lane.number) is not link:
            return
        del base.lanes[link.lane.number]
        consumer = base.consumer
        if consumer is not None and consumer.sibling_lanes is not None:
            assert isinstance(link.link, OutgoingLink)
            consumer.sibling_lanes.remove(link.link)
            if not base.lanes:
                consumer.sibling_lanes = None

    def link_ended(self, link: LaneLink) -> None:
        """Remove a lane that has ended.

        If the lane was not given up, `move_lost_lanes` moves its messages to the base link.
        """
        self._drop(link)
        if not link.is_leaving and link.base is not None:
            self._lost.setdefault(link.address, []).append((link.base, link.lane.number))
            self._network.address_changed(link.address)

    def move_lost_lanes(self, address: Address) -> None:
        """Move deliveries from closed lanes to the base links."""
        lost = self._lost.pop(address, ())
        bases = self._bases(address) if lost else []
        for base, lane in lost:
            if base in bases and lane not in base.lanes:
                assert base.consumer is not None
                base.consumer.lane_mask |= 1 << lane
        if bases:
            # deliveries that waited for these lanes go before new ones
            forwarder = self._network.forwarder
            for base in bases:
                assert base.consumer is not None
                forwarder.queues.serve(base.consumer)
            forwarder.credit.note(address, None)

    def finish(self) -> None:
        """Call `move_lost_lanes` for each address that has lost a lane unexpectedly."""
        for address in list(self._lost):
            self.move_lost_lanes(address)

    def check_due(self) -> Iterator[None]:
        """Give up idle lanes and open postponed lanes, one address in each step."""
        for _ in range(len(self._laned)):
            if not self._laned:
                break
            address = next(iter(self._laned))
            if address.lanes <= 1:
                del self._laned[address]
            else:
                self._laned.move_to_end(address)
                self._give_up_idle(address)
            yield
        for address in list(self._later):
            self._check_later(address)
            yield

    def _check_later(self, address: Address) -> None:
        """Open the postponed lanes of an address, once its links have been idle."""
        links = [base.consumer.link for base in self._bases(address) if base.consumer]
        carried = sum(link.deliveries for link in links)
        before, since = self._later[address]
        now = self._network.forwarder.turn.now
        is_busy = bool(address.waiting) or any(each.unsettled or each.current for each in links)
        if links and (is_busy or carried != before):
            self._later[address] = (carried, now)
        elif not links or now - since >= IDLE_S:
            del self._later[address]
            for base in self._bases(address):
                self.joined(base)

    def _give_up_idle(self, address: Address) -> None:
        now = self._network.forwarder.turn.now
        bases = self._bases(address)
        for lane in _numbers(address.lanes):
            links = [base.lanes[lane] for base in bases if lane in base.lanes]
            # no short circuit: `idle_s` has to be called on each
            are_idle = [each.idle_s(now) >= IDLE_S for each in links]
            # a lane that a delivery waits for is kept
            if all(are_idle) and address.waiting.top(1 << lane) < 0:
                address.lanes &= ~(1 << lane)
                for link in links:
                    self._drop(link)
                    link.retire()


def _numbers(lanes: int) -> Iterator[int]:
    """Return the numbers of the lanes in a bit mask, except lane 0, which always exists."""
    return (lane for lane in range(1, lanes.bit_length()) if lanes >> lane & 1)


def has_channels(connection: Connection) -> bool:
    """Return whether a connection has enough free channels for another lane."""
    return bool(len(connection.local_sessions) * PART_OF_CHANNELS < connection.channel_max + 1)
