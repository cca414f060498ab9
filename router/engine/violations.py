"""Errors for per-message frames that break the rules of a session or link (section 2.8).

Most functions return an error; the data plane raises the error, or detaches the link with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from router.amqp.constants import Condition
from router.amqp.outcomes import MAX_KEPT_BYTES
from router.amqp.reading import TransferFrame
from router.engine.delivery import Delivery
from router.engine.states import LinkState
from router.errors import AmqpError, Scope

if TYPE_CHECKING:
    from router.engine.link import IncomingLink


def window_exceeded() -> AmqpError:
    """Return the error for a transfer while the incoming window is closed (section 2.5.6)."""
    return AmqpError(
        Condition.WINDOW_VIOLATION,
        "transfer received while the session's incoming window is closed",
        Scope.SESSION,
    )


def unattached(handle: int, handle_max: int) -> AmqpError:
    """Return the error for a handle that has no link (2.5.7), or is above handle-max (2.7.2)."""
    if handle > handle_max:
        problem = f"handle {handle} is above handle-max {handle_max}"
        return AmqpError(Condition.FRAMING_ERROR, problem, Scope.CONNECTION)
    return AmqpError(
        Condition.UNATTACHED_HANDLE, f"no link is attached to handle {handle}", Scope.SESSION
    )


def not_incoming(found: object, handle: int, handle_max: int) -> AmqpError:
    """Return the error for a transfer whose handle names a link that we send on, or no link."""
    if found is None:
        return unattached(handle, handle_max)
    return AmqpError(
        Condition.NOT_ALLOWED,
        f"transfer received on handle {handle}, whose link is for sending to the peer",
        Scope.SESSION,
    )


def check_continuation(delivery: Delivery, frame: TransferFrame) -> None:
    """Raise AmqpError unless a later transfer continues the delivery that has begun (2.7.5)."""
    begun, number = delivery.incoming_id, frame.delivery_id
    if frame.has_delivery_id and number != begun:
        problem = f"delivery {number} begins before delivery {begun} is complete"
        raise AmqpError(Condition.NOT_ALLOWED, problem, Scope.SESSION)
    if frame.has_delivery_tag:
        tag = bytes(memoryview(frame.octets)[frame.tag_at : frame.tag_end])
        if tag != delivery.incoming_tag:
            problem = f"a later transfer of delivery {begun} changes the delivery-tag"
            raise AmqpError(Condition.INVALID_FIELD, problem, Scope.SESSION)
    if frame.message_format and frame.message_format != delivery.message_format:
        problem = f"a later transfer of delivery {begun} changes the message-format"
        raise AmqpError(Condition.INVALID_FIELD, problem, Scope.SESSION)


def incomplete(has_delivery_id: bool) -> AmqpError:
    """Return the error for a first transfer without its delivery-id or tag (section 2.7.5)."""
    what = "delivery-tag" if has_delivery_id else "delivery-id"
    return AmqpError(
        Condition.INVALID_FIELD, f"a delivery's first transfer has no {what}", Scope.SESSION
    )


def out_of_order(number: int, expected: int) -> AmqpError:
    """Return the error for a delivery-id that does not follow the last one (section 2.6.12)."""
    return AmqpError(
        Condition.INVALID_FIELD,
        f"delivery-id {number} is out of order; {expected} is expected",
        Scope.SESSION,
    )


def backward_range(first: int, last: int) -> AmqpError:
    """Return the error for a disposition whose range runs backwards (section 2.7.6)."""
    return AmqpError(
        Condition.INVALID_FIELD,
        f"disposition range {first} to {last} runs backwards",
        Scope.SESSION,
    )


def no_credit() -> AmqpError:
    """Return the error for a transfer on a link whose credit is used up (section 2.6.7)."""
    return AmqpError(
        Condition.TRANSFER_LIMIT_EXCEEDED, "transfer received without link-credit", Scope.LINK
    )


def settles_first() -> AmqpError:
    """Return the error for a transfer that asks for rcv-settle-mode `second` (section 2.7.5).

    Its link was attached with rcv-settle-mode `first`.
    """
    return AmqpError(
        Condition.NOT_ALLOWED,
        "transfer has rcv-settle-mode second; the link was attached with first",
        Scope.LINK,
    )


def check_errant(link: IncomingLink) -> None:
    """Raise AmqpError for a new delivery on a link that was detached with an error (2.6.5).

    No error is raised for as many deliveries as the link had credit for: they may have been sent
    before the peer received the detach.
    """
    if link.state != LinkState.DISCARDING:
        return
    if link.credit == 0 and not link.overdraws():
        raise errant(link.name)
    link.credit -= 1


def errant(name: str) -> AmqpError:
    """Return the error for a peer that keeps using a link that was detached with an error."""
    return AmqpError(
        Condition.ERRANT_LINK,
        f"link {name!r} was detached with an error; the peer must detach it before using it",
        Scope.SESSION,
    )


def state_too_large(size: int) -> AmqpError:
    """Return the error for a transfer whose state is too large to be kept with a delivery."""
    return AmqpError(
        Condition.RESOURCE_LIMIT_EXCEEDED,
        f"the state of a delivery has {size} octets; {MAX_KEPT_BYTES} are allowed",
        Scope.LINK,
    )


def message_too_large(size: int, limit: int) -> AmqpError:
    """Return the error for a message larger than the link's max-message-size (section 2.7.3)."""
    return AmqpError(
        Condition.MESSAGE_SIZE_EXCEEDED,
        f"the message has at least {size} octets; max-message-size is {limit}",
        Scope.LINK,
    )
