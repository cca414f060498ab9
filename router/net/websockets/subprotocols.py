"""Subprotocols of WebSockets that stand for AMQP 1.0."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

AMQP: Final = "amqp"
"""Name of AMQP 1.0 in the registry of subprotocols, and in the binding (section 2.1)."""

# AMQPWSB10 is proposed by Azure's clients, and "binary" by clients that know no name for AMQP. As
# in Dispatch, "binary" is chosen only if no other one is proposed.
_KNOWN: Final = frozenset({AMQP, "amqpwsb10"})
_LAST: Final = "binary"

ALLOWED: Final = "the subprotocol amqp (or AMQPWSB10, or binary) in Sec-WebSocket-Protocol"


def choose(proposed: Iterable[str]) -> str | None:
    """Return the first known subprotocol, as the client has written it; None if none is known."""
    listed = list(proposed)
    for name in listed:
        if name.lower() in _KNOWN:
            return name
    return next((name for name in listed if name.lower() == _LAST), None)
