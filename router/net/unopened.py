"""Close connections that have not been opened yet if file descriptors are short.

Before the open, for example while SASL is unfinished, a connection is of no use to its client. The
hosts with the most such connections lose some of them, so that other clients can connect.
"""

from __future__ import annotations

from typing import Final

import attrs

from router.amqp.constants import Condition
from router.engine.events import ConnectionOpened
from router.errors import AmqpError
from router.fairness import HostFairQueue
from router.net.failing import FailingHosts
from router.net.router_pump import RouterPump

# How long each connection has to be opened, no matter how many others wait.
GRACE_S: Final = 1.0
# Most connections that are closed at a time.
MOST_AT_ONCE: Final = 64
_CLOSED: Final = AmqpError(
    Condition.RESOURCE_LIMIT_EXCEEDED,
    "the connection was not opened in time, and other connections need its file descriptor",
)


@attrs.define
class UnopenedConnections:
    """Connections of one listener that are not open yet, grouped by host."""

    _failing_hosts: FailingHosts
    _pumps: HostFairQueue[RouterPump] = attrs.field(factory=HostFairQueue, init=False)

    def watch(self, pump: RouterPump) -> None:
        """Track a connection until it is open or has ended."""

        def heard(event: object) -> None:
            if isinstance(event, ConnectionOpened):
                self._failing_hosts.count_opened(self._discard(pump)[0])

        pump.observer = heard
        self._pumps.add(pump.counted_host, pump)

    def ended(self, pump: RouterPump) -> None:
        """Stop tracking a connection that has ended or is about to be closed, opened or not."""
        host, was_tracked = self._discard(pump)
        if was_tracked and not pump.was_turned_away:
            self._failing_hosts.count_unopened(host)

    def _discard(self, pump: RouterPump) -> tuple[str, bool]:
        """Stop tracking a connection; return its host, and whether it was tracked."""
        # break the cycle: the observer refers to the pump
        pump.observer = None
        host = pump.counted_host
        return host, self._pumps.discard(host, pump)

    def make_room(self) -> None:
        """Close some connections, each time the oldest one from the host that has the most.

        At most `MOST_AT_ONCE` are closed, and none that was accepted less than `GRACE_S` ago.
        """
        for _ in range(min(MOST_AT_ONCE, len(self._pumps))):
            pump = self._pumps.oldest(self._pumps.largest())
            connection = pump.connection
            if connection.turn.now - connection.started_at < GRACE_S:
                return
            pump.was_turned_away = True
            self.ended(pump)
            pump.give_up(_CLOSED)
