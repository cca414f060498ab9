"""Keep the wanted proxy links attached on each connection, and retry those that fail.

The caller may request and cancel links at any time; repeating a request has no effect.
`router.control.link_supervisor` attaches the links.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from router.control.link_supervisor import LinkSupervisor, Status, SupervisedLink
from router.core.forwarding.forward import Forwarder
from router.core.network.proxy_links import Proxy, ProxyLink
from router.engine.connection import Connection

# First retry delay, which doubles with each attempt, and the longest.
FIRST_RETRY_S: Final = 0.5
LONGEST_RETRY_S: Final = 30.0
RETRIES_PER_S: Final = 100

# Statuses of a line that is wanted or quiescing.
STATUSES: Final = (Status.ATTACHING, Status.ACTIVE, Status.FAILED, Status.QUIESCING)


class ProxyLine(SupervisedLink[ProxyLink]):
    """Proxy link that is wanted on one connection."""

    def __init__(self, lines: ProxyLines, proxy: Proxy, connection: Connection, now: float) -> None:
        super().__init__(lines, proxy.name, connection, now)
        self.proxy = proxy


class ProxyLines(LinkSupervisor[ProxyLine]):
    """Supervisor of a router's proxy links.

    `side_of` returns the side of a connection. `cost` is the cost of the path to the receivers.
    """

    peer = "router"
    retries_per_s = RETRIES_PER_S

    def __init__(
        self, forwarder: Forwarder, side_of: Callable[[Connection], int], cost: int = 1
    ) -> None:
        super().__init__(forwarder)
        self.side_of = side_of
        self.cost = cost
        self._lines: dict[Connection, dict[Proxy, ProxyLine]] = {}

    def every(self) -> Iterator[ProxyLine]:
        """Yield the wanted proxy links of all connections."""
        for lines in self._lines.values():
            yield from lines.values()

    def of(self, connection: Connection) -> list[Proxy]:
        """Return the proxy links that are wanted on a connection."""
        return list(self._lines.get(connection, ()))

    def line(self, connection: Connection, proxy: Proxy) -> ProxyLine | None:
        """Return the record of a proxy link on a connection; None if it is not wanted there."""
        return self._lines.get(connection, {}).get(proxy)

    # Wanted links.

    def want(self, connection: Connection, proxy: Proxy) -> None:
        """Keep a proxy link attached on a connection from now on."""
        lines = self._lines.setdefault(connection, {})
        if proxy in lines:
            return
        line = lines[proxy] = ProxyLine(self, proxy, connection, self.now)
        self.keep_attached(line)

    def unwant(self, connection: Connection, proxy: Proxy) -> None:
        """Quiesce a proxy link, and detach it once its deliveries are settled."""
        line = self.line(connection, proxy)
        if line is not None:
            self.retire(line)

    def connection_lost(self, connection: Connection) -> None:
        """Forget all wanted proxy links of a connection that has ended."""
        self._lines.pop(connection, None)
        self.forget_lines(connection)

    def remove_line(self, line: ProxyLine) -> None:
        """Remove a link from the table of wanted proxy links, if it is there."""
        if self.line(line.connection, line.proxy) is line:
            lines = self._lines[line.connection]
            del lines[line.proxy]
            if not lines:
                del self._lines[line.connection]

    # Attaching.

    def make(self, line: ProxyLine, number: int) -> ProxyLink:
        """Create a link for an attempt; its name contains its direction, `number` and address."""
        proxy = line.proxy
        way = "in" if proxy.receives else "out"
        name = f"proxy.{way}.{number}.{proxy.name}"
        # an ordinary receiver would be at another phase
        is_waypoint = self.forwarder.table.phase_of(proxy.name, is_sender=False) != 0
        side = self.side_of(line.connection)
        return ProxyLink(proxy, name, side, self.cost, line, is_waypoint)

    def recovered(self, line: ProxyLine) -> None:
        """Forget the error of a proxy link that is active again."""
        line.error = None

    def failed(self, line: ProxyLine) -> None:
        """Count the failure of a proxy link."""
        self.failures += 1

    def retry_s(self, line: ProxyLine) -> float:
        """Return the retry delay in seconds, which doubles with each attempt up to a limit."""
        return float(min(FIRST_RETRY_S * 2 ** min(line.attempts, 16), LONGEST_RETRY_S))
