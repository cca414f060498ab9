"""Keeping proxy links attached: what is wanted on each connection, and how soon it is tried again.

Who keeps them says at any time which are wanted and which are not any more, as often as it likes;
that they are there, `router.control.keeping` sees to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from router.control.keeping import Keeping, KeptLine, Status
from router.core.network.proxy_links import Proxy, ProxyLink

# Until what failed is tried again, which is doubled each time.
FIRST_RETRY_S: Final = 0.5
LONGEST_RETRY_S: Final = 30.0
RETRIES_PER_S: Final = 100

# How a line may stand that is wanted or leaves.
STATUSES: Final = (Status.ATTACHING, Status.ACTIVE, Status.FAILED, Status.QUIESCING)


class Line(KeptLine[ProxyLink]):
    """One proxy link that is wanted on one connection."""

    def __init__(self, lines: Lines, proxy: Proxy, connection: Any, now: float) -> None:
        super().__init__(lines, proxy.name, connection, now)
        self.proxy = proxy


class Lines(Keeping[Line]):
    """The proxy links of a router.

    `side_of` says on which side a connection is, and `cost` how far away what lies behind is.
    """

    peer = "router"
    retries_per_s = RETRIES_PER_S

    def __init__(self, forwarder: Any, side_of: Callable[[Any], int], cost: int = 1) -> None:
        super().__init__(forwarder)
        self.side_of = side_of
        self.cost = cost
        self._lines: dict[Any, dict[Proxy, Line]] = {}

    def every(self) -> Iterator[Line]:
        """All lines that are wanted."""
        for lines in self._lines.values():
            yield from lines.values()

    def of(self, connection: Any) -> list[Proxy]:
        """What is wanted on a connection."""
        return list(self._lines.get(connection, ()))

    def line(self, connection: Any, proxy: Proxy) -> Line | None:
        """A line that is wanted, or None."""
        return self._lines.get(connection, {}).get(proxy)

    # What is wanted.

    def want(self, connection: Any, proxy: Proxy) -> None:
        """From now on keep such a link attached on a connection."""
        lines = self._lines.setdefault(connection, {})
        if proxy in lines:
            return
        line = lines[proxy] = Line(self, proxy, connection, self.now)
        self.keep(line)

    def unwant(self, connection: Any, proxy: Proxy) -> None:
        """Have a link go, once what is under way is settled."""
        line = self.line(connection, proxy)
        if line is not None:
            self.retire(line)

    def connection_lost(self, connection: Any) -> None:
        """A connection is over, and its links with it: nothing is wanted there."""
        self._lines.pop(connection, None)
        self.lose(connection)

    def take_out(self, line: Line) -> None:
        """It is not wanted any more."""
        if self.line(line.connection, line.proxy) is line:
            lines = self._lines[line.connection]
            del lines[line.proxy]
            if not lines:
                del self._lines[line.connection]

    # Attaching.

    def make(self, line: Line, number: int) -> ProxyLink:
        """A link whose name tells which way it leads, and where."""
        proxy = line.proxy
        way = "in" if proxy.receives else "out"
        name = f"proxy.{way}.{number}.{proxy.name}"
        # an ordinary receiver would be at another phase
        is_waypoint = self.forwarder.table.phase_of(proxy.name, is_sender=False) != 0
        side = self.side_of(line.connection)
        return ProxyLink(proxy, name, side, self.cost, line, is_waypoint)

    def recovered(self, line: Line) -> None:
        """What was wrong with it does not matter any more."""
        line.error = None

    def failed(self, line: Line) -> None:
        """Count it."""
        self.failures += 1

    def retry_s(self, line: Line) -> float:
        """Twice as long as the last time, up to a bound."""
        return float(min(FIRST_RETRY_S * 2 ** min(line.attempts, 16), LONGEST_RETRY_S))
