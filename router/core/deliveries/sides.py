"""Sides: which consumers may get a delivery, depending on the side that it comes from.

A delivery from one side may go to any consumer at this router, and to consumers on every other
side. It never goes back to the edge that it came from. A delivery from an interior router goes to
other interior routers only on links that were made for this (`network.transit`). If the treatment
is closest, it goes to the nearest of these consumers. This module is for addresses that have links
to other sides (`Address.remote_ends`). It runs only for deliveries that wait, not for each one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from router.core.deliveries import unsent
from router.core.model.address import CLOSEST, HERE, Address, Consumer

if TYPE_CHECKING:
    from router.core.ports import Core
    from router.engine.delivery import Delivery


def serves(consumer: Consumer, side: int) -> bool:
    """Return whether a consumer may get messages that come from `side`."""
    return consumer.side == HERE or consumer.side != side


def serving(address: Address, side: int) -> Iterator[Consumer]:
    """Return the consumers of an address, near or far, that may get messages from `side`."""
    return (consumer for consumer in address.consumers if serves(consumer, side))


def has_receiver(address: Address, side: int) -> bool:
    """Return whether an address has consumers that may get messages from `side`."""
    return any(serves(consumer, side) for consumer in address.consumers)


def may_take(consumer: Consumer, side: int) -> bool:
    """Return whether a waiting message from `side` may go to a consumer now.

    This is like `serves`, but if the treatment is closest, only the nearest consumers may get it.
    """
    if not serves(consumer, side):
        return False
    address = consumer.address
    if address.treatment != CLOSEST:
        return True
    return all(consumer.cost <= each.cost for each in serving(address, side))


def takes_from_anywhere(consumer: Consumer) -> bool:
    """Return whether a consumer may get waiting messages from all sides."""
    return consumer.side == HERE and consumer.address.treatment != CLOSEST


def taken_by(consumer: Consumer) -> set[int]:
    """Return the sides with waiting messages that a consumer may get."""
    address = consumer.address
    found = {side for side in address.waiting.by_side() if serves(consumer, side)}
    if address.treatment != CLOSEST:
        return found
    # if there are nearer receivers here or on two sides, every side has a nearer one
    nearer = {each.side for each in address.consumers if each.cost < consumer.cost}
    if len(nearer) > 1 or HERE in nearer:
        return set()
    return found & nearer if nearer else found


def receiver_lost(forwarder: Core, address: Address) -> None:
    """Release waiting messages that none of the remaining consumers may get.

    Call it after a consumer has left. If there are very many messages, the last ones are released
    in later turns.
    """
    waiting = address.waiting
    lost = {side for side in waiting.by_side() if not has_receiver(address, side)}
    if not lost:
        return

    def release(delivery: Delivery) -> None:
        # the delivery may have been sent meanwhile
        if waiting.remove(delivery):
            unsent.settle(forwarder, address, unsent.RELEASED, delivery)

    found = (each if each.incoming.side in lost else None for each in list(waiting))
    forwarder.turn.deferred.process_each(found, release)
