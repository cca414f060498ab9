"""Connections that their peers have not opened yet: where descriptors are short they make room.

A connection before its open, with SASL half done or not even begun, is of no use to anybody yet.
Whoever has many of those has some of them closed, so that others can connect.
"""

from __future__ import annotations

from typing import Final

import attrs

from router.amqp.constants import Condition
from router.engine.events import ConnectionOpened
from router.errors import AmqpError
from router.fairness import Crowd
from router.net.endpoints import endpoint_host
from router.net.pump import Pump

# So long each has to be opened, whoever else waits.
GRACE_S: Final = 1.0
# So many make room at a time.
MOST_AT_ONCE: Final = 64
_CLOSED: Final = AmqpError(
    Condition.RESOURCE_LIMIT_EXCEEDED,
    "the connection was not opened at once, and others wait for a descriptor",
)


@attrs.define
class Unopened:
    """The connections of one listener that are not opened, by their peers' hosts."""

    _pumps: Crowd[Pump] = attrs.field(factory=Crowd, init=False)

    def watch(self, pump: Pump) -> None:
        """Count a connection until it is opened, or forgotten."""

        def heard(event: object) -> None:
            if isinstance(event, ConnectionOpened):
                self.forget(pump)

        pump.observer = heard
        self._pumps.add(endpoint_host(pump.connection.name), pump)

    def forget(self, pump: Pump) -> None:
        """Count a connection no more: it is opened, or over."""
        # it holds the pump, too
        pump.observer = None
        self._pumps.discard(endpoint_host(pump.connection.name), pump)

    def make_room(self) -> None:
        """Close the oldest connection of the host that has most, again and again: a few, and none
        that has only begun.
        """
        for _ in range(min(MOST_AT_ONCE, len(self._pumps))):
            pump = self._pumps.oldest(self._pumps.largest())
            connection = pump.connection
            if connection.turn.now - connection.started_at < GRACE_S:
                return
            self.forget(pump)
            pump.give_up(_CLOSED)
