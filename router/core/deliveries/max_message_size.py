"""Size limits of receivers: their links' max-message-size (section 2.7.3).

A message that is too large for one receiver goes to another; if it is too large for all, it is
rejected. A message that turns out to be too large while it is being sent is aborted towards its
receiver. The size of a message is its size as received.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from router.amqp.constants import Condition, Descriptor
from router.core.deliveries import aborting, sides
from router.core.model import router_outcomes
from router.core.model.address import EVERY_LANE, MULTICAST, Address, Consumer, gets_multicast_from

if TYPE_CHECKING:
    from router.core.ports import Core
    from router.engine.delivery import Delivery

REJECTED = int(Descriptor.REJECTED)
UNLIMITED = 2**64 - 1
# How many copies that are too large for their receiver are dropped before the search continues in a
# later step, and as how many examined deliveries each of them counts.
MOST_LEFT_OUT = 32
WORK_OF_A_LOSS = 64


def is_too_large(address: Address, delivery: Delivery) -> bool:
    """Return whether a delivery is too large for every receiver of an address.

    If the address has no receiver, any delivery is too large.
    """
    size = delivery.size
    if not address.remote_ends:
        return not address.consumers or bool(size > address.largest_taken())
    consumers: Iterable[Consumer]
    if address.treatment != MULTICAST:
        consumers = sides.serving(address, delivery.incoming.side)
    elif delivery.incoming.owner is not None:
        sender = delivery.incoming.owner
        consumers = (each for each in address.consumers if gets_multicast_from(each, sender))
    else:
        consumers = address.consumers
    return all(size > consumer.link.max_message_size for consumer in consumers)


def least_busy(address: Address, delivery: Delivery) -> Consumer | None:
    """Return the consumer with the shortest queue, among those that accept a delivery's size.

    Only consumers that may get messages from the delivery's side are considered. Return None if no
    such consumer accepts the size.
    """
    able = [
        each
        for each in address.consumers
        if delivery.size <= each.link.max_message_size
        and sides.serves(each, delivery.incoming.side)
    ]
    return min(able, key=lambda consumer: consumer.waiting.count, default=None)


def refuse(forwarder: Core, address: Address, delivery: Delivery) -> None:
    """Reject a delivery that has not been sent, because it is too large for all receivers."""
    reject(forwarder, delivery, largest(address))


def largest(address: Address) -> int:
    """Return the largest message size that any receiver of an address accepts."""
    if address.remote_ends:
        # not cached: a link to another router is added before its limit is known
        return max((each.link.max_message_size for each in address.consumers), default=0)
    return int(address.largest_taken())


def reject(forwarder: Core, delivery: Delivery, limit: int) -> None:
    """Reject a delivery that is larger than `limit`, the largest size that a receiver accepts."""
    counters = delivery.address.counters
    if delivery.settled:
        counters.dropped_presettled += 1
        delivery.incoming.dropped_presettled += 1
    elif delivery.incoming_open:
        counters.count_outcome(REJECTED)
    delivery.discarded = True
    forwarder.settlement.settle(delivery, REJECTED, _verdict(delivery.size, limit))


def _verdict(size: int, limit: int) -> bytes:
    problem = (
        f"the message has at least {size} octets; receivers take at most {limit} (max-message-size)"
    )
    return router_outcomes.rejected(Condition.MESSAGE_SIZE_EXCEEDED, problem)


def is_spread_by_sides(address: Address) -> bool:
    """Return whether the side of a waiting delivery decides which consumers may get it."""
    return bool(address.remote_ends) and address.treatment != MULTICAST


def chooses_by_sides(consumer: Consumer) -> bool:
    """Return whether a consumer may get waiting deliveries from certain sides only."""
    return is_spread_by_sides(consumer.address) and not sides.takes_from_anywhere(consumer)


def take(forwarder: Core, consumer: Consumer) -> Delivery | None:
    """Remove and return the next delivery in a consumer's queue that is not too large for it.

    Return None if none is found; the queue's `is_unfinished` then says whether to continue the
    search. The queue's `examined` is set to a measure of the search's work, in which 1 stands for
    examining one delivery.
    """
    waiting = consumer.waiting
    limit = consumer.link.max_message_size
    if consumer.address.treatment != MULTICAST:
        takes = EVERY_LANE
        meant: set[int] | None = None
        if is_spread_by_sides(consumer.address):
            takes = consumer.lane_mask
            if not sides.takes_from_anywhere(consumer):
                meant = sides.taken_by(consumer)
            if meant is not None and not meant:
                waiting.examined = 0
                waiting.is_unfinished = False
                return None
        return waiting.take_matching(takes, meant, limit)
    found = None
    left_out = 0
    while found is None and waiting.count and left_out < MOST_LEFT_OUT:
        delivery = waiting.popleft()
        if delivery.size <= limit:
            found = delivery
        else:
            # a copy is for this receiver alone
            left_out += 1
            forwarder.backlog.drop(delivery)
            _leave_out(forwarder, delivery, limit)
    waiting.examined = left_out * WORK_OF_A_LOSS
    waiting.is_unfinished = found is None and waiting.count > 0
    return found


def recheck_grown(forwarder: Core, delivery: Delivery) -> None:
    """Reject a waiting delivery that has grown, if it is now too large for all receivers."""
    address = delivery.address
    if delivery.parent is not None and address.treatment == MULTICAST:
        # a copy is checked when it is taken from the queue
        return
    if is_too_large(address, delivery):
        aborting.abort(forwarder, delivery)
        if delivery.parent is None:
            refuse(forwarder, address, delivery)
        else:
            _leave_out(forwarder, delivery, largest(address))


def abort_outgrown(forwarder: Core, delivery: Delivery) -> None:
    """Abort and reject a delivery that grew too large for its receiver while it was being sent."""
    limit = delivery.outgoing.max_message_size
    aborting.abort(forwarder, delivery)
    if delivery.parent is None:
        reject(forwarder, delivery, limit)
    else:
        _leave_out(forwarder, delivery, limit)


def _leave_out(forwarder: Core, copy: Delivery, limit: int) -> None:
    """Drop a copy that is too large for its receiver.

    If it was the last open copy, and no other copy has got an outcome, the message is rejected.
    """
    copy.discarded = True
    parent = copy.parent
    if parent.open_copies == 1 and parent.outcome == 0:
        copy.address.counters.count_outcome(REJECTED)
        forwarder.settlement.merge(copy, REJECTED, _verdict(copy.size, limit))
    else:
        forwarder.settlement.merge(copy, parent.outcome, parent.outcome_octets)


def receiver_lost(forwarder: Core, address: Address) -> None:
    """Note that a receiver has left, so that `refuse_too_large` checks the waiting deliveries."""
    if address.waiting.count and address not in forwarder.sizes_due:
        forwarder.sizes_due[address] = None


def refuse_too_large(forwarder: Core) -> None:
    """Reject waiting deliveries that are too large for all remaining receivers.

    Call it at the end of a turn. If very many wait, the last ones are checked in later turns.
    """
    due, forwarder.sizes_due = forwarder.sizes_due, {}
    for address in due:
        if not address.consumers or (not address.remote_ends and address.limits is None):
            # no receiver is left, or none has ever had a limit
            continue
        if address.refusing is None:
            address.refusing = _Refusing(forwarder, address)
            address.refusing.begin()
        else:
            address.refusing.is_due_again = True


class _Refusing:
    """Task that rejects the waiting deliveries of an address that are too large.

    If another receiver leaves meanwhile, all waiting deliveries are checked again.
    """

    def __init__(self, forwarder: Core, address: Address) -> None:
        self._forwarder = forwarder
        self._address = address
        self._limits: dict[int, int] = {}
        # whether another receiver has left since the pass began
        self.is_due_again = False

    def begin(self) -> None:
        """Check the first waiting deliveries now, and the others in later turns."""
        self.is_due_again = False
        address = self._address
        self._limits = _limits(address)
        if address.waiting.count and self._may_refuse():
            waiting = list(address.waiting)
            self._forwarder.turn.deferred.process_each(waiting, self._look_at, self._end)
        else:
            address.refusing = None

    def _may_refuse(self) -> bool:
        return any(limit < UNLIMITED for limit in self._limits.values())

    def _look_at(self, delivery: Delivery) -> None:
        address = self._address
        limit = self._limits.get(delivery.incoming.side, UNLIMITED)
        # since the pass began, it may have been taken, and receivers may have been added or removed
        is_there = delivery.waits_in is address.waiting and address.consumers
        if delivery.size > limit and is_there and is_too_large(address, delivery):
            address.waiting.remove(delivery)
            self._forwarder.queues.note_dequeued(delivery)
            self._forwarder.backlog.drop(delivery)
            refuse(self._forwarder, address, delivery)

    def _end(self) -> None:
        if self.is_due_again and self._address.consumers:
            self.begin()
        else:
            self._address.refusing = None


def _limits(address: Address) -> dict[int, int]:
    """Return, for each side, the largest size that any receiver of messages from there accepts."""
    if not is_spread_by_sides(address):
        return dict.fromkeys(address.waiting.by_side(), largest(address))
    return {
        side: max((each.link.max_message_size for each in sides.serving(address, side)), default=-1)
        for side in address.waiting.by_side()
    }
