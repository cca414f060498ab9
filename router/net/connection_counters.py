"""Count the connections of each listener and connector, for operators."""

from __future__ import annotations

import attrs

from router.amqp.constants import Condition
from router.engine import events
from router.engine.traffic import Traffic
from router.net.connector_status import ConnectorStatus


@attrs.define(eq=False)
class ConnectionCounters:
    """Counters of the connections of a listener (direction `in`) or a connector (`out`).

    The counters never decrease.
    """

    name: str
    direction: str
    role: str
    # connections that both sides have opened
    opened: int = 0
    # connections that ended with an error or without a close, or could not be made
    failed: int = 0
    # peers that failed to authenticate
    unauthenticated: int = 0
    # redirects that the connector followed
    followed: int = 0
    # traffic of its connections that have ended
    past: Traffic = attrs.Factory(Traffic)
    # status of the connector; None for a listener
    status: ConnectorStatus | None = None
    # whether its listener or connector has been removed
    is_removed: bool = False

    def count(self, event: object) -> None:
        """Count a connection that was opened or has failed; ignore all other events."""
        if isinstance(event, events.ConnectionOpened):
            self.opened += 1
        elif isinstance(event, events.ConnectionClosed) and event.error is not None:
            # Our redirect of a peer is not a failure; a peer's redirect of a connector is counted
            # by the connector.
            is_sent = event.by_peer == (self.direction == "out")
            if event.error.condition != Condition.CONNECTION_REDIRECT or not is_sent:
                self.failed += 1
