"""Receivers that take no message beyond a size: their links' max-message-size (section 2.7.3).

What is too large for a receiver goes to another, and where all are too small back to its sender. A
message that grows too large while it is sent is aborted towards its receiver. The size is that of
the message as it came in.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from router.amqp.constants import Condition, Descriptor
from router.core import parting, verdicts
from router.core.address import EVERY_LANE, MULTICAST, Address, Consumer, spreads_to
from router.core.network import sides

REJECTED = int(Descriptor.REJECTED)
UNLIMITED = 2**64 - 1
# So many copies that are too large for their receiver are given up before the search goes on in a
# later step; each takes as long as so many looks.
MOST_LEFT_OUT = 32
LOOKS_A_LOSS = 64


def is_too_large(address: Address, delivery: Any) -> bool:
    """Whether no receiver of an address takes a delivery of this size; without receivers, it is."""
    size = delivery.size
    if not address.sided:
        return not address.consumers or bool(size > address.largest_taken())
    consumers: Iterable[Consumer]
    if address.treatment != MULTICAST:
        consumers = sides.serving(address, delivery.incoming.side)
    elif delivery.incoming.owner is not None:
        sender = delivery.incoming.owner
        consumers = (each for each in address.consumers if spreads_to(each, sender))
    else:
        consumers = address.consumers
    return all(size > consumer.link.max_message_size for consumer in consumers)


def least_busy(address: Address, delivery: Any) -> Consumer | None:
    """The receiver with the least to do of those that take a delivery of this size, and what comes
    from where it does; None where there is none.
    """
    able = [
        each
        for each in address.consumers
        if delivery.size <= each.link.max_message_size
        and sides.serves(each, delivery.incoming.side)
    ]
    return min(able, key=lambda consumer: consumer.waiting.count, default=None)


def refuse(forwarder: Any, address: Address, delivery: Any) -> None:
    """Nobody takes a delivery that has gone to nobody yet: it is rejected."""
    reject(forwarder, delivery, largest(address))


def largest(address: Address) -> int:
    """The most octets that any receiver of an address takes."""
    if address.sided:
        # links to other routers are on the list before they are answered
        return max((each.link.max_message_size for each in address.consumers), default=0)
    return int(address.largest_taken())


def reject(forwarder: Any, delivery: Any, limit: int) -> None:
    """Reject a delivery that is larger than `limit`, which is what a receiver takes."""
    counters = delivery.address.counters
    if delivery.settled:
        counters.dropped_presettled += 1
        delivery.incoming.dropped_presettled += 1
    elif delivery.incoming_open:
        counters.count_outcome(REJECTED)
    delivery.discarded = True
    forwarder.settle(delivery, REJECTED, _verdict(delivery.size, limit))


def _verdict(size: int, limit: int) -> bytes:
    problem = f"a message of {size} octets or more, and {limit} are what a receiver takes"
    return verdicts.rejected(Condition.MESSAGE_SIZE_EXCEEDED, problem)


def is_spread_by_sides(address: Address) -> bool:
    """Whether what waits at an address is for some of its consumers, by where it comes from."""
    return bool(address.sided) and address.treatment != MULTICAST


def chooses_by_sides(consumer: Consumer) -> bool:
    """Whether only some of what waits is for a consumer, by where it comes from."""
    return is_spread_by_sides(consumer.address) and not sides.takes_from_anywhere(consumer)


def take(forwarder: Any, consumer: Consumer) -> Any:
    """Take the next delivery that is not too large for a consumer out of its queue.

    None where there is none, and where the queue says that the search is unfinished. How much was
    looked at is counted by whoever calls.
    """
    waiting = consumer.waiting
    limit = consumer.link.max_message_size
    if consumer.address.treatment != MULTICAST:
        takes = EVERY_LANE
        meant: set[int] | None = None
        if is_spread_by_sides(consumer.address):
            takes = consumer.takes
            if not sides.takes_from_anywhere(consumer):
                meant = sides.taken_by(consumer)
            if meant is not None and not meant:
                waiting.looked_at = 0
                waiting.is_unfinished = False
                return None
        return waiting.take_for(takes, meant, limit)
    found = None
    left_out = 0
    while found is None and waiting.count and left_out < MOST_LEFT_OUT:
        delivery = waiting.popleft()
        if delivery.size <= limit:
            found = delivery
        else:
            # it is for nobody else
            left_out += 1
            forwarder.backlog.drop(delivery)
            _leave_out(forwarder, delivery, limit)
    waiting.looked_at = left_out * LOOKS_A_LOSS
    waiting.is_unfinished = found is None and waiting.count > 0
    return found


def grown(forwarder: Any, delivery: Any) -> None:
    """More has come of a delivery that waits: it may be too large by now for everybody."""
    address = delivery.address
    if delivery.parent is not None and address.treatment == MULTICAST:
        # it is left out when it is taken
        return
    if is_too_large(address, delivery):
        parting.abort(forwarder, delivery)
        if delivery.parent is None:
            refuse(forwarder, address, delivery)
        else:
            _leave_out(forwarder, delivery, largest(address))


def outgrown(forwarder: Any, delivery: Any) -> None:
    """A delivery has become larger than its receiver takes, which has got a part of it."""
    limit = delivery.outgoing.max_message_size
    parting.abort(forwarder, delivery)
    if delivery.parent is None:
        reject(forwarder, delivery, limit)
    else:
        _leave_out(forwarder, delivery, limit)


def _leave_out(forwarder: Any, copy: Any, limit: int) -> None:
    """A multicast's copy is too large for its receiver; the others speak, if there are any."""
    copy.discarded = True
    parent = copy.parent
    if parent.open_copies == 1 and parent.outcome == 0:
        copy.address.counters.count_outcome(REJECTED)
        forwarder.merge(copy, REJECTED, _verdict(copy.size, limit))
    else:
        forwarder.merge(copy, parent.outcome, parent.outcome_octets)


def receiver_lost(forwarder: Any, address: Address) -> None:
    """A receiver has gone: have what waits looked at once, at the end of the turn."""
    if address.waiting.count and address not in forwarder.sizes_due:
        forwarder.sizes_due[address] = None


def refuse_too_large(forwarder: Any) -> None:
    """Reject what waits and is too large for each receiver left; called at the end of a turn.

    Of very much that waits the last is looked at in later turns.
    """
    due, forwarder.sizes_due = forwarder.sizes_due, {}
    for address in due:
        if not address.consumers or (not address.sided and address.limits is None):
            # nobody is left, or nobody has ever had a limit
            continue
        if address.refusing is None:
            address.refusing = _Refusing(forwarder, address)
            address.refusing.begin()
        else:
            address.refusing.is_due_again = True


class _Refusing:
    """Looks at all that waits at an address, once at a time."""

    def __init__(self, forwarder: Any, address: Address) -> None:
        self._forwarder = forwarder
        self._address = address
        self._limits: dict[int, int] = {}
        # another receiver has gone since it was begun
        self.is_due_again = False

    def begin(self) -> None:
        """Look at the first deliveries, and at the others in later turns."""
        self.is_due_again = False
        address = self._address
        self._limits = _limits(address)
        if address.waiting.count and self._may_refuse():
            waiting = list(address.waiting)
            self._forwarder.turn.deferred.go_through(waiting, self._look_at, self._end)
        else:
            address.refusing = None

    def _may_refuse(self) -> bool:
        return any(limit < UNLIMITED for limit in self._limits.values())

    def _look_at(self, delivery: Any) -> None:
        address = self._address
        limit = self._limits.get(delivery.incoming.side, UNLIMITED)
        # since the look was begun it may have been taken, and receivers may have come and gone
        is_there = delivery.waits_in is address.waiting and address.consumers
        if delivery.size > limit and is_there and is_too_large(address, delivery):
            address.waiting.remove(delivery)
            self._forwarder.count_out(delivery)
            self._forwarder.backlog.drop(delivery)
            refuse(self._forwarder, address, delivery)

    def _end(self) -> None:
        if self.is_due_again and self._address.consumers:
            self.begin()
        else:
            self._address.refusing = None


def _limits(address: Address) -> dict[int, int]:
    """The most octets that any receiver takes of a message, by the side that it comes from."""
    if not is_spread_by_sides(address):
        return dict.fromkeys(address.waiting.by_side(), largest(address))
    return {
        side: max((each.link.max_message_size for each in sides.serving(address, side)), default=-1)
        for side in address.waiting.by_side()
    }
