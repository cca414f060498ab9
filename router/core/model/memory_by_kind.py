"""Sum the octets that the router keeps for a connection's peer, by kind.

State that changes rarely is in the connection's account (`router.engine.account`). Messages,
deliveries, input and output change with every frame, and are added up here on request.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from router.engine.account import DELIVERY_BYTES, KINDS, Account

if TYPE_CHECKING:
    from router.core.ports import Core
    from router.engine.connection import Connection
    from router.engine.session import Session

MESSAGES: Final = "messages"
DELIVERIES: Final = "deliveries"
INPUT: Final = "input"
OUTPUT: Final = "output"
ALL_KINDS: Final = (*KINDS, MESSAGES, DELIVERIES, INPUT, OUTPUT)


def holdings_of(connection: Connection) -> dict[str, int]:
    """Return the octets that the router keeps for a connection's peer, by kind."""
    account: Account = connection.account
    found = {kind: account.of_kind(kind) for kind in KINDS}
    found[MESSAGES] = int(connection.held_bytes)
    found[DELIVERIES] = DELIVERY_BYTES * _deliveries_of(connection)
    found[INPUT] = len(connection.kept)
    found[OUTPUT] = int(connection.outbox.output.capacity())
    return found


def held_in_all(forwarder: Core, connections: Iterable[Connection]) -> dict[str, int]:
    """Return the octets that the router keeps for all peers, by kind.

    `connections` are all existing ones. What is still kept for former connections counts as well.
    """
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


def _deliveries_of(connection: Connection) -> int:
    """Count the deliveries of a connection's peer that are unsettled or wait.

    A delivery counts for its sender, wherever it is; those that the peer receives do not count.
    """
    return sum(map(deliveries_in, connection.local_sessions.values()))


def deliveries_in(session: Session) -> int:
    """Count the deliveries of a session's peer that are unsettled or wait."""
    return int(session.incoming.count + session.window.held_frames)
