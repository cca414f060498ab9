"""Keeping auto-links attached: what is wanted, by configuration, against what is there.

What is wanted is one link of each auto-link on each open connection to its container; that they
are there, `router.control.keeping` sees to. All of it can be said again at any time without harm
(docs/decisions/0049-auto-links.md).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

from router.amqp.performatives import Error
from router.control.containers import Containers
from router.control.keeping import Attempt, Keeping, KeptLine, Status
from router.core.auto_links import AutoLink, AutoLinkChanged, Plan

# Dispatch's times until what failed is tried again, the first time and then.
FIRST_RETRY_S: Final = 2.0
RETRY_S: Final = 5.0
RETRIES_PER_S: Final = 50

_RANKS: Final = {status: rank for rank, status in enumerate(Status)}


class Line(KeptLine[AutoLink]):
    """One auto-link on one connection; `retry_at` is when it is tried again, if it failed."""

    def __init__(self, keeper: AutoLinks, plan: Plan, connection: Any, now: float) -> None:
        super().__init__(keeper, plan.name, connection, now)
        self.plan = plan
        # the condition that has been announced
        self.told: str | None = None

    @property
    def retry_at(self) -> float | None:
        """When it is tried again."""
        return self.due if self.status is Status.FAILED else None

    @property
    def link(self) -> Any:
        """Its link, where it is attached."""
        is_there = self.own is not None and self.own.end is not None and not self.own.is_over
        return self.own.link if is_there and self.own is not None else None


class AutoLinks(Keeping[Line]):
    """All auto-links of a router; a watcher of its `containers`."""

    peer = "container"
    retries_per_s = RETRIES_PER_S

    def __init__(self, forwarder: Any, containers: Containers) -> None:
        super().__init__(forwarder)
        self.containers = containers
        containers.watchers.append(self)
        # by name, in the order of the configuration
        self.plans: dict[str, Plan] = {}
        # the names of those for a container, or for a listener or connector
        self._by_container: dict[tuple[str | None, str | None], dict[str, None]] = {}
        self._lines: dict[str, dict[Any, Line]] = {}
        # those that have failed since clocks were looked at last
        self._fresh: list[Line] = []

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
                    self.retire(line)
                    self._want(plan, connection)

    def _withdraw(self, plan: Plan) -> None:
        names = self._by_container[_key(plan)]
        del names[plan.name]
        if not names:
            del self._by_container[_key(plan)]
        self.forwarder.table.disclaim(plan.address)
        for line in list(self._lines.get(plan.name, {}).values()):
            self.retire(line)

    def container_came(self, connection: Any) -> None:
        """A connection is open: attach what is wanted there."""
        for key in _keys_of(connection):
            for name in self._by_container.get(key, ()):
                self._want(self.plans[name], connection)

    def container_left(self, connection: Any) -> None:
        """A connection is over, and its links with it."""
        names = (name for key in _keys_of(connection) for name in self._by_container.get(key, ()))
        lines = [self._lines.get(name, {}).get(connection) for name in names]
        self.lose(connection, [line for line in lines if line is not None])

    def _want(self, plan: Plan, connection: Any) -> None:
        lines = self._lines.setdefault(plan.name, {})
        if connection in lines:
            return
        line = lines[connection] = Line(self, plan, connection, self.now)
        self.keep(line)

    def take_out(self, line: Line) -> None:
        """It is not wanted any more; another one of its name may be."""
        lines = self._lines.get(line.name, {})
        if lines.get(line.connection) is line:
            del lines[line.connection]
            if not lines:
                del self._lines[line.name]

    # Attaching.

    def make(self, line: Line, number: int) -> AutoLink:
        """A link that has the auto-link's name, and a number."""
        return AutoLink(line.plan, f"auto-link/{line.name}/{number}", line)

    def retry_s(self, line: Line) -> float:
        """No longer each time: a queue that is there again should have its link in seconds."""
        return FIRST_RETRY_S if line.attempts <= 1 else RETRY_S

    def recovered(self, line: Line) -> None:
        """Announce it; what was wrong last can still be looked up."""
        line.told = None
        self._announce(line, None)

    def failed(self, line: Line) -> None:
        """Count and announce it later: it may be that the connection is lost."""
        self._fresh.append(line)

    def see_to(self, line: Line, own: Attempt, now: float) -> None:
        """One that leaves is idle for a while before it is detached."""
        if line.status is Status.QUIESCING and self.is_quiet(line, own, now):
            self.become(line, Status.IDLE)
        elif line.status is Status.IDLE:
            own.detach()

    # What is announced.

    def look(self, now: float) -> None:
        """Do what is due."""
        super().look(now)
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
