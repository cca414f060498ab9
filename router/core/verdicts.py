"""Outcomes of the router's own, for deliveries that no receiver will speak of, and their ranks."""

from __future__ import annotations

from router.amqp.composite import encode_composite
from router.amqp.constants import Condition, Descriptor
from router.amqp.performatives import Error, Modified, Rejected
from router.amqp.types import Symbol


def rejected(condition: str, description: str) -> bytes:
    """The octets of a rejected outcome with this error."""
    error = Error(condition=Symbol(condition), description=description)
    return encode_composite(Rejected(error=error))


# Sent, and its receiver lost before it said anything (the contract's mapping of lost links).
DELIVERY_FAILED = encode_composite(Modified(delivery_failed=True))

NO_TO = rejected(
    Condition.PRECONDITION_FAILED, "a message on an anonymous link needs a `to` in its properties"
)
# the words are Dispatch's, which programs compare
NOT_FOUND = rejected(Condition.NOT_FOUND, "Deliveries cannot be sent to an unavailable address")
EXPIRED = rejected("trioute:expired", "the message's ttl ended before a receiver took it")

# Which outcome speaks for all receivers of a multicast. An outcome without a rank of its own, such
# as an extension or none at all, comes next after accepted: some receiver has taken the message in
# its own way.
_RANKS = {
    int(Descriptor.RELEASED): 1,
    int(Descriptor.MODIFIED): 2,
    int(Descriptor.ACCEPTED): 4,
    int(Descriptor.REJECTED): 5,
}


def rank(code: int) -> int:
    """The higher speaks for the lower: rejected > accepted > modified > released."""
    return _RANKS.get(code, 3)
