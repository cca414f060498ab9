"""Hold messages that an edge router cannot send up while it has no uplink, to bridge short gaps.

A hold is a consumer of the address that never takes a message, and has credit for as many messages
as may wait. So messages that cannot be sent to the interior wait at the address instead of being
released, and are sent in order once there is an uplink again. A message that has waited too long is
released, and so are the latest messages if there are too many. Nothing here runs per message:
octets are counted at each periodic check, and may exceed the limit between checks. If there are
very many messages or holds, the last ones are checked and released in later turns.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from enum import Enum, auto
from math import inf
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import attrs

from router.core.deliveries import unsent
from router.core.links import attach, detach
from router.core.model.address import MESH, Address, Consumer
from router.core.model.split_table import ListedTable
from router.engine.connection import Connection
from router.engine.deferred import DeferredPass
from router.engine.link import OutgoingLink
from router.engine.session import Session
from router.engine.settings import ConnectionSettings

if TYPE_CHECKING:
    from router.core.ports import Core
    from router.engine.delivery import Delivery

# The size that a message is assumed to have until the first one is received.
USUAL_BYTES = 4096
# Up to this many messages, octets are counted on each request.
EXACT_COUNT = 64
# How many messages are checked between two yields.
WORK_OF_A_MOVE = 8


@attrs.frozen
class Bounds:
    """Set of limits for a hold: how many messages and octets may wait, and for how long."""

    seconds: float
    messages: int
    octets: int


class Use(Enum):
    """State of a hold.

    IDLE: the hold accepts no messages. It only prevents the release of waiting messages when the
    last uplink is lost. OPEN: the hold accepts messages. CLOSING: the hold accepts no messages, and
    releases those that have waited too long.
    """

    IDLE = auto()
    OPEN = auto()
    CLOSING = auto()


class Hold:
    """Hold for the messages of one address."""

    def __init__(self, consumer: Consumer, bounds: Bounds) -> None:
        self.consumer = consumer
        self.bounds = bounds
        self.use = Use.IDLE
        # at the last check: the number of waiting messages (-1 before it), their average size, and
        # how full the hold was (1 at a bound); and when the first will have waited too long
        self.seen = -1
        self.octets_each = float(USUAL_BYTES)
        self.share = 0.0
        self.late_at = 0.0
        # whether `emptied` was called since a message last waited
        self.is_empty = False

    @property
    def octets(self) -> int:
        """Return approximately how many octets wait."""
        waiting = self.consumer.address.waiting
        if self.seen != waiting.count and waiting.count <= EXACT_COUNT:
            return sum(delivery.size for delivery in waiting)
        return int(self.octets_each * waiting.count)

    def note_check(self, count: int, octets: int, first: float) -> None:
        """Note how many messages and octets wait, and when the first message was received."""
        bounds = self.bounds
        self.seen = count
        self.octets_each = octets / max(1, count)
        self.share = max(count / max(1, bounds.messages), octets / max(1, bounds.octets))
        self.late_at = inf if self.use is Use.IDLE else first + bounds.seconds


class Holds:
    """Table of a router's holds, by address."""

    def __init__(self, forwarder: Core) -> None:
        self.forwarder = forwarder
        self.holds: ListedTable[Address, Hold] = ListedTable()
        # how many messages were released: because they waited too long, or exceeded the bounds
        self.expired = 0
        self.exceeded = 0
        # how many messages are held, and how full the fullest hold is, 0 to 1, at the last check
        self.held = 0
        self.fullest = 0.0
        # called for each address where no message waits any more
        self.emptied: Callable[[Address], None] = lambda _: None
        self._check = DeferredPass()
        # consumers need links, so holds have a connection and a session that are never opened
        settings = ConnectionSettings("hold")
        handler: Any = forwarder
        self._connection = Connection(settings, handler, forwarder.turn, "hold", True)
        self._session = Session(self._connection, 0, 1, 512)

    def set_hold(self, address: Address, bounds: Bounds | None, use: Use) -> None:
        """Make or change the hold of an address; end it if `bounds` is None."""
        hold = self.holds.get(address)
        if bounds is None:
            if hold is not None:
                del self.holds[address]
                detach.discard_consumer(self.forwarder, hold.consumer)
            return
        if hold is None:
            link = OutgoingLink(self._session, "hold", 0)
            link.owner = consumer = Consumer(link, address)
            consumer.side = MESH
            # farther away than any other consumer
            consumer.cost = 2**62
            hold = self.holds[address] = Hold(consumer, bounds)
            attach.join_consumer(self.forwarder, consumer)
        if (hold.bounds, hold.use) != (bounds, use):
            hold.bounds = bounds
            hold.use = use
            hold.seen = -1
        self._give_room(hold)

    def _give_room(self, hold: Hold) -> None:
        """Give the hold credit for as many messages as it has room for."""
        address, bounds = hold.consumer.address, hold.bounds
        count = address.waiting.count
        credit = 0
        if hold.use is Use.OPEN:
            octets = hold.octets
            usual = max(USUAL_BYTES, octets // count) if count else USUAL_BYTES
            more = max(0, bounds.octets - octets) // usual
            if count == 0:
                more = max(1, more)
            credit = min(bounds.messages, count + more)
        if hold.consumer.link.credit != credit:
            hold.consumer.link.credit = credit
            self.forwarder.credit.note(address, None)

    def tick(self, now: float) -> None:
        """Release messages that have waited too long or exceed the bounds."""
        if self.holds or self.held:
            self._check.start(self.forwarder.turn.deferred, self._check_due())

    def _check_due(self) -> Iterator[None]:
        """Check each hold that may have changed."""
        held, fullest = 0, 0.0
        for hold in self.holds.each():
            waiting = hold.consumer.address.waiting
            if waiting.count:
                hold.is_empty = False
                if hold.seen != waiting.count or hold.late_at <= self.forwarder.turn.now:
                    yield from self._look_at(hold)
                held += waiting.count
                fullest = max(fullest, hold.share)
            if not (waiting.count or hold.is_empty):
                hold.is_empty = True
                self.emptied(hold.consumer.address)
            yield
        self.held, self.fullest = held, min(1.0, fullest)

    def _look_at(self, hold: Hold) -> Iterator[None]:
        """Check all messages that wait in a hold, and release those beyond its bounds.

        Messages that are taken meanwhile are not released.
        """
        address, bounds = hold.consumer.address, hold.bounds
        now, looked_for = self.forwarder.turn.now, (hold.bounds, hold.use)
        since = -inf if hold.use is Use.IDLE else now - bounds.seconds
        late: list[Delivery] = []
        kept: dict[int, list[Delivery]] = {}
        count, octets, first = 0, 0, now
        for number, delivery in enumerate(list(address.waiting)):
            if delivery.arrived <= since:
                late.append(delivery)
            else:
                kept.setdefault(delivery.priority, []).append(delivery)
                count += 1
                octets += delivery.size
                first = min(first, delivery.arrived)
            if number % WORK_OF_A_MOVE == 0:
                yield
        for delivery in late:
            self.expired += self._release(hold, delivery)
            yield
        if hold.use is not Use.IDLE and (count > bounds.messages or octets > bounds.octets):
            count = octets = 0
            for delivery in heapq.merge(*kept.values(), key=attrgetter("arrived")):
                if count < bounds.messages and octets + delivery.size <= bounds.octets:
                    count += 1
                    octets += delivery.size
                else:
                    self.exceeded += self._release(hold, delivery)
                yield
        if self.holds.get(address) is hold:
            if (hold.bounds, hold.use) == looked_for:
                # if messages came or left since, `seen` differs from their number: check again
                hold.note_check(count, octets, first)
            self._give_room(hold)

    def _release(self, hold: Hold, delivery: Delivery) -> bool:
        """Release a message if it still waits in the hold; return whether it was released."""
        address = hold.consumer.address
        if self.holds.get(address) is not hold or hold.use is Use.IDLE:
            # the hold has ended, or an uplink takes the waiting messages
            return False
        if not address.waiting.remove(delivery):
            return False
        unsent.settle(self.forwarder, address, unsent.RELEASED, delivery)
        return True
