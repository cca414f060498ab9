"""Who takes what nobody else does: messages come to them, and go to others again.

What waits when the last receiver of an address leaves goes to its fallback, and what still waits
there when somebody receives at the address again comes back, in its order. What has been sent stays
where it is. None of this runs once a message.
"""

from __future__ import annotations

from typing import Any

from router.core import sizes
from router.core.address import FALLBACK, MULTICAST, Address, Consumer


def joined(forwarder: Any, consumer: Consumer) -> None:
    """A consumer has joined its address: if it is the first, what waits at the fallback is its."""
    address = consumer.address
    fallback = None if address.ties is None else address.ties.fallback
    if fallback is None or len(address.consumers) > 1 or address.treatment == MULTICAST:
        return
    _move(forwarder, fallback, address)
    forwarder.note_credit(address, None)


def left(forwarder: Any, address: Address) -> None:
    """An address has lost its last consumer: what waits for any goes to the fallback."""
    fallback = None if address.ties is None else address.ties.fallback
    if fallback is None or not fallback.consumers or address.treatment == MULTICAST:
        return
    address.counters.redirected += _move(forwarder, address, fallback)
    # given out at the end of the turn: the next to be lost may be the fallback's receivers
    forwarder.note_credit(fallback, None)


def _move(forwarder: Any, source: Address, to: Address) -> int:
    """Have what waits at an address wait at another, as far as anybody there takes it."""
    moved = source.waiting.take_out(lambda delivery: _may_go(delivery, to))
    for delivery in moved:
        delivery.address = to
        forwarder.network.outward.lanes.enter(to, delivery)
    to.waiting.extend(moved)
    return len(moved)


def _may_go(delivery: Any, to: Address) -> bool:
    producer = delivery.incoming.owner
    # what a fallback itself gave on is not for it
    if producer is not None and producer.is_fallback and to.phase == FALLBACK:
        return False
    return not sizes.is_too_large(to, delivery)
