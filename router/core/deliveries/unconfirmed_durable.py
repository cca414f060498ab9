"""Reject durable messages for receivers that do not confirm messages (section 3.2.1).

A receiver with snd-settle-mode settled confirms nothing, so the router sends the outcome `accepted`
to the sender as soon as a message has been written. With `rejectUnconfirmedDurable`, durable
messages for such receivers are rejected, if their sender awaits an outcome. For a multicast, the
outcomes of the other receivers decide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from router.amqp.constants import Descriptor
from router.amqp.peek import is_durable
from router.core.model import router_outcomes

if TYPE_CHECKING:
    from router.amqp.types import Octets
    from router.core.ports import Core
    from router.engine.delivery import Delivery

REJECTED = int(Descriptor.REJECTED)


def is_durable_message(delivery: Delivery, octets: Octets) -> bool:
    """Return whether a delivery's message is durable; `octets` must contain its whole header."""
    return not delivery.message_format and is_durable(octets, 0, len(octets))


def refuse(forwarder: Core, delivery: Delivery, view: Octets, start: int, end: int) -> bool:
    """Reject a delivery that is about to be sent as settled, if its message is durable.

    Return whether it was rejected. `view[start:end]` must contain the message's whole header.
    """
    if delivery.settled or delivery.message_format or not is_durable(view, start, end):
        return False
    sent = delivery
    while sent.parent is not None:
        # a copy, and what was copied may have come in a batch
        sent = sent.parent
    if not sent.incoming_open and sent.suspended is None:
        # its sender is lost and cannot be told: delivering the message is better than dropping it
        return False
    delivery.address.counters.count_outcome(REJECTED)
    delivery.discarded = True
    forwarder.settlement.settle(delivery, REJECTED, router_outcomes.UNCONFIRMED)
    return True
