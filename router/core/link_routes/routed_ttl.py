"""Reduce the ttl of messages that were held on a routed link (section 3.2.1).

Messages on routed links are passed on without being read, except those that this router had to
hold. When such a message leaves, the time for which it was held is subtracted from its ttl. A
message whose ttl has run out is not sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from router.amqp.constants import Descriptor
from router.amqp.peek import find_header
from router.amqp.performatives import Coordinator
from router.amqp.revision import write_ttl
from router.core.model import router_outcomes
from router.engine.rare_transfers import RESUMED

if TYPE_CHECKING:
    from router.core.ports import Core
    from router.engine.delivery import Delivery

REJECTED = int(Descriptor.REJECTED)
# First octets of an encoded transactional-state: the state of a message that is posted.
POSTED = b"\x00\x53\x34"


def apply_ttl(forwarder: Core, delivery: Delivery) -> None:
    """Write the remaining ttl into a delivery that was held, or reject it if its ttl has run out.

    A delivery in a transaction is forwarded with a ttl of one millisecond instead, because a router
    may not remove it from the transaction.
    """
    chunk = delivery.chunks[0] if delivery.chunks else b""
    count = len(chunk)
    if delivery.message_format or delivery.transfer_flags & RESUMED:
        # a delivery that is resumed may begin in the middle of its message
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


def _is_of_transaction(delivery: Delivery) -> bool:
    attach = delivery.incoming.remote_attach
    is_posted: bool = (delivery.state or b"").startswith(POSTED)
    return is_posted or isinstance(attach.target, Coordinator)


def _give_up(forwarder: Core, delivery: Delivery) -> None:
    """Reject an expired delivery.

    The receiver gets an aborted transfer, because the delivery has used up a credit.
    """
    link = delivery.incoming
    forwarder.outcomes.expired(delivery)
    forwarder.backlog.drop(delivery)
    delivery.discarded = True
    forwarder.outcomes.count_for_sender(delivery, REJECTED)
    settles = int(link.attach.rcv_settle_mode) == 0
    octets = router_outcomes.EXPIRED
    link.session.send_state_to_sender(delivery, settles, REJECTED, octets, 0, len(octets))
