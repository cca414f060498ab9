"""Reject messages that cannot be delivered because of an error in them, and tell the sender why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from router.amqp.composite import decode_composite
from router.amqp.constants import Condition, Descriptor
from router.amqp.peek import find_user_id
from router.amqp.performatives import Rejected
from router.amqp.types import Symbol
from router.core.addresses import tenants
from router.core.addresses.link_origins import ANONYMOUS
from router.core.addresses.table import address_name
from router.core.deliveries import aborting
from router.core.model import router_outcomes
from router.core.model.address import HERE, Address, Producer
from router.errors import AmqpError, Scope

if TYPE_CHECKING:
    from router.amqp.reading import TransferFrame
    from router.core.addresses.access import Access
    from router.core.ports import Core
    from router.engine.delivery import Delivery

REJECTED = int(Descriptor.REJECTED)
# The description is Dispatch's, which programs compare.
USER_ID_NOT_ALLOWED = "user_id proxy disallowed by local policy"


def reject_unaddressed(forwarder: Core, delivery: Delivery, verdict: bytes) -> None:
    """Reject an anonymous sender's message that has no usable address.

    If the sender cannot be told so by an outcome, its link may be detached with the error
    (Anonymous Terminus for Message Routing, section 2.2.2; docs/decisions/0119).
    """
    counters = forwarder.table.unused.counters
    counters.ingress += 1
    counters.bytes_in += delivery.size
    counters.no_destination += 1
    if delivery.settled:
        counters.presettled += 1
        counters.dropped_presettled += 1
        delivery.incoming.presettled += 1
        delivery.incoming.dropped_presettled += 1
    elif delivery.incoming_open:
        counters.count_told(REJECTED, 0.0, 1)
    delivery.discarded = True
    if _is_told_by_detach(forwarder, delivery):
        link = delivery.incoming
        link.session.connection.fail_link(link, _routing_error(delivery, verdict))
        if delivery.parent is None:
            return
        # it came in a batch, whose charge is released once all its messages have an outcome
    forwarder.settlement.settle(delivery, REJECTED, verdict)


def _is_told_by_detach(forwarder: Core, delivery: Delivery) -> bool:
    """Return whether the link of an unroutable message is detached in place of an outcome.

    For an unsettled message it is if the link's source lists outcomes without rejected, and for a
    settled message if the configuration says so. Links of other routers carry the messages of many
    senders, and are never detached.
    """
    link = delivery.incoming
    if link.side != HERE or link.session.connection.settings.is_own:
        return False
    producer: Producer = link.owner
    return forwarder.detaches_unroutable if delivery.settled else producer.lacks_rejected


def _routing_error(delivery: Delivery, verdict: bytes) -> AmqpError:
    """Return the error of a rejected outcome for a detach, with the delivery-tag in its info."""
    outcome, _ = decode_composite(verdict)
    error = outcome.error if isinstance(outcome, Rejected) else None
    if error is None:
        raise ValueError("an unroutable message is rejected with an error")
    info = {**(error.info or {}), Symbol("delivery-tag"): _tag(delivery)}
    return AmqpError(str(error.condition), error.description or "", Scope.LINK, info)


def _tag(delivery: Delivery) -> bytes:
    """Return the tag that the sender gave to a delivery."""
    tag = delivery.incoming_tag
    return delivery.tag_word.to_bytes(delivery.tag_size, "big") if tag is None else tag


def address_inside(forwarder: Core, delivery: Delivery, access: Access, text: str) -> str | None:
    """Return the router's name for the address of an anonymous sender's message.

    If the access of the sender's connection does not allow the message, or there is no such address
    for its tenant, reject the message and return None.
    """
    connection = delivery.incoming.session.connection
    refusal = access.message_refusal(forwarder.table.own_name(address_name(text)))
    if refusal is None:
        try:
            return tenants.inside(forwarder.table, connection, text, is_sender=True)
        except AmqpError as error:
            refusal = error
    verdict = router_outcomes.rejected(refusal.condition, refusal.description)
    reject_unaddressed(forwarder, delivery, verdict)
    return None


def reject_other_user(
    forwarder: Core, address: Address, delivery: Delivery, frame: TransferFrame
) -> bool:
    """Reject a message whose user-id is not the peer's own user; return whether it was rejected.

    An empty user-id is allowed (section 3.2.4). A message whose user-id cannot be read, because it
    is not in the first frame, is rejected.
    """
    user_id = find_user_id(frame.octets, frame.payload_at, frame.end, is_whole=not frame.more)
    user = delivery.incoming.session.connection.user or ANONYMOUS
    if user_id is not None and user_id in (b"", user.encode()):
        return False
    address.counters.malformed += 1
    delivery.discarded = True
    aborting.abort_all(forwarder, delivery)
    verdict = router_outcomes.rejected(Condition.UNAUTHORIZED_ACCESS, USER_ID_NOT_ALLOWED)
    forwarder.settlement.settle(delivery, REJECTED, verdict)
    return True


def reject_malformed(forwarder: Core, address: Address, delivery: Delivery) -> None:
    """Reject a malformed message, and abort it for receivers that were sent a part of it.

    A presettled message gets no outcome, so its sender's link is detached with the error.
    """
    problem = forwarder.intake.problem
    condition = forwarder.intake.condition
    address.counters.malformed += 1
    delivery.discarded = True
    aborting.abort_all(forwarder, delivery)
    if delivery.settled:
        # the delivery gets no outcome, so the link is detached with the error
        link = delivery.incoming
        error = AmqpError(condition, problem, Scope.LINK)
        link.session.connection.fail_link(link, error)
    else:
        forwarder.settlement.settle(
            delivery, REJECTED, router_outcomes.rejected(condition, problem)
        )
