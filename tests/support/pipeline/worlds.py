"""A made-up network: its routers and their clocks, its lines, and who sends what to whom."""

from __future__ import annotations

from collections import deque
from datetime import UTC, datetime
from itertools import pairwise

import attrs

START = datetime(2026, 11, 25, 8, tzinfo=UTC)


@attrs.frozen
class Line:
    """What joins two routers, with the least delay in each direction."""

    a: str
    b: str
    delay_us: int = 200
    delay_back_us: int = 200


@attrs.frozen
class Stream:
    """What one container sends to another by an address.

    The first `rejected` deliveries are rejected by the receiver, and the `lost` after them vanish
    on the way out of the router `lost_at`. `way` names the routers, if not the shortest way.
    """

    origin: str
    address: str
    destination: str
    deliveries: int
    rejected: int = 0
    lost: int = 0
    lost_at: str = ""
    way: tuple[str, ...] = ()
    size: int = 100


@attrs.frozen
class World:
    """A network and its traffic within `hours` from START, spread evenly."""

    lines: tuple[Line, ...]
    clients: dict[str, str]
    streams: tuple[Stream, ...]
    offsets_us: dict[str, int] = attrs.field(factory=dict)
    share: float = 1.0
    hours: float = 1.0
    seed: int = 1

    @property
    def routers(self) -> tuple[str, ...]:
        """The routers, in order."""
        joined = {name for line in self.lines for name in (line.a, line.b)}
        return tuple(sorted(joined | set(self.clients.values())))

    def delay_us(self, sender: str, receiver: str) -> int:
        """Return the least delay from one router to the next."""
        for line in self.lines:
            if (line.a, line.b) == (sender, receiver):
                return line.delay_us
            if (line.b, line.a) == (sender, receiver):
                return line.delay_back_us
        raise KeyError((sender, receiver))

    def way(self, stream: Stream) -> tuple[str, ...]:
        """Return the routers that a stream passes: the shortest way, unless it names another."""
        if stream.way:
            return stream.way
        first, last = self.clients[stream.origin], self.clients[stream.destination]
        before = {first: ""}
        waiting = deque([first])
        while waiting:
            router = waiting.popleft()
            for line in self.lines:
                for a, b in ((line.a, line.b), (line.b, line.a)):
                    if a == router and b not in before:
                        before[b] = a
                        waiting.append(b)
        way = [last]
        while way[-1] != first:
            way.append(before[way[-1]])
        return tuple(reversed(way))


def line_of(names: str, **clients: str) -> tuple[tuple[Line, ...], dict[str, str]]:
    """Return the lines of a chain of routers, as "A B C", and its clients."""
    routers = names.split()
    return tuple(Line(a, b) for a, b in pairwise(routers)), clients
