"""Durable messages that nobody would confirm (section 3.2.1).

A receiver that takes everything settled says nothing of what it got, and the router tells senders
that it is accepted once it is written. With `rejectUnconfirmedDurable` such receivers get nothing
durable: it is rejected, where its sender awaits an outcome. Of a multicast the other receivers
speak.
"""

from __future__ import annotations

from typing import Any

from router.amqp.constants import Descriptor
from router.amqp.peek import is_durable
from router.core import verdicts

REJECTED = int(Descriptor.REJECTED)


def is_durable_message(delivery: Any, octets: Any) -> bool:
    """Whether a delivery, of which `octets` has all of the head, is of a durable message."""
    return not delivery.message_format and is_durable(octets, 0, len(octets))


def refuse(forwarder: Any, delivery: Any, view: Any, start: int, end: int) -> bool:
    """Reject a delivery that is about to go to one who takes everything settled, if it is durable.

    `view[start:end]` has all of the message's head. Returns whether it is rejected.
    """
    if delivery.settled or delivery.message_format or not is_durable(view, start, end):
        return False
    sent = delivery if delivery.parent is None else delivery.parent
    if not sent.incoming_open and sent.suspended is None:
        # its sender is lost, and nobody else has it
        return False
    delivery.address.counters.count_outcome(REJECTED)
    delivery.discarded = True
    forwarder.settle(delivery, REJECTED, verdicts.UNCONFIRMED)
    return True
