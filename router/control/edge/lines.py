"""Keeping proxy links attached: what is wanted on each connection, against what is there.

Who keeps them says at any time which are wanted and which are not any more, as often as it likes.
Every difference is a `Line` with a status and, unless all is well, a moment at which something is
done about it, so that nothing can be stuck: an answer that does not come is waited for so long, a
failure is tried again, and what is not wanted any more may settle for so long what is under way.
"""

from __future__ import annotations

import heapq
import itertools
from collections import Counter, deque
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Any, Final
from zlib import crc32

from router.amqp.performatives import Error
from router.core.network.proxy_links import Proxy, ProxyLink
from router.engine.beginning import wire_error
from router.errors import AmqpError, Scope

# Until what failed is tried again: doubling, each longer or shorter by up to a quarter, so that
# what failed together is not tried together for ever.
FIRST_RETRY_S: Final = 0.5
LONGEST_RETRY_S: Final = 30.0
SPREAD: Final = 0.25
# Where very many fail on one connection, they are tried so many in a second.
RETRIES_PER_S: Final = 100
# A link that stayed for so long was not a failure when it goes.
STABLE_S: Final = 10.0
# How long the peer may take to answer.
ANSWER_S: Final = 10.0
# How many are being attached at a time on one connection.
MOST_AT_ONCE: Final = 64
# How long what is under way may take to be settled, once a link is not wanted any more, and how
# long what its sender sent before it heard of that may take to come.
QUIESCE_S: Final = 30.0
GRACE_S: Final = 0.5

NO_ANSWER: Final = "trioute:no-answer"


class Status(StrEnum):
    """How a line stands."""

    ATTACHING = "attaching"
    ACTIVE = "active"
    FAILED = "failed"
    QUIESCING = "quiescing"


class Line:
    """One proxy link that is wanted on one connection.

    `since` is when it got its status; `attempts` are those since it was active for a while.
    """

    def __init__(self, lines: Lines, proxy: Proxy, connection: Any, now: float) -> None:
        self.lines = lines
        self.proxy = proxy
        self.connection = connection
        self.status = Status.ATTACHING
        self.since = now
        self.attempts = 0
        self.own: ProxyLink | None = None
        # why it failed last
        self.error: Error | None = None
        # when something has to be done, unless something happens
        self.due: float | None = None
        # nobody keeps it any more
        self.is_over = False

    def attached(self, link: ProxyLink) -> None:
        """The peer has answered."""
        self.lines.line_attached(self, link)

    def over(self, link: ProxyLink, error: Error | None) -> None:
        """The link is refused, detached or lost."""
        self.lines.line_over(self, link, error)


class _Pace:
    """What is attached at a time on one connection, so that a thousand links are no flood."""

    def __init__(self) -> None:
        self.waiting: deque[Line] = deque()
        self.under_way: set[Line] = set()


class Lines:
    """The proxy links of a router.

    `side_of` says on which side a connection is, and `cost` how far away what lies behind is.
    """

    def __init__(self, forwarder: Any, side_of: Callable[[Any], int], cost: int = 1) -> None:
        self.forwarder = forwarder
        self.side_of = side_of
        self.cost = cost
        self._lines: dict[Any, dict[Proxy, Line]] = {}
        # those that are not wanted any more, until what is under way is settled
        self.leaving: dict[Line, None] = {}
        self._paces: dict[Any, _Pace] = {}
        # how many have failed, by connection
        self._failed: Counter[Any] = Counter()
        self._timers: list[tuple[float, int, Line]] = []
        self._moments = itertools.count()
        self._numbers = itertools.count(1)
        self.attempts = 0
        self.failures = 0

    @property
    def now(self) -> float:
        """The turn's time."""
        return float(self.forwarder.turn.now)

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
        self._pace(connection).waiting.append(line)
        self._go_on(connection)

    def unwant(self, connection: Any, proxy: Proxy) -> None:
        """Have a link go, once what is under way is settled."""
        line = self._take(connection, proxy)
        if line is None:
            return
        own = line.own
        if own is None or own.is_over:
            self._forget(line)
            self._answered(line)
            return
        self.leaving[line] = None
        was_attached = line.status is Status.ACTIVE
        self._become(line, Status.QUIESCING)
        self._at(line, self.now + QUIESCE_S)
        own.quiesce(self.forwarder)
        if not was_attached:
            own.detach()
        self._answered(line)

    def connection_lost(self, connection: Any) -> None:
        """A connection is over, and its links with it: nothing is wanted there."""
        self._paces.pop(connection, None)
        for line in self._lines.pop(connection, {}).values():
            self._forget(line)
        for line in [each for each in self.leaving if each.connection is connection]:
            self._forget(line)
        self._failed.pop(connection, None)

    def _take(self, connection: Any, proxy: Proxy) -> Line | None:
        lines = self._lines.get(connection, {})
        line = lines.pop(proxy, None)
        if line is not None and not lines:
            del self._lines[connection]
        return line

    # Attaching.

    def _pace(self, connection: Any) -> _Pace:
        return self._paces.setdefault(connection, _Pace())

    def _go_on(self, connection: Any) -> None:
        """Begin as many of those that wait on a connection as there is room for."""
        pace = self._pace(connection)
        while pace.waiting and len(pace.under_way) < MOST_AT_ONCE:
            line = pace.waiting.popleft()
            if not line.is_over and line not in self.leaving:
                self._attempt(line, pace)

    def _attempt(self, line: Line, pace: _Pace) -> None:
        connection = line.connection
        if not connection.is_open():
            # it is closing: `connection_lost` follows
            return
        if line.own is not None and line.own.lingers:
            # a session for each attempt, none of which ever ends, would be too much
            reason = AmqpError(NO_ANSWER, "the router does not end the session", Scope.LINK)
            self._failed_for(line, wire_error(reason))
            return
        line.attempts += 1
        self.attempts += 1
        self._become(line, Status.ATTACHING)
        proxy = line.proxy
        way = "in" if proxy.receives else "out"
        name = f"proxy.{way}.{next(self._numbers)}.{proxy.name}"
        own = ProxyLink(proxy, name, self.side_of(connection), self.cost, line)
        try:
            own.begin(connection)
        except AmqpError as error:
            self._failed_for(line, wire_error(error))
            return
        line.own = own
        pace.under_way.add(line)
        self._at(line, self.now + ANSWER_S)

    def line_attached(self, line: Line, link: ProxyLink) -> None:
        """The peer has answered, in time or later."""
        self._become(line, Status.ACTIVE)
        line.due = None
        line.error = None
        self._answered(line)

    def line_over(self, line: Line, link: ProxyLink, error: Error | None) -> None:
        """The link was refused, detached or lost; or the router detached it."""
        if line.is_over or line.own is not link:
            return
        if line in self.leaving or not line.connection.is_open():
            # where the connection is over, it is not the link that failed
            self._forget(line)
        else:
            if line.status is Status.ACTIVE and self.now - line.since >= STABLE_S:
                line.attempts = 0
            self._failed_for(line, error)
        self._answered(line)

    def _answered(self, line: Line) -> None:
        """There is room for another one on the connection."""
        pace = self._paces.get(line.connection)
        if pace is not None and line in pace.under_way:
            pace.under_way.remove(line)
            self._go_on(line.connection)

    def _failed_for(self, line: Line, error: Error | None) -> None:
        """It will be tried again, in a while."""
        self.failures += 1
        line.error = error
        self._become(line, Status.FAILED)
        self._at(line, self.now + self._delay_s(line))

    def _delay_s(self, line: Line) -> float:
        """How long to wait for the next attempt, each line a little longer or shorter."""
        seed = f"{line.connection.settings.container_id}/{line.proxy.name}/{line.attempts}"
        part = crc32(seed.encode()) / 2**32 * 2 - 1
        delay_s = min(FIRST_RETRY_S * 2 ** min(line.attempts, 16), LONGEST_RETRY_S)
        delay_s = max(delay_s, self._failed[line.connection] / RETRIES_PER_S)
        return float(delay_s * (1 + SPREAD * part))

    # The clock.

    def look(self, now: float) -> None:
        """Do what is due."""
        while self._timers and self._timers[0][0] <= now:
            due, _, line = heapq.heappop(self._timers)
            if line.due == due and not line.is_over:
                line.due = None
                self._is_due(line)
        for line in list(self.leaving):
            own = line.own
            if own is not None and own.is_quiet and now - line.since >= GRACE_S:
                own.detach()

    def _at(self, line: Line, when: float) -> None:
        line.due = when
        heapq.heappush(self._timers, (when, next(self._moments), line))

    def _is_due(self, line: Line) -> None:
        own = line.own
        if line in self.leaving:
            # what is unsettled by now is so at the peer, too, which has it back
            if own is not None:
                own.detach()
        elif own is not None and not own.is_over:
            self._unanswered(line, own)
        else:
            self._pace(line.connection).waiting.append(line)
            self._go_on(line.connection)

    def _unanswered(self, line: Line, own: ProxyLink) -> None:
        """The peer takes its time."""
        frame = "begin" if own.link is None else "attach"
        words = f"the router has not answered the {frame} for {ANSWER_S:g} s"
        error = AmqpError(NO_ANSWER, words, Scope.LINK)
        if own.link is not None:
            own.detach(error=error)
            return
        # another session would not be answered, either: this one may be, some time
        self._failed_for(line, wire_error(error))
        self._at(line, self.now + ANSWER_S)
        self._answered(line)

    def _become(self, line: Line, status: Status) -> None:
        self._failed[line.connection] += (status is Status.FAILED) - (line.status is Status.FAILED)
        line.status = status
        line.since = self.now

    def _forget(self, line: Line) -> None:
        """A line is no more."""
        if self.line(line.connection, line.proxy) is line:
            self._take(line.connection, line.proxy)
        self.leaving.pop(line, None)
        self._become(line, Status.QUIESCING)
        line.is_over = True
        line.due = None
