"""What connections have carried: octets on the wire, and deliveries that were begun."""

from __future__ import annotations

import attrs

from router.engine.connection import Connection
from router.engine.link import IncomingLink


@attrs.define(eq=False)
class Traffic:
    """What came in by some connections, and what went out; it only grows."""

    received_bytes: int = 0
    sent_bytes: int = 0
    received_deliveries: int = 0
    sent_deliveries: int = 0

    def add(self, other: Traffic) -> None:
        """Add what others have carried."""
        self.received_bytes += other.received_bytes
        self.sent_bytes += other.sent_bytes
        self.received_deliveries += other.received_deliveries
        self.sent_deliveries += other.sent_deliveries


def traffic_of(connection: Connection) -> Traffic:
    """What one connection has carried so far, by links that are over and those that are there."""
    traffic = Traffic(
        connection.received_bytes,
        connection.sent_bytes,
        connection.past_received,
        connection.past_sent,
    )
    for session in connection.local_sessions.values():
        for link in session.local_links.values():
            if isinstance(link, IncomingLink):
                traffic.received_deliveries += link.deliveries
            else:
                traffic.sent_deliveries += link.deliveries
    return traffic
