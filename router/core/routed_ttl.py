"""Reckon the ttl of messages on routed links, which nobody else looks at (section 3.2.1).

Only what was held here is looked at, when it leaves: its ttl is less by that time. One whose ttl
has ended is not sent.
"""

from __future__ import annotations

from typing import Any

from router.amqp.constants import Descriptor
from router.amqp.peek import find_header
from router.amqp.performatives import Coordinator
from router.amqp.revision import write_ttl
from router.core import verdicts
from router.engine.rare_transfers import RESUMED

REJECTED = int(Descriptor.REJECTED)
# as encoded states begin
POSTED = b"\x00\x53\x34"


def age(forwarder: Any, delivery: Any) -> None:
    """Write what is left of the ttl of a delivery that was held; one that has expired is discarded.

    Its sender is told so, as elsewhere. What is part of a transaction goes on with the least ttl:
    it is not for a router to end.
    """
    chunk = delivery.chunks[0] if delivery.chunks else b""
    count = len(chunk)
    if delivery.message_format or delivery.manner & RESUMED:
        # of what is resumed this may be the middle
        return
    header = find_header(chunk, 0, count)
    if header is None or not header.ttl_at:
        return
    left_ms = header.ttl_ms - int((forwarder.turn.now - delivery.arrived) * 1000)
    if left_ms <= 0 and not _is_of_transaction(delivery):
        _give_up(forwarder, delivery)
        return
    octets = bytearray(chunk)
    write_ttl(octets, header.ttl_at, max(1, left_ms))
    delivery.chunks[0] = bytes(octets)


def _is_of_transaction(delivery: Any) -> bool:
    attach = delivery.incoming.remote_attach
    is_posted: bool = (delivery.state or b"").startswith(POSTED)
    return is_posted or isinstance(attach.target, Coordinator)


def _give_up(forwarder: Any, delivery: Any) -> None:
    """Discard a delivery; its receiver is told that it is aborted, for it has taken its credit."""
    link = delivery.incoming
    delivery.address.counters.expired += 1
    forwarder.backlog.drop(delivery)
    delivery.discarded = True
    forwarder.outcomes.sender_told(delivery, REJECTED)
    settles = int(link.attach.rcv_settle_mode) == 0
    octets = verdicts.EXPIRED
    link.session.tell_sender(delivery, settles, REJECTED, octets, 0, len(octets))
