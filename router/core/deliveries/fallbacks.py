"""Fallbacks: move waiting messages to an address's fallback, and back.

When the last receiver of an address leaves, waiting messages go to the address's fallback. When the
address has a receiver again, messages that still wait at the fallback are moved back, in order.
Messages that were already sent stay where they are. If very many wait, the last ones are moved in
later turns; until then new messages are queued after them. None of this runs once per message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from router.amqp.reading import TransferFrame
from router.core.addresses import nodes
from router.core.deliveries import max_message_size, unsent
from router.core.model.address import FALLBACK, MULTICAST, Address, Consumer, Producer

if TYPE_CHECKING:
    from router.core.ports import Core
    from router.engine.delivery import Delivery

# How many messages move in the turn of the event, and in each step of later turns.
MOVED_AT_ONCE: Final = 1024
A_STEP: Final = 32


def consumer_joined(forwarder: Core, consumer: Consumer) -> None:
    """Move waiting messages from the fallback back to an address that got its first consumer."""
    address = consumer.address
    fallback = None if address.related_addresses is None else address.related_addresses.fallback
    if fallback is None or len(address.consumers) > 1 or address.treatment == MULTICAST:
        return
    _move(forwarder, address, fallback, address)


def last_consumer_left(forwarder: Core, address: Address) -> None:
    """Move messages that wait at an address to its fallback, because its last consumer left."""
    fallback = None if address.related_addresses is None else address.related_addresses.fallback
    if fallback is None or not fallback.consumers or address.treatment == MULTICAST:
        return
    _move(forwarder, address, address, fallback)


def _move(forwarder: Core, primary: Address, source: Address, to: Address) -> None:
    """Begin to move waiting messages from `source` to `to`, if receivers at `to` accept them.

    Either `source` or `to` is `primary`; the other one is its fallback.
    """
    ties = primary.related_addresses
    assert ties is not None
    if ties.moving is not None:
        # the new task moves messages the other way, or includes the rest of the old one
        ties.moving.is_over = True
    moving = ties.moving = FallbackMove(forwarder, primary, source, to)
    forwarder.turn.deferred.start(moving, MOVED_AT_ONCE // A_STEP, moving.put_off)


class FallbackMove:
    """Task that moves waiting deliveries from an address to its fallback, or back.

    `source` is the address that the deliveries leave.
    """

    def __init__(self, forwarder: Core, primary: Address, source: Address, to: Address) -> None:
        self._forwarder = forwarder
        self._primary = primary
        self.source = source
        self._to = to
        # how many deliveries are still to be examined; those that receivers at the other address do
        # not accept go to the end of the source's queue
        self.left = source.waiting.count
        self.is_over = False
        self._is_later = False

    def step(self) -> bool:
        """Move a few messages; return whether more are left."""
        if self.is_over:
            return False
        source, to, waiting = self.source, self._to, self.source.waiting
        ties = self._primary.related_addresses
        # the configuration may have changed
        are_tied = ties is not None and ties.fallback in (source, to)
        count = 0
        while self.left > 0 and waiting.count and to.consumers and are_tied:
            if count == A_STEP:
                return True
            count += 1
            self.left -= 1
            delivery = waiting.popleft()
            if _may_go(delivery, to):
                delivery.address = to
                self._forwarder.network.outward.lanes.enter(to, delivery)
                to.waiting.append(delivery)
                if source is self._primary:
                    source.counters.redirected += 1
            else:
                waiting.append(delivery)
        if ties is not None and ties.moving is self:
            ties.moving = None
        # served at the end of the turn, because the receivers there may be lost in this turn, too
        self._forwarder.credit.note(to, None)
        if not source.consumers:
            unsent.settle_queue(self._forwarder, source, waiting, unsent.RELEASED)
            if self._is_later:
                # the address was kept in use by its waiting messages
                nodes.link_left(self._forwarder, source, None)
        return False

    def put_off(self) -> None:
        """Note that the remaining messages are moved in later turns."""
        self._is_later = True

    def wait_behind(self, delivery: Delivery, producer: Producer, frame: TransferFrame) -> None:
        """Queue a new delivery after the deliveries that are still to be moved."""
        forwarder = self._forwarder
        delivery.address = self.source
        forwarder.backlog.hold(delivery, frame.octets, frame.payload_at, frame.end)
        if producer.address is None:
            producer.waiting += 1
        forwarder.queues.wait(self.source, delivery)
        self.left += 1


def _may_go(delivery: Delivery, to: Address) -> bool:
    producer = delivery.incoming.owner
    # a message that a fallback has sent does not go back to it
    if producer is not None and producer.is_fallback and to.phase == FALLBACK:
        return False
    return not max_message_size.is_too_large(to, delivery)
