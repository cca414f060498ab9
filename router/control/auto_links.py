"""Keeping auto-links attached: what is wanted, by configuration, against what is there.

What is wanted is one link of each auto-link on each open connection to its container; that they
are there, `router.control.keeping` sees to. All of it can be said again at any time without harm
(docs/decisions/0049-auto-links.md).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, Final

from router.amqp.performatives import Error
from router.control.containers import Containers
from router.control.keeping import Attempt, Keeping, KeptLine, Status
from router.control.redirected import Redirected
from router.core.auto_links import AutoLink, AutoLinkChanged, Plan
from router.core.table import address_name
from router.engine.deferred import CHANGES_AT_ONCE, drained, emptied

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


class Wanted:
    """The auto-links that are wanted, and by what they are found; made anew for each change, beside
    those that are wanted until then.
    """

    def __init__(self, plans: Iterable[Plan] = ()) -> None:
        # by name, in the order of the configuration
        self.plans = {plan.name: plan for plan in plans}
        # the names of those for a container, or for a listener or connector
        self.by_container: dict[tuple[str | None, str | None], dict[str, None]] = {}
        # how many are at each address
        self.claims: Counter[str] = Counter()
        for plan in self.plans.values():
            self.by_container.setdefault(_key(plan), {})[plan.name] = None
            self.claims[address_name(plan.address)] += 1

    def on(self, connection: Any) -> Iterator[str]:
        """The names of those that are wanted on a connection."""
        for key in _keys_of(connection):
            yield from self.by_container.get(key, ())

    def pieces(self) -> Iterator[object]:
        """What it was made of, taken apart piece by piece (`router.engine.deferred`)."""
        yield from emptied(self.plans)
        yield from emptied(self.claims)
        for names in self.by_container.values():
            yield from emptied(names)
        yield from emptied(self.by_container)


class AutoLinks(Keeping[Line]):
    """All auto-links of a router; a watcher of its `containers`."""

    peer = "container"
    retries_per_s = RETRIES_PER_S

    def __init__(self, forwarder: Any, containers: Containers) -> None:
        super().__init__(forwarder)
        self.containers = containers
        self.redirected = Redirected(self, containers)
        containers.watchers.append(self)
        self._wanted = Wanted()
        # what was wanted before, as long as there may be lines of it
        self._outdated: list[Wanted] = []
        self._lines: dict[str, dict[Any, Line]] = {}
        # those that have failed since clocks were looked at last
        self._fresh: list[Line] = []

    # What is wanted.

    @property
    def plans(self) -> dict[str, Plan]:
        """What is wanted, by name, in the order of the configuration."""
        return self._wanted.plans

    def configure(self, plans: Iterable[Plan]) -> None:
        """From now on these are wanted, and no others; otherwise as `change`."""
        wanted, before = Wanted(plans), self.plans
        names = [*before, *(name for name in wanted.plans if name not in before)]
        others = [name for name in names if before.get(name) != wanted.plans.get(name)]
        self.change(wanted, others[::-1])

    def change(self, wanted: Wanted, names: list[str]) -> None:
        """From now on something else is wanted; what is wanted as before is left alone. The `names`
        are those of all others, and are taken off their list: of very many the last are begun, or
        given up, in later turns.
        """
        before, self._wanted = self._wanted, wanted
        self._outdated.append(before)
        self.forwarder.table.claim(wanted.claims)

        def over() -> None:
            self._outdated.remove(before)
            self.forwarder.turn.deferred.forget(before.pieces())

        see_to = partial(self._is_changed, before)
        self.forwarder.turn.deferred.go_through(drained(names), see_to, over, CHANGES_AT_ONCE)

    def _is_changed(self, before: Wanted, name: str) -> None:
        """Another auto-link of this name is wanted, or the first, or none any more."""
        old, new = before.plans.get(name), self.plans.get(name)
        for plan in (old, new):
            if plan is not None:
                self.forwarder.table.claims_changed(address_name(plan.address))
        for line in list(self._lines.get(name, {}).values()):
            # one that was redirected goes with the line where it belongs
            if line.plan != new and not self.redirected.owns(line):
                self.retire(line)
        if new is not None:
            for connection in self.containers.find(new.container_id, new.connection):
                self._want(new, connection)

    def phases_changed(self) -> None:
        """What is configured for addresses has changed: a link may belong to another phase."""
        every = (
            line for name in list(self._lines) for line in list(self._lines.get(name, {}).values())
        )
        self.forwarder.turn.deferred.go_through(every, self._phase_changed, at_once=CHANGES_AT_ONCE)

    def _phase_changed(self, line: Line) -> None:
        if self._lines.get(line.name, {}).get(line.connection) is not line:
            return
        own = line.own
        if self.redirected.owns(line):
            self.redirected.left(line)
        elif own is not None and not own.is_in_place(self.forwarder.table):
            self.retire(line)
            plan = self.plans.get(line.name)
            if plan is not None:
                self._want(plan, line.connection)

    def container_came(self, connection: Any) -> None:
        """A connection is open: attach what is wanted there."""
        for name in self._wanted.on(connection):
            self._want(self.plans[name], connection)

    def container_left(self, connection: Any) -> None:
        """A connection is over, and its links with it."""
        names = {
            name: None
            for wanted in (*self._outdated, self._wanted)
            for name in wanted.on(connection)
        }
        lines = [self._lines.get(name, {}).get(connection) for name in names]
        self.lose(connection, [line for line in lines if line is not None])

    def _want(self, plan: Plan, connection: Any) -> None:
        lines = self._lines.setdefault(plan.name, {})
        if connection in lines:
            return
        self.keep(self.enter(plan, connection))

    def enter(self, plan: Plan, connection: Any) -> Line:
        """Make a line of an auto-link, and enter it in the books."""
        line = Line(self, plan, connection, self.now)
        self._lines.setdefault(plan.name, {})[connection] = line
        return line

    def try_again(self, line: Line) -> None:
        """Attempt a line that has failed after the usual while."""
        self._at(line, self.now + self.retry_s(line))

    def take_out(self, line: Line) -> None:
        """It is not wanted any more; another one of its name may be."""
        lines = self._lines.get(line.name, {})
        if lines.get(line.connection) is line:
            del lines[line.connection]
            if not lines:
                del self._lines[line.name]
        self.redirected.forget(line)

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
        self.redirected.failed(line)

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
        self.redirected.look(now)
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
