"""Reject durable messages for receivers that do not confirm messages (section 3.2.1).

A receiver with snd-settle-mode settled confirms nothing, and the router tells the sender `accepted`
once a message is written to it. With `rejectUnconfirmedDurable` such receivers get no durable
messages: these are rejected, if their sender awaits an outcome. For a multicast, the outcomes of
the other receivers decide.
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
    """Return whether a delivery's message is durable; `octets` contains its whole head."""
    return not delivery.message_format and is_durable(octets, 0, len(octets))


def refuse(forwarder: Core, delivery: Delivery, view: Octets, start: int, end: int) -> bool:
    """Reject a durable delivery that is about to be sent settled to a receiver.

    `view[start:end]` contains the whole head of the message. Returns whether it is rejected.
    """
    if delivery.settled or delivery.message_format or not is_durable(view, start, end):
        return False
    sent = delivery if delivery.parent is None else delivery.parent
    if not sent.incoming_open and sent.suspended is None:
        # its sender is lost and cannot be told: delivering the message is better than dropping it
        return False
    delivery.address.counters.count_outcome(REJECTED)
    delivery.discarded = True
    forwarder.settlement.settle(delivery, REJECTED, router_outcomes.UNCONFIRMED)
    return True
