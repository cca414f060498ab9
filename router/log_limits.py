"""Limit floods of log lines: lines that peers can cause at will are dropped and counted.

Lines are of the same kind if they have the same event, level and module, and also the same
condition if the router chose the condition. For each kind, a connection may cause a burst of lines,
and then a fixed number of lines per second. All connections of a host have a higher common limit,
and all connections together a still higher one. So no peer fills a disk by attaching or connecting
again and again, and lines of one kind do not use up the limit of another. Traces are not limited,
nor are lines that name no peer, connection, listener or connector.

The sources of a line are its connection, the host, and all connections together. Memory use is
bounded: there are few kinds, and the least recently used sources are forgotten. `take_summaries`
also forgets the sources that may cause a full burst again.
"""

from __future__ import annotations

import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from typing import Final

import attrs
import structlog
from structlog.typing import EventDict, WrappedLogger

# Event of the lines that report the number of suppressed lines.
SUPPRESSED: Final = "lines suppressed"
# Size of a burst, in seconds of the steady rate.
BURST_S: Final = 10
# Rates of one host and of all connections, as multiples of the rate of one connection.
HOST_SHARES: Final = 4
ALL_SHARES: Final = 20
# Maximum number of pairs of kind and source to remember, and of summaries that name a source.
MOST_SOURCES: Final = 4096
MOST_SUMMARIES: Final = 20

# Source of a line: the fields that a summary shows, and their values.
Source = tuple[tuple[str, object], ...]


@attrs.frozen
class LineKind:
    """Kind of log lines, which share a limit.

    `condition` is empty if a peer chose the condition, because peers could invent any number of
    them.
    """

    level: str
    event: str
    condition: str
    module: str = ""


@attrs.define
class _Bucket:
    """Token bucket: how many lines may pass as of `at`, and how many lines were suppressed."""

    rate: int
    room: float
    at: float
    suppressed: int = 0

    def refill(self, now: float) -> None:
        """Add the tokens that have accrued since `at`, up to the size of a burst."""
        self.room = min(self.rate * BURST_S, self.room + (now - self.at) * self.rate)
        self.at = now

    def is_full(self, now: float) -> bool:
        """Return whether a full burst is available, as in a new bucket."""
        return self.room + (now - self.at) * self.rate >= self.rate * BURST_S


@attrs.frozen
class Summary:
    """Line to be logged at `level` about suppressed lines of one kind, with these facts."""

    level: str
    facts: dict[str, object]


class LogRateLimiter:
    """Processor for structlog that drops excess lines and counts them.

    `lines_per_second` is the limit for one connection, or 0 for no limit. `now` returns the time in
    seconds.
    """

    def __init__(self, lines_per_second: int, now: Callable[[], float] = time.monotonic) -> None:
        self._rate = lines_per_second
        self._now = now
        self._since = now()
        # least recently used first
        self._buckets: OrderedDict[tuple[LineKind, Source], _Bucket] = OrderedDict()
        # lines suppressed for sources that were forgotten
        self._forgotten: Counter[LineKind] = Counter()

    def __call__(self, _logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
        """Return a line unchanged; raise `structlog.DropEvent` if it exceeds a limit."""
        name = str(event.get("event"))
        # the frames of a traced connection were requested
        if not self._rate or name == SUPPRESSED or method == "trace":
            return event
        condition = "" if event.get("by_peer", True) else str(event.get("condition", ""))
        kind = LineKind(method, name, condition, str(event.get("module", "")))
        for source, shares in _sources(event):
            if not self._take_room(kind, source, shares * self._rate):
                raise structlog.DropEvent
        return event

    def _take_room(self, kind: LineKind, source: Source, rate: int) -> bool:
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
        """Return summaries of the lines suppressed since the last call, and reset the counts.

        The sources with the most suppressed lines have a summary each, and come first. The lines of
        all other sources have one summary for each kind.
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
    """Yield the sources of a line, narrowest first, each with its multiple of the basic rate."""
    peer = event.get("peer")
    nearest: Source = tuple(
        (name, event[name]) for name in ("connection", "connector", "listener") if name in event
    )
    # one peer at a listener takes no room from another
    if peer is not None and ("connection" in event or "listener" in event):
        nearest += (("peer", peer),)
    if nearest:
        yield nearest, 1
    if peer is not None:
        yield (("peer", str(peer).rpartition(":")[0]),), HOST_SHARES
    if nearest or peer is not None:
        yield (), ALL_SHARES


def _summary(kind: LineKind, count: int, in_s: float, source: dict[str, object]) -> Summary:
    facts: dict[str, object] = {"like": kind.event, "count": count, "in_s": in_s, **source}
    if kind.condition:
        facts["condition"] = kind.condition
    if kind.module:
        facts["module"] = kind.module
    return Summary(kind.level, facts)
