"""How the connections of each listener and connector fared: what an operator counts them by."""

from __future__ import annotations

import attrs

from router.amqp.constants import Condition
from router.engine import events
from router.engine.traffic import Traffic
from router.net.connector_status import ConnectorStatus


@attrs.define(eq=False)
class Tally:
    """The connections of one listener (direction `in`) or connector (`out`); totals only grow."""

    name: str
    direction: str
    role: str
    # connections whose opens have passed
    opened: int = 0
    # connections that ended with an error or without a close, or could not be made
    failed: int = 0
    # peers that did not prove who they are
    unauthenticated: int = 0
    # times that a connector was sent elsewhere and went there
    followed: int = 0
    # what those of its connections carried that are over
    past: Traffic = attrs.Factory(Traffic)
    # how a connector fares; None for a listener
    status: ConnectorStatus | None = None
    # its listener or connector is no more
    is_over: bool = False

    def count(self, event: object) -> None:
        """Count what has happened to one of its connections."""
        if isinstance(event, events.ConnectionOpened):
            self.opened += 1
        elif isinstance(event, events.ConnectionClosed) and event.error is not None:
            # That we send peers elsewhere is no failure, and a connector that is sent decides.
            is_sent = event.by_peer == (self.direction == "out")
            if event.error.condition != Condition.CONNECTION_REDIRECT or not is_sent:
                self.failed += 1
