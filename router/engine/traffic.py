"""Count the traffic of connections: octets on the wire, and deliveries that were begun."""

from __future__ import annotations

import attrs

from router.engine.connection import Connection


@attrs.define(eq=False)
class Traffic:
    """Counters of the octets and deliveries that one or more connections received and sent."""

    received_bytes: int = 0
    sent_bytes: int = 0
    received_deliveries: int = 0
    sent_deliveries: int = 0

    def add(self, other: Traffic) -> None:
        """Add the counters of other connections to these."""
        self.received_bytes += other.received_bytes
        self.sent_bytes += other.sent_bytes
        self.received_deliveries += other.received_deliveries
        self.sent_deliveries += other.sent_deliveries


def traffic_of(connection: Connection) -> Traffic:
    """Return the traffic of one connection so far, in its past and present sessions."""
    traffic = Traffic(
        connection.received_bytes,
        connection.sent_bytes,
        connection.past_received,
        connection.past_sent,
    )
    for session in connection.local_sessions.values():
        traffic.received_deliveries += session.received_deliveries
        traffic.sent_deliveries += session.sent_deliveries
    return traffic
