"""Keeping auto-links attached: what is wanted, by configuration, against what is there.

What is wanted is one link of each auto-link on each open connection to its container. Every
difference is a `Line` with a status and, unless all is well, a moment at which something is done
about it, so that nothing can be stuck: an answer that does not come is waited for so long, a
failure is tried again, and what is not wanted any more may settle for so long what is under way.
All of it can be said again at any time without harm (docs/decisions/0049-auto-links.md).
"""

from __future__ import annotations

import heapq
import itertools
from collections import Counter, deque
from collections.abc import Iterable
from enum import StrEnum
from typing import Any, Final
from zlib import crc32

from router.amqp.performatives import Error
from router.control.containers import Containers
from router.core.auto_links import AutoLink, AutoLinkChanged, Plan
from router.errors import AmqpError, Scope

# Dispatch's times until what failed is tried again, the first time and then. Each is made longer
# or shorter by up to a quarter, so that what failed together is not tried together for ever.
FIRST_RETRY_S: Final = 2.0
RETRY_S: Final = 5.0
SPREAD: Final = 0.25
# Where very many fail at one container, they are tried so many in a second.
RETRIES_PER_S: Final = 50
# A link that stayed for so long was not a failure when it goes.
STABLE_S: Final = 10.0
# How long the container may take to answer.
ANSWER_S: Final = 10.0
# How many are being attached at a time on one connection.
MOST_AT_ONCE: Final = 64
# How long what is under way may take to be settled, once a link is not wanted any more, and how
# long what its sender sent before it heard of that may take to come.
QUIESCE_S: Final = 30.0
GRACE_S: Final = 0.5

NO_ANSWER: Final = "trioute:no-answer"


class Status(StrEnum):
    """Dispatch's `operStatus`, the best one first."""

    ACTIVE = "active"
    ATTACHING = "attaching"
    FAILED = "failed"
    # the container is not connected
    INACTIVE = "inactive"
    # not wanted any more: something is under way, or nothing, and the detach is due
    QUIESCING = "quiescing"
    IDLE = "idle"


_RANKS: Final = {status: rank for rank, status in enumerate(Status)}


class Line:
    """One auto-link on one connection.

    `since` is when it got its status, `retry_at` when it is tried again, if it failed; `attempts`
    are those since it was active for a while.
    """

    def __init__(self, keeper: AutoLinks, plan: Plan, connection: Any, now: float) -> None:
        self.keeper = keeper
        self.plan = plan
        self.connection = connection
        self.status = Status.ATTACHING
        self.since = now
        self.attempts = 0
        self.own: AutoLink | None = None
        # why it failed last, and when
        self.error: Error | None = None
        self.failed_at = 0.0
        # the condition that has been announced
        self.told: str | None = None
        # when something has to be done, unless something happens
        self.due: float | None = None
        # nobody keeps it any more
        self.is_over = False

    @property
    def retry_at(self) -> float | None:
        """When it is tried again."""
        return self.due if self.status is Status.FAILED else None

    @property
    def link(self) -> Any:
        """Its link, where it is attached."""
        is_there = self.own is not None and self.own.end is not None and not self.own.is_over
        return self.own.link if is_there and self.own is not None else None

    def attached(self, auto_link: AutoLink) -> None:
        """The container has answered."""
        self.keeper.line_attached(self, auto_link)

    def over(self, auto_link: AutoLink, error: Error | None) -> None:
        """The link is refused, detached or lost."""
        self.keeper.line_over(self, auto_link, error)


class _Pace:
    """What is attached at a time on one connection, so that a thousand links are no flood."""

    def __init__(self) -> None:
        self.waiting: deque[Line] = deque()
        self.under_way: set[Line] = set()


class AutoLinks:
    """All auto-links of a router; a watcher of its `containers`."""

    def __init__(self, forwarder: Any, containers: Containers) -> None:
        self.forwarder = forwarder
        self.containers = containers
        containers.watchers.append(self)
        # by name, in the order of the configuration
        self.plans: dict[str, Plan] = {}
        # the names of those for a container, or for a listener or connector
        self._by_container: dict[tuple[str | None, str | None], dict[str, None]] = {}
        self._lines: dict[str, dict[Any, Line]] = {}
        self._paces: dict[Any, _Pace] = {}
        # those that are not wanted any more, until what is under way is settled
        self.leaving: dict[Line, None] = {}
        # those that have failed since clocks were looked at last
        self._fresh: list[Line] = []
        # how many have failed, by connection
        self._failed: Counter[Any] = Counter()
        self._timers: list[tuple[float, int, Line]] = []
        self._moments = itertools.count()
        self._numbers = itertools.count(1)
        # whether attempts, and those that failed, have been
        self.attempts = 0
        self.failures = 0

    @property
    def now(self) -> float:
        """The turn's time."""
        return float(self.forwarder.turn.now)

    # What is wanted.

    def configure(self, plans: Iterable[Plan]) -> None:
        """From now on these are wanted, and no others; what is wanted as before is left alone."""
        wanted = {plan.name: plan for plan in plans}
        before, self.plans = self.plans, wanted
        for name, plan in before.items():
            if wanted.get(name) != plan:
                self._withdraw(plan)
        for name, plan in wanted.items():
            if before.get(name) != plan:
                self._by_container.setdefault(_key(plan), {})[name] = None
                self.forwarder.table.claim(plan.address)
                for connection in self.containers.find(plan.container_id, plan.connection):
                    self._want(plan, connection)

    def phases_changed(self) -> None:
        """What is configured for addresses has changed: a link may belong to another phase."""
        for name, lines in list(self._lines.items()):
            plan = self.plans[name]
            for connection, line in list(lines.items()):
                own = line.own
                if own is not None and not own.is_in_place(self.forwarder.table):
                    self._retire(line)
                    self._want(plan, connection)

    def _withdraw(self, plan: Plan) -> None:
        names = self._by_container[_key(plan)]
        del names[plan.name]
        if not names:
            del self._by_container[_key(plan)]
        self.forwarder.table.disclaim(plan.address)
        for line in list(self._lines.get(plan.name, {}).values()):
            self._retire(line)

    def container_came(self, connection: Any) -> None:
        """A connection is open: attach what is wanted there."""
        for key in _keys_of(connection):
            for name in self._by_container.get(key, ()):
                self._want(self.plans[name], connection)

    def container_left(self, connection: Any) -> None:
        """A connection is over, and its links with it."""
        self._paces.pop(connection, None)
        for key in _keys_of(connection):
            for name in self._by_container.get(key, ()):
                line = self._lines.get(name, {}).get(connection)
                if line is not None:
                    self._forget(line)
        for line in [each for each in self.leaving if each.connection is connection]:
            self._forget(line)
        self._failed.pop(connection, None)

    def _want(self, plan: Plan, connection: Any) -> None:
        lines = self._lines.setdefault(plan.name, {})
        if connection in lines:
            return
        line = lines[connection] = Line(self, plan, connection, self.now)
        self._pace(connection).waiting.append(line)
        self._go_on(connection)

    # Attaching.

    def _pace(self, connection: Any) -> _Pace:
        return self._paces.setdefault(connection, _Pace())

    def _go_on(self, connection: Any) -> None:
        """Begin as many of those that wait on a connection as there is room for."""
        pace = self._pace(connection)
        while pace.waiting and len(pace.under_way) < MOST_AT_ONCE:
            line = pace.waiting.popleft()
            if not line.is_over:
                self._attempt(line, pace)

    def _attempt(self, line: Line, pace: _Pace) -> None:
        connection = line.connection
        if not connection.is_open():
            # it is closing: `container_left` follows
            return
        if line.own is not None and line.own.lingers:
            # a session for each attempt, none of which ever ends, would be too much
            reason = AmqpError(NO_ANSWER, "the container does not end the session", Scope.LINK)
            self._failed_for(line, _told(reason))
            return
        line.attempts += 1
        self.attempts += 1
        self._become(line, Status.ATTACHING)
        own = AutoLink(line.plan, f"auto-link/{line.plan.name}/{next(self._numbers)}", line)
        try:
            own.begin(connection)
        except AmqpError as error:
            self._failed_for(line, _told(error))
            return
        line.own = own
        pace.under_way.add(line)
        self._at(line, self.now + ANSWER_S)

    def line_attached(self, line: Line, auto_link: AutoLink) -> None:
        """The container has answered, in time or later."""
        self._become(line, Status.ACTIVE)
        line.due = None
        line.told = None
        self._announce(line, None)
        self._answered(line)

    def line_over(self, line: Line, auto_link: AutoLink, error: Error | None) -> None:
        """The link was refused, detached or lost; or the router detached it."""
        if line.is_over or line.own is not auto_link:
            return
        if line in self.leaving or not line.connection.is_open():
            # where the connection is over, it is not the link that failed
            self._forget(line)
            return
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
        line.error = error
        line.failed_at = self.now
        self._become(line, Status.FAILED)
        self._at(line, self.now + self._delay_s(line))
        self._fresh.append(line)

    def _delay_s(self, line: Line) -> float:
        """How long to wait for the next attempt, each line a little longer or shorter."""
        settings = line.connection.settings
        seed = f"{settings.container_id}/{line.plan.name}/{line.attempts}"
        part = crc32(seed.encode()) / 2**32 * 2 - 1
        delay_s = FIRST_RETRY_S if line.attempts <= 1 else RETRY_S
        delay_s = max(delay_s, self._failed[line.connection] / RETRIES_PER_S)
        return delay_s * (1 + SPREAD * part)

    # What is not wanted any more.

    def _retire(self, line: Line) -> None:
        """Have a line go, once what is under way is settled."""
        del self._lines[line.plan.name][line.connection]
        if not self._lines[line.plan.name]:
            del self._lines[line.plan.name]
        own = line.own
        if own is None or own.is_over:
            self._forget(line)
            self._answered(line)
            return
        self.leaving[line] = None
        was_attached = line.link is not None
        self._become(line, Status.QUIESCING)
        self._at(line, self.now + QUIESCE_S)
        if was_attached:
            own.quiesce(self.forwarder)
        else:
            own.detach()
        self._answered(line)

    def _see_to_leaving(self) -> None:
        for line in list(self.leaving):
            own = line.own
            is_quiet = own is not None and own.is_quiet and self.now - line.since >= GRACE_S
            if line.status is Status.QUIESCING and is_quiet:
                self._become(line, Status.IDLE)
            elif line.status is Status.IDLE and own is not None:
                own.detach()

    # The clock.

    def look(self, now: float) -> None:
        """Do what is due."""
        while self._timers and self._timers[0][0] <= now:
            due, _, line = heapq.heappop(self._timers)
            if line.due == due and not line.is_over:
                line.due = None
                self._is_due(line)
        if self.leaving:
            self._see_to_leaving()
        if self._fresh:
            self._tell_failures()

    def _tell_failures(self) -> None:
        """Count and announce failures, now that those are known which were a lost connection's."""
        fresh, self._fresh = self._fresh, []
        for line in fresh:
            if line.is_over:
                continue
            self.failures += 1
            condition = "" if line.error is None else str(line.error.condition)
            if line.told != condition and line.status is Status.FAILED:
                line.told = condition
                self._announce(line, line.error)

    def _at(self, line: Line, when: float) -> None:
        line.due = when
        heapq.heappush(self._timers, (when, next(self._moments), line))

    def _is_due(self, line: Line) -> None:
        own = line.own
        if line in self.leaving:
            # what is unsettled by now is so at the container, too, which has it back
            if own is not None:
                own.detach()
        elif own is not None and not own.is_over:
            self._unanswered(line, own)
        else:
            self._pace(line.connection).waiting.append(line)
            self._go_on(line.connection)

    def _unanswered(self, line: Line, own: AutoLink) -> None:
        """The container takes its time."""
        frame = "begin" if own.link is None else "attach"
        words = f"the container has not answered the {frame} for {ANSWER_S:g} s"
        error = AmqpError(NO_ANSWER, words, Scope.LINK)
        if own.link is not None:
            own.detach(error=error)
            return
        # another session would not be answered, either: this one may be, some time
        self._failed_for(line, _told(error))
        self._at(line, self.now + ANSWER_S)
        self._answered(line)

    # Books.

    def _become(self, line: Line, status: Status) -> None:
        if line.status is status:
            return
        self._failed[line.connection] += (status is Status.FAILED) - (line.status is Status.FAILED)
        line.status = status
        line.since = self.now

    def _forget(self, line: Line) -> None:
        """A line is no more."""
        lines = self._lines.get(line.plan.name, {})
        if lines.get(line.connection) is line:
            del lines[line.connection]
            if not lines:
                del self._lines[line.plan.name]
        self.leaving.pop(line, None)
        self._become(line, Status.INACTIVE)
        line.is_over = True
        line.due = None

    def _announce(self, line: Line, error: Error | None) -> None:
        news = AutoLinkChanged(line.plan, str(line.status), error)
        self.forwarder.observer.event_received(line.connection, news)

    # What is told of them.

    def lines_of(self, name: str) -> list[Line]:
        """An auto-link's lines, the best one first."""
        lines = self._lines.get(name, {}).values()
        return sorted(lines, key=lambda line: _RANKS[line.status])

    def status_of(self, name: str) -> Status:
        """How an auto-link stands: as the best of its lines does."""
        lines = self._lines.get(name, {}).values()
        return min((line.status for line in lines), key=_RANKS.__getitem__, default=Status.INACTIVE)

    def count_statuses(self) -> Counter[str]:
        """How many auto-links there are by status; those that leave are counted besides."""
        counts = Counter(str(self.status_of(name)) for name in self.plans)
        counts.update(str(line.status) for line in self.leaving)
        return counts


def _key(plan: Plan) -> tuple[str | None, str | None]:
    if plan.container_id is not None:
        return plan.container_id, None
    return None, plan.connection


def _keys_of(connection: Any) -> tuple[tuple[str | None, str | None], ...]:
    return (connection.remote_open.container_id, None), (None, connection.settings.endpoint)


def _told(error: AmqpError) -> Error:
    return Error(condition=error.condition, description=error.description or None)
