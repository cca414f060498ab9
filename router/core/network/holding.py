"""What an edge router holds for addresses beyond while it has no uplink: a short gap is none then.

As long as a hold is at an address, what cannot be sent up waits there instead of being released: it
is a receiver that never takes anything, with as much credit as there is room for more. When an
uplink is back, what waits goes up in its order. What has waited for too long is released, and so
is what came last where it is too much. None of this runs once a message, so the octets are counted
when clocks are looked at: for that long there may be more of them.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Any

import attrs

from router.amqp.constants import Descriptor
from router.core import linking, parting
from router.core.address import MESH, Address, Consumer
from router.engine.connection import Connection
from router.engine.link import OutgoingLink
from router.engine.session import Session
from router.engine.settings import ConnectionSettings

RELEASED = int(Descriptor.RELEASED)
# What a message is reckoned to have as long as none has come.
USUAL_BYTES = 4096


@attrs.frozen
class Bounds:
    """How much may wait at one address, and for how long."""

    seconds: float
    messages: int
    octets: int


class Use(Enum):
    """What a hold is for: to keep what waits from being released when the last uplink goes (IDLE),
    to take what comes (OPEN), or to keep what has come for the rest of its time (CLOSING).
    """

    IDLE = auto()
    OPEN = auto()
    CLOSING = auto()


class Hold:
    """The hold of one address."""

    def __init__(self, consumer: Consumer, bounds: Bounds) -> None:
        self.consumer = consumer
        self.bounds = bounds
        self.use = Use.IDLE


class Holding:
    """All holds of a router."""

    def __init__(self, forwarder: Any) -> None:
        self.forwarder = forwarder
        self.holds: dict[Address, Hold] = {}
        # what was released because it had waited too long, or was too much
        self.expired = 0
        self.exceeded = 0
        settings = ConnectionSettings("hold")
        self._connection = Connection(settings, forwarder, forwarder.turn, "hold", True)
        self._session = Session(self._connection, 0, 1, 512)

    def see_to(self, address: Address, bounds: Bounds | None, use: Use) -> None:
        """Have an address held within these bounds, or with None not."""
        hold = self.holds.get(address)
        if bounds is None:
            if hold is not None:
                del self.holds[address]
                parting.leave(self.forwarder, hold.consumer)
            return
        if hold is None:
            link = OutgoingLink(self._session, "hold", 0)
            link.owner = consumer = Consumer(link, address)
            consumer.side = MESH
            # farther away than anything else
            consumer.cost = 2**62
            hold = self.holds[address] = Hold(consumer, bounds)
            linking.join(self.forwarder, consumer)
        hold.bounds = bounds
        hold.use = use
        self._give_room(hold)

    def _give_room(self, hold: Hold) -> None:
        """Let its senders send what there is room for."""
        address, bounds = hold.consumer.address, hold.bounds
        count = address.waiting.count
        credit = 0
        if hold.use is Use.OPEN:
            octets = sum(delivery.size for delivery in address.waiting)
            usual = max(USUAL_BYTES, octets // count) if count else USUAL_BYTES
            more = max(0, bounds.octets - octets) // usual
            if count == 0:
                more = max(1, more)
            credit = min(bounds.messages, count + more)
        if hold.consumer.link.credit != credit:
            hold.consumer.link.credit = credit
            self.forwarder.note_credit(address, None)

    def look(self, now: float) -> None:
        """Release what has waited for too long, and what is too much."""
        for address, hold in list(self.holds.items()):
            if not address.waiting.count:
                continue
            bounds = hold.bounds
            if hold.use is not Use.IDLE:
                self._release_late(address, now - bounds.seconds)
                self._release(address, self._too_much(address, bounds))
            self._give_room(hold)

    def _release_late(self, address: Address, since: float) -> None:
        late = address.waiting.take_out(lambda each: bool(each.arrived <= since))
        self.expired += len(late)
        self._release(address, late)

    def _too_much(self, address: Address, bounds: Bounds) -> list[Any]:
        kept = octets = 0
        beyond: set[int] = set()
        for delivery in sorted(address.waiting, key=lambda each: each.arrived):
            kept += 1
            octets += delivery.size
            if kept > bounds.messages or octets > bounds.octets:
                beyond.add(id(delivery))
                kept -= 1
                octets -= delivery.size
        if not beyond:
            return []
        self.exceeded += len(beyond)
        return address.waiting.take_out(lambda each: id(each) in beyond)

    def fullest(self) -> float:
        """How full the hold is that is nearest to one of its bounds, 0 to 1."""
        share = 0.0
        for address, hold in self.holds.items():
            if address.waiting.count:
                octets = sum(delivery.size for delivery in address.waiting)
                by_count = address.waiting.count / max(1, hold.bounds.messages)
                share = max(share, by_count, octets / max(1, hold.bounds.octets))
        return min(1.0, share)

    def _release(self, address: Address, deliveries: list[Any]) -> None:
        for delivery in deliveries:
            self.forwarder.count_out(delivery)
            self.forwarder.backlog.drop(delivery)
            delivery.discarded = True
            address.counters.count_outcome(RELEASED)
            self.forwarder.settle(delivery, RELEASED, b"")
