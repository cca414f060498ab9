"""Floods of log lines: what peers can repeat at will is written so often and no more, and counted.

A kind of line is its event, its level, its module and, where the router says why, the condition.
Of each kind one connection may cause a burst of lines and then so many a second; so may all
connections of one host, and all together, each with more room. So no peer fills a disk, neither by
attaching for ever nor by connecting for ever, and what one kind of line has too many of takes
nothing from another.
Lines that name no peer, connection, listener or connector are not limited, nor is what is traced.

What memory this takes is bounded: the kinds are few, and of those who cause them the ones unheard
of for longest are forgotten; so are, whenever a summary is made, those who have all their room
again.
"""

from __future__ import annotations

import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from typing import Final

import attrs
import structlog
from structlog.typing import EventDict, WrappedLogger

# The event of the lines that say how many were left out.
SUPPRESSED: Final = "lines suppressed"
# How much room for a burst there is, in seconds of the steady rate.
BURST_S: Final = 10
# What the connections of one host, and all connections, may cause, in shares of one connection.
HOST_SHARES: Final = 4
ALL_SHARES: Final = 20
# How many sources of lines are remembered, by kind of line, and how many are told of one by one.
MOST_SOURCES: Final = 4096
MOST_SUMMARIES: Final = 20

# What names the source of a line: the fields that a summary shows, and their values.
Source = tuple[tuple[str, object], ...]


@attrs.frozen
class Kind:
    """What makes two lines alike. A condition counts if we chose it: a peer could choose any."""

    level: str
    event: str
    condition: str
    module: str = ""


@attrs.define
class _Bucket:
    """How many lines there is room for, as of `at`; and how many there was none for."""

    rate: int
    room: float
    at: float
    suppressed: int = 0

    def refill(self, now: float) -> None:
        """Make the room that time has made, up to that for a burst."""
        self.room = min(self.rate * BURST_S, self.room + (now - self.at) * self.rate)
        self.at = now

    def is_full(self, now: float) -> bool:
        """Whether a new one would be the same."""
        return self.room + (now - self.at) * self.rate >= self.rate * BURST_S


@attrs.frozen
class Summary:
    """So many lines of a kind were left out; to be logged at `level` with these facts."""

    level: str
    facts: dict[str, object]


class Floods:
    """A processor for structlog that drops what is too much, and keeps count.

    `lines_per_second` is for one connection, and 0 is no limit; `now` is a clock in seconds.
    """

    def __init__(self, lines_per_second: int, now: Callable[[], float] = time.monotonic) -> None:
        self._rate = lines_per_second
        self._now = now
        self._since = now()
        # the one used last is last
        self._buckets: OrderedDict[tuple[Kind, Source], _Bucket] = OrderedDict()
        # what was left out of those that were forgotten
        self._forgotten: Counter[Kind] = Counter()

    def __call__(self, _logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
        """Let a line pass; raises `structlog.DropEvent` for one too many."""
        name = str(event.get("event"))
        # frames of a connection that is traced are what somebody has asked for
        if not self._rate or name == SUPPRESSED or method == "trace":
            return event
        condition = "" if event.get("by_peer", True) else str(event.get("condition", ""))
        kind = Kind(method, name, condition, str(event.get("module", "")))
        for source, shares in _sources(event):
            if not self._take_room(kind, source, shares * self._rate):
                raise structlog.DropEvent
        return event

    def _take_room(self, kind: Kind, source: Source, rate: int) -> bool:
        now = self._now()
        bucket = self._buckets.get((kind, source))
        if bucket is None:
            bucket = self._buckets[kind, source] = _Bucket(rate, rate * BURST_S, now)
            if len(self._buckets) > MOST_SOURCES:
                (oldest, _), forgotten = self._buckets.popitem(last=False)
                if forgotten.suppressed:
                    self._forgotten[oldest] += forgotten.suppressed
        else:
            self._buckets.move_to_end((kind, source))
        bucket.refill(now)
        if bucket.room < 1:
            bucket.suppressed += 1
            return False
        bucket.room -= 1
        return True

    def take_summaries(self) -> list[Summary]:
        """What was left out since this was last asked, most first, and begin to count anew.

        The largest are told one by one, the others together by kind.
        """
        now = self._now()
        in_s = round(now - self._since, 1)
        self._since = now
        found = [(key, bucket) for key, bucket in self._buckets.items() if bucket.suppressed]
        found.sort(key=lambda each: -each[1].suppressed)
        summaries = [
            _summary(kind, bucket.suppressed, in_s, dict(source))
            for (kind, source), bucket in found[:MOST_SUMMARIES]
        ]
        others = self._forgotten
        for (kind, _), bucket in found[MOST_SUMMARIES:]:
            others[kind] += bucket.suppressed
        summaries += [_summary(kind, count, in_s, {}) for kind, count in others.most_common()]
        for _, bucket in found:
            bucket.suppressed = 0
        for key in [key for key, bucket in self._buckets.items() if bucket.is_full(now)]:
            del self._buckets[key]
        self._forgotten = Counter()
        return summaries


def _sources(event: EventDict) -> Iterator[tuple[Source, int]]:
    """Who caused a line, from the nearest to the widest, and the shares that each has."""
    peer = event.get("peer")
    nearest: Source = tuple(
        (name, event[name]) for name in ("connection", "connector", "listener") if name in event
    )
    if "connection" in event and peer is not None:
        nearest += (("peer", peer),)
    if nearest:
        yield nearest, 1
    if peer is not None:
        yield (("peer", str(peer).rpartition(":")[0]),), HOST_SHARES
    if nearest or peer is not None:
        yield (), ALL_SHARES


def _summary(kind: Kind, count: int, in_s: float, source: dict[str, object]) -> Summary:
    facts: dict[str, object] = {"like": kind.event, "count": count, "in_s": in_s, **source}
    if kind.condition:
        facts["condition"] = kind.condition
    if kind.module:
        facts["module"] = kind.module
    return Summary(kind.level, facts)
