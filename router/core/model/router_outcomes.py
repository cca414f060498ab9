"""Outcomes that the router itself decides on, and the ranks of outcomes for merging them."""

from __future__ import annotations

from functools import lru_cache

from router.amqp.composite import decode_composite, encode_composite
from router.amqp.constants import Condition, Descriptor
from router.amqp.performatives import Error, Modified, Rejected
from router.amqp.types import Symbol


def rejected(condition: str, description: str) -> bytes:
    """Return the octets of a rejected outcome with this error."""
    error = Error(condition=Symbol(condition), description=description)
    return encode_composite(Rejected(error=error))


# The outcome of a delivery that was sent, and whose receiver was lost before it sent an outcome.
DELIVERY_FAILED = encode_composite(Modified(delivery_failed=True))

# The same for a multicast's copy to all receivers beyond another router, some of which may have got
# it. The annotation marks it for other routers; no sender sees it.
_LOST = {Symbol("x-opt-trioute.lost"): True}
LOST = encode_composite(Modified(delivery_failed=True, message_annotations=_LOST))
_MARK = b"x-opt-trioute.lost"
_MODIFIED = int(Descriptor.MODIFIED)
_RELEASED = int(Descriptor.RELEASED)

NO_TO = rejected(
    Condition.PRECONDITION_FAILED,
    "a message on an anonymous link must have a `to` in its properties",
)
# the description is Dispatch's; programs compare it
NOT_FOUND = rejected(Condition.NOT_FOUND, "Deliveries cannot be sent to an unavailable address")
UNCONFIRMED = rejected(
    Condition.PRECONDITION_FAILED,
    "durable messages are not sent to a receiver with snd-settle-mode settled: it confirms nothing",
)
EXPIRED = rejected("trioute:expired", "the message expired before a receiver had credit for it")


@lru_cache(maxsize=256)
def reason(code: int, state: bytes) -> str:
    """Return why the router decided on an outcome.

    The reason is the condition of the outcome's error, `delivery-failed` if the receiver was lost,
    or `no-receiver`.
    """
    if not state:
        return "no-receiver" if code == _RELEASED else ""
    told, _ = decode_composite(state)
    if isinstance(told, Rejected) and told.error is not None:
        return str(told.error.condition)
    return "delivery-failed" if isinstance(told, Modified) and told.delivery_failed else ""


# Ranks of the outcomes of a multicast's receivers; the highest prevails. An outcome without a rank,
# such as an extension's or none at all, is just below accepted: a receiver has taken the message in
# its own way.
_RANKS = {
    int(Descriptor.RELEASED): 1,
    int(Descriptor.MODIFIED): 2,
    int(Descriptor.ACCEPTED): 4,
    int(Descriptor.REJECTED): 6,
}
_LOST_RANK = 5
# the outcomes of other receivers prevail
_UNCONFIRMED_RANK = 0
_REJECTED = int(Descriptor.REJECTED)


def rank(code: int, state: bytes | None = None) -> int:
    """Return the rank of an outcome; a multicast's sender gets the outcome with the highest rank.

    From the highest rank: rejected, `LOST`, accepted, outcomes that AMQP does not define, modified,
    released, `UNCONFIRMED`.
    """
    if code == _REJECTED and state == UNCONFIRMED:
        return _UNCONFIRMED_RANK
    return _LOST_RANK if is_lost(code, state) else _RANKS.get(code, 3)


# The same for the outcomes of a batch's messages: the sender learns the worst one.
_RANKS_IN_BATCH = {
    int(Descriptor.ACCEPTED): 1,
    int(Descriptor.RELEASED): 3,
    int(Descriptor.MODIFIED): 4,
    int(Descriptor.REJECTED): 5,
}


def worse_of(code: int, state: bytes, other: int, other_state: bytes) -> tuple[int, bytes]:
    """Return the outcome of a batch whose messages have one or the other of two outcomes.

    From the worst: rejected, modified, released, outcomes that AMQP does not define, accepted. If
    only some messages were released, the result is modified with delivery-failed, because others
    were delivered.
    """
    if _RANKS_IN_BATCH.get(code, 2) < _RANKS_IN_BATCH.get(other, 2):
        code, state, other = other, other_state, code
    if code == _RELEASED and other != _RELEASED:
        return _MODIFIED, DELIVERY_FAILED
    return code, state


def is_lost(code: int, state: bytes | None) -> bool:
    """Return whether an outcome says that a copy was lost on its way between routers."""
    return bool(state) and code == _MODIFIED and _MARK in (state or b"")


def without_lost_mark(state: bytes | None) -> bytes | None:
    """Return a state without the mark of a lost copy, for a sender that is not a router."""
    return DELIVERY_FAILED if is_lost(_MODIFIED, state) else state
