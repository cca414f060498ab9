"""Outcomes of the router's own, for deliveries that no receiver will speak of, and their ranks."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from router.amqp.composite import decode_composite, encode_composite
from router.amqp.constants import Condition, Descriptor
from router.amqp.performatives import Error, Modified, Rejected
from router.amqp.types import Symbol


def rejected(condition: str, description: str) -> bytes:
    """The octets of a rejected outcome with this error."""
    error = Error(condition=Symbol(condition), description=description)
    return encode_composite(Rejected(error=error))


# Sent, and its receiver lost before it said anything (the contract's mapping of lost links).
DELIVERY_FAILED = encode_composite(Modified(delivery_failed=True))

# So is one of a multicast's copies that was for all behind another router: nobody knows who of them
# has got it. Routers tell it to each other by the annotation, which no sender gets to see.
_LOST: dict[Any, Any] = {Symbol("x-opt-trioute.lost"): True}
LOST = encode_composite(Modified(delivery_failed=True, message_annotations=_LOST))
_MARK = b"x-opt-trioute.lost"
_MODIFIED = int(Descriptor.MODIFIED)
_RELEASED = int(Descriptor.RELEASED)

NO_TO = rejected(
    Condition.PRECONDITION_FAILED, "a message on an anonymous link needs a `to` in its properties"
)
# the words are Dispatch's, which programs compare
NOT_FOUND = rejected(Condition.NOT_FOUND, "Deliveries cannot be sent to an unavailable address")
UNCONFIRMED = rejected(
    Condition.PRECONDITION_FAILED,
    "a durable message, and its receiver takes everything settled, which confirms nothing",
)
EXPIRED = rejected("trioute:expired", "the message's ttl ended before a receiver took it")


@lru_cache(maxsize=256)
def reason(code: int, state: bytes) -> str:
    """Return why the router decided on an outcome: its error's condition, `delivery-failed` where
    the receiver was lost, or `no-receiver`.
    """
    if not state:
        return "no-receiver" if code == _RELEASED else ""
    told, _ = decode_composite(state)
    if isinstance(told, Rejected) and told.error is not None:
        return str(told.error.condition)
    return "delivery-failed" if isinstance(told, Modified) and told.delivery_failed else ""


# Which outcome speaks for all receivers of a multicast. An outcome without a rank of its own, such
# as an extension or none at all, comes next after accepted: some receiver has taken the message in
# its own way.
_RANKS = {
    int(Descriptor.RELEASED): 1,
    int(Descriptor.MODIFIED): 2,
    int(Descriptor.ACCEPTED): 4,
    int(Descriptor.REJECTED): 6,
}
_LOST_RANK = 5
# where others get it, it is they who speak
_UNCONFIRMED_RANK = 0
_REJECTED = int(Descriptor.REJECTED)


def rank(code: int, state: bytes | None = None) -> int:
    """The higher speaks for the lower: rejected > lost between routers > accepted > modified >
    released > rejected as unconfirmed.
    """
    if code == _REJECTED and state == UNCONFIRMED:
        return _UNCONFIRMED_RANK
    return _LOST_RANK if is_lost(code, state) else _RANKS.get(code, 3)


def is_lost(code: int, state: bytes | None) -> bool:
    """Whether an outcome says that a copy was lost on its way between routers."""
    return bool(state) and code == _MODIFIED and _MARK in (state or b"")


def told(state: bytes | None) -> bytes | None:
    """What a sender that is no router is told in place of that a copy was lost between routers."""
    return DELIVERY_FAILED if is_lost(_MODIFIED, state) else state
