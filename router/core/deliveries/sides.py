"""Which consumer a delivery may go to, by the sides of a network that it comes from and leads to.

What comes from one side goes to any consumer here, and to those of every other side: never back to
the edge that it came from, and from one router of the network to the next only along a way made for
it. Where the address's treatment is closest it goes to the nearest of these. All of this is for
addresses that are `sided`; none of it runs once a message, but for what waits.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from router.core.deliveries import unsent
from router.core.model.address import CLOSEST, HERE, Address, Consumer


def serves(consumer: Consumer, side: int) -> bool:
    """Whether a consumer may have what comes from a side."""
    return consumer.side == HERE or consumer.side != side


def serving(address: Address, side: int) -> Iterator[Consumer]:
    """The consumers of an address that may have what comes from a side, be they near or far."""
    return (consumer for consumer in address.consumers if serves(consumer, side))


def has_receiver(address: Address, side: int) -> bool:
    """Whether anybody receives what comes from a side."""
    return any(serves(consumer, side) for consumer in address.consumers)


def may_take(consumer: Consumer, side: int) -> bool:
    """Whether a consumer is one of those that what comes from a side is for: with closest, there is
    none nearer.
    """
    if not serves(consumer, side):
        return False
    address = consumer.address
    if address.treatment != CLOSEST:
        return True
    return all(consumer.cost <= each.cost for each in serving(address, side))


def takes_from_anywhere(consumer: Consumer) -> bool:
    """Whether what waits at its address is for a consumer from whichever side it comes."""
    return consumer.side == HERE and consumer.address.treatment != CLOSEST


def taken_by(consumer: Consumer) -> set[int]:
    """The sides from which something waits at its address that is for a consumer."""
    address = consumer.address
    found = {side for side in address.waiting.by_side() if serves(consumer, side)}
    if address.treatment != CLOSEST:
        return found
    # with receivers on two sides that are nearer, or on this one, there is one for each side
    nearer = {each.side for each in address.consumers if each.cost < consumer.cost}
    if len(nearer) > 1 or HERE in nearer:
        return set()
    return found & nearer if nearer else found


def receiver_lost(forwarder: Any, address: Address) -> None:
    """A consumer has left, and others are there: release what waits and is for none of these, of
    very much the last in later turns.
    """
    waiting = address.waiting
    lost = {side for side in waiting.by_side() if not has_receiver(address, side)}
    if not lost:
        return

    def release(delivery: Any) -> None:
        # it may have gone otherwise meanwhile
        if waiting.remove(delivery):
            unsent.settle(forwarder, address, unsent.RELEASED, delivery)

    found = (each if each.incoming.side in lost else None for each in list(waiting))
    forwarder.turn.deferred.go_through(found, release)
