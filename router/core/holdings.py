"""Who holds what: all that the peer of a connection makes the router keep, in octets and by kind.

What is charged as it comes is in the connection's account; messages, deliveries, input and output
change with every frame and are added up here when somebody asks.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from router.engine.account import DELIVERY_BYTES, KINDS, Account

MESSAGES: Final = "messages"
DELIVERIES: Final = "deliveries"
INPUT: Final = "input"
OUTPUT: Final = "output"
ALL_KINDS: Final = (*KINDS, MESSAGES, DELIVERIES, INPUT, OUTPUT)


def holdings_of(connection: Any) -> dict[str, int]:
    """What one connection's peer makes the router keep."""
    account: Account = connection.account
    found = {kind: account.of_kind(kind) for kind in KINDS}
    found[MESSAGES] = int(connection.held_bytes)
    found[DELIVERIES] = DELIVERY_BYTES * _deliveries_of(connection)
    found[INPUT] = len(connection.kept)
    found[OUTPUT] = int(connection.outbox.output.capacity())
    return found


def held_in_all(forwarder: Any, connections: Iterable[Any]) -> dict[str, int]:
    """What these connections and those that are over have the router keep, all together."""
    found = dict.fromkeys(ALL_KINDS, 0)
    found.update(forwarder.backlog.turn.ledger.by_kind)
    for connection in connections:
        for kind, octets in holdings_of(connection).items():
            if kind not in KINDS:
                found[kind] += octets
    found[MESSAGES] = forwarder.backlog.held_bytes
    found[MESSAGES] += forwarder.intake.held_bytes + forwarder.redelivery.kept_bytes
    found[DELIVERIES] += DELIVERY_BYTES * forwarder.suspended.deliveries()
    return found


def _deliveries_of(connection: Any) -> int:
    """Deliveries that its peer has sent and that are unsettled, or wait, or are under way.

    Each is its sender's, wherever it is on its way; what is sent to it is somebody else's.
    """
    count = 0
    for session in connection.local_sessions.values():
        count += session.incoming.count + session.window.held_frames
    return count
