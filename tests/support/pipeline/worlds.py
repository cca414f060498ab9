"""Synthetic network: its routers and their clocks, its lines and its traffic."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import pairwise

import attrs

START = datetime(2026, 11, 25, 8, tzinfo=UTC)


@attrs.frozen
class Line:
    """Line between two routers, with the least delay in each direction."""

    a: str
    b: str
    delay_us: int = 200
    delay_back_us: int = 200


@attrs.frozen
class Stream:
    """Deliveries from one container to another by an address.

    Of the `deliveries`, a random choice is `rejected` or `released` by the receiver, `aborted`, or
    sent settled (`presettled`). `lost` ones vanish when they have left the router `lost_at`;
    `dropped` ones, which were sent settled, do not leave it. `expired` ones end at the last router.
    `way` names the routers, if it is not the shortest path. The load grows linearly, to `growth`
    times the initial one.
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
    released: int = 0
    expired: int = 0
    aborted: int = 0
    presettled: int = 0
    dropped: int = 0
    growth: float = 1.0


@attrs.frozen
class SlowLine:
    """Fault of a line between two routers: more delay in both directions, from `from_hour` on."""

    a: str
    b: str
    from_hour: float
    more_us: int


@attrs.frozen
class Burst:
    """Events of one kind at one router: `count`, from `from_hour` on, `every_s` seconds apart.

    `columns` are common to all of them; the column `named` has each of `names` in turn.
    """

    kind: str
    router: str
    from_hour: float
    count: int
    every_s: float = 1.0
    columns: Mapping[str, object] = attrs.field(factory=dict)
    named: str = ""
    names: tuple[str, ...] = ()


@attrs.frozen
class World:
    """Network and its traffic in the `hours` from START.

    Each message is sampled with the probability `share`. A flow record covers `interval_s` seconds.
    """

    lines: tuple[Line, ...]
    clients: dict[str, str]
    streams: tuple[Stream, ...]
    offsets_us: dict[str, int] = attrs.field(factory=dict)
    share: float = 1.0
    hours: float = 1.0
    seed: int = 1
    interval_s: int = 600
    fault: SlowLine | None = None
    bursts: tuple[Burst, ...] = ()

    @property
    def routers(self) -> tuple[str, ...]:
        """Return the names of the routers, sorted."""
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
        """Return the routers that a stream passes: the shortest path, unless it names another."""
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
