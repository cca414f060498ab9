"""Reasons why a connection failed, each with its kind and a text."""

from __future__ import annotations

import enum
from typing import Final

import attrs

from router.amqp.constants import Condition
from router.engine.events import ConnectionClosed
from router.engine.opening import NO_MECHANISM


class NetworkCondition(enum.StrEnum):
    """Error condition for routers that cannot be connected; the value is the symbol on the wire."""

    NOT_A_ROUTER = "trioute:not-a-router"
    OTHER_VERSION = "trioute:protocol-version"
    WRONG_MODE = "trioute:wrong-mode"
    MALFORMED_OPEN = "trioute:malformed-open"
    DUPLICATE_ID = "trioute:duplicate-id"
    SILENT = "trioute:neighbour-silent"
    CONTROL_LINK = "trioute:control-link-lost"


# Conditions that last until an operator changes something at one of the two routers.
LASTING: Final = frozenset(
    {
        NetworkCondition.NOT_A_ROUTER,
        NetworkCondition.OTHER_VERSION,
        NetworkCondition.WRONG_MODE,
        NetworkCondition.MALFORMED_OPEN,
        NetworkCondition.DUPLICATE_ID,
    }
)

# The most characters kept of the peer's description.
LONGEST_REASON: Final = 300


@attrs.frozen
class Failure:
    """Reason why a connection failed: `kind` is a key of `FAILURES`, `reason` a text for people."""

    kind: str
    reason: str


FAILURES: Final = {
    "unresolved": "the host has no address",
    "unreachable": "nothing listens there, or the network is blocked",
    "silent": "there is no answer",
    "protocol": "the peer does not speak AMQP 1.0 correctly",
    "unauthorized": "a user name, password, token or certificate is refused, or missing",
    "refused": "the peer authenticates the router and then refuses the connection, or is not a "
    "router that this one can connect to",
    "closed": "the connection is closed by either side, or lost",
}
"""Kinds of failures, and the meaning of each."""


def failure_of(closed: ConnectionClosed | None, was_open: bool, was_refused: bool) -> Failure:
    """Return why a connection ended.

    `was_refused` says whether the peer's open announced a refusal.
    """
    error = None if closed is None else closed.error
    if closed is None or error is None:
        return Failure("closed", "the peer has closed the connection")
    condition, described = str(error.condition), _cut(error.description)
    reason = f"{condition}: {described}" if described else condition
    if was_refused:
        return Failure("refused", f"the peer has refused the connection: {reason}")
    if condition in LASTING:
        who = "the peer" if closed.by_peer else "this router"
        return Failure("refused", f"{who} has refused the connection: {reason}")
    if condition == NetworkCondition.SILENT:
        return Failure("silent", str(described))
    if closed.by_peer:
        if was_open:
            return Failure("closed", reason)
        if described == NO_MECHANISM:
            return Failure("protocol", NO_MECHANISM)
        return Failure("protocol", "the peer has closed the socket before its open")
    if not was_open and condition == Condition.UNAUTHORIZED_ACCESS:
        return Failure("unauthorized", str(described))
    if condition == (
        Condition.RESOURCE_LIMIT_EXCEEDED if was_open else Condition.CONNECTION_FORCED
    ):
        return Failure("silent", str(described))
    return Failure("closed" if was_open else "protocol", str(described))


def _cut(text: str | None) -> str | None:
    """Shorten a text to a readable length: a peer's text may be as long as a frame."""
    if text is None or len(text) <= LONGEST_REASON:
        return text
    return f"{text[:LONGEST_REASON]}..."
