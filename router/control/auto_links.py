"""Keep the configured auto-links attached.

Each auto-link is attached once on each open connection to its container.
`router.control.link_supervisor` attaches it (docs/decisions/0049-auto-links.md).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Final

from router.amqp.performatives import Error
from router.control.containers import Containers
from router.control.link_supervisor import Attempt, LinkSupervisor, Status, SupervisedLink
from router.control.redirected import Redirects
from router.core.addresses.table import address_name
from router.core.forwarding.forward import Forwarder
from router.core.links.auto_links import AutoLink, AutoLinkChanged, AutoLinkRule
from router.core.model.split_table import ListedTable
from router.engine.connection import Connection
from router.engine.deferred import CHANGES_AT_ONCE, ITEMS_PER_STEP, pop_from_end, pop_items
from router.engine.link import Link

# Dispatch's retry delays: after the first failure, and after later ones.
FIRST_RETRY_S: Final = 2.0
RETRY_S: Final = 5.0
RETRIES_PER_S: Final = 50

# from best to worst
_STATUSES: Final = tuple(Status)
_RANKS: Final = {status: rank for rank, status in enumerate(_STATUSES)}


class Line(SupervisedLink[AutoLink]):
    """Auto-link that is wanted on one connection, attached or not."""

    def __init__(
        self, keeper: AutoLinks, rule: AutoLinkRule, connection: Connection, now: float
    ) -> None:
        super().__init__(keeper, rule.name, connection, now)
        self.rule = rule
        # the error condition of the failure that was announced last
        self.announced_condition: str | None = None

    @property
    def retry_at(self) -> float | None:
        """Return when a failed link is attempted again, or None if the link has not failed."""
        return self.due if self.status is Status.FAILED else None

    @property
    def link(self) -> Link | None:
        """Return the link if it is attached, otherwise None."""
        is_there = self.own is not None and self.own.end is not None and not self.own.is_over
        return self.own.link if is_there and self.own is not None else None


class AutoLinkRules:
    """Set of configured auto-links, with indexes to find them.

    A small change updates this object with `put`; a full reconfiguration creates another object.
    """

    def __init__(self, rules: Iterable[AutoLinkRule] = ()) -> None:
        # by name, in the order of the configuration
        self.rules = {rule.name: rule for rule in rules}
        # names of the auto-links by container-id, or by listener or connector
        self.by_container: dict[tuple[str | None, str | None], dict[str, None]] = {}
        # number of auto-links at each address
        self.claims: Counter[str] = Counter()
        for rule in self.rules.values():
            self._enter(rule)

    def put(self, name: str, rule: AutoLinkRule | None) -> None:
        """Add or replace the auto-link with this name, or remove it if `rule` is None.

        The time needed does not depend on how many auto-links there are.
        """
        before = self.rules.get(name)
        if before is not None:
            its, address = self.by_container[_key(before)], address_name(before.address)
            del its[name]
            if not its:
                del self.by_container[_key(before)]
            self.claims[address] -= 1
            if not self.claims[address]:
                del self.claims[address]
        if rule is None:
            self.rules.pop(name, None)
        else:
            self.rules[name] = rule
            self._enter(rule)

    def _enter(self, rule: AutoLinkRule) -> None:
        self.by_container.setdefault(_key(rule), {})[rule.name] = None
        self.claims[address_name(rule.address)] += 1

    def names_on(self, connection: Connection) -> list[str]:
        """Return the names of the auto-links that are wanted on a connection."""
        return [
            name for key in _keys_of(connection) for name in list(self.by_container.get(key, ()))
        ]

    def pieces(self) -> Iterator[object]:
        """Empty all tables step by step, and yield after each step (`router.engine.deferred`)."""
        yield from pop_items(self.rules)
        yield from pop_items(self.claims)
        for names in self.by_container.values():
            yield from pop_items(names)
        yield from pop_items(self.by_container)


class AutoLinks(LinkSupervisor[Line]):
    """Supervisor of a router's auto-links, and observer of the connections to containers."""

    peer = "container"
    retries_per_s = RETRIES_PER_S

    def __init__(self, forwarder: Forwarder, containers: Containers) -> None:
        super().__init__(forwarder)
        self.containers = containers
        self.redirected = Redirects(self, containers)
        containers.watchers.append(self)
        self._wanted = AutoLinkRules()
        self._lines: ListedTable[str, dict[Connection, Line]] = ListedTable()
        # number of lines with each rank of status, by name; and number of names whose best line has
        # each rank
        self._standing: ListedTable[str, list[int]] = ListedTable()
        self._names_by_rank = [0] * len(Status)
        # whether changed auto-links decide whether their address is available
        self._has_opened_or_closed = False
        # lines that have failed since the last `tick`
        self._newly_failed: list[Line] = []

    # Wanted auto-links.

    @property
    def rules(self) -> dict[str, AutoLinkRule]:
        """Return the configured auto-links by name, in the order of the configuration."""
        return self._wanted.rules

    def configure(self, rules: Iterable[AutoLinkRule]) -> None:
        """Replace the configured auto-links by `rules`; unchanged auto-links are left alone."""
        wanted, before = AutoLinkRules(rules), self.rules
        names = [*before, *(name for name in wanted.rules if name not in before)]
        others = [name for name in names if before.get(name) != wanted.rules.get(name)]
        # `change` takes the names from the end of the list
        self.change(wanted, others[::-1])

    def change(self, wanted: AutoLinkRules, names: list[str]) -> None:
        """Replace the configured auto-links by `wanted`; unchanged auto-links are left alone.

        `names` lists the auto-links to add, replace or remove; this list is emptied. If it is very
        long, some auto-links are attached or retired in later turns.
        """
        before, self._wanted = self._wanted, wanted
        self.forwarder.table.set_auto_links(wanted.claims)

        def over() -> None:
            self._resolve_exchanges()
            self.forwarder.turn.deferred.forget(before.pieces())

        apply, changed = partial(self._is_changed, before), pop_from_end(names)
        self.forwarder.turn.deferred.process_each(changed, apply, over, CHANGES_AT_ONCE)

    def change_few(self, rules: dict[str, AutoLinkRule | None]) -> None:
        """Add or replace auto-links by name, or remove those whose value is None.

        Call this in a turn. The time needed does not depend on how many other auto-links there are.
        """
        self.forwarder.table.set_auto_links(self._wanted.claims)
        for name, rule in rules.items():
            before = self.rules.get(name)
            self._wanted.put(name, rule)
            self._is_another(name, before, rule)
        self._resolve_exchanges()

    def _is_changed(self, before: AutoLinkRules, name: str) -> None:
        """Apply the change to one auto-link, which was added, replaced or removed."""
        self._is_another(name, before.rules.get(name), self.rules.get(name))

    def _is_another(self, name: str, old: AutoLinkRule | None, new: AutoLinkRule | None) -> None:
        for rule in (old, new):
            if rule is not None:
                address = address_name(rule.address)
                self.forwarder.table.auto_links_changed(address)
                self._has_opened_or_closed |= self.forwarder.table.needs_auto_links(address)
        for line in list(self._lines.get(name, {}).values()):
            # a redirected line ends with the line that it came from
            if line.rule != new and not self.redirected.owns(line):
                self.retire(line)
        if new is not None:
            for connection in self.containers.find(new.container_id, new.connection):
                self._want(new, connection)

    def _resolve_exchanges(self) -> None:
        """Make exchanges look up addresses again, if changed auto-links may affect the result."""
        if self._has_opened_or_closed:
            self._has_opened_or_closed = False
            self.forwarder.exchanges.resolve()

    def phases_changed(self) -> None:
        """Reattach the auto-links whose phase has changed together with the address settings."""
        every = (
            line for name in list(self._lines) for line in list(self._lines.get(name, {}).values())
        )
        self.forwarder.turn.deferred.process_each(
            every, self._phase_changed, at_once=CHANGES_AT_ONCE
        )

    def _phase_changed(self, line: Line) -> None:
        if not self._is_in_books(line):
            return
        own = line.own
        if self.redirected.owns(line):
            self.redirected.left(line)
        elif own is not None and not own.is_at_current_phase(self.forwarder.table):
            self.retire(line)
            rule = self.rules.get(line.name)
            if rule is not None:
                self._want(rule, line.connection)

    def container_came(self, connection: Connection) -> None:
        """Attach the auto-links that are wanted on a connection that has opened.

        If there are very many, some are attached in later turns.
        """

        def want(name: str) -> None:
            # by now, the connection may have ended, or the auto-link may be for other connections
            rule = self.rules.get(name)
            if connection.is_open() and rule is not None and _key(rule) in _keys_of(connection):
                self._want(rule, connection)

        # connections that open later are handled when they open
        names = self._wanted.names_on(connection)
        self.forwarder.turn.deferred.process_each(names, want, at_once=CHANGES_AT_ONCE)

    def container_left(self, connection: Connection) -> None:
        """Forget the auto-links of a connection that has ended."""
        self.forget_lines(connection)

    def _want(self, rule: AutoLinkRule, connection: Connection) -> None:
        lines = self._lines.setdefault(rule.name, {})
        if connection in lines:
            return
        self.keep_attached(self.enter(rule, connection))

    def enter(self, rule: AutoLinkRule, connection: Connection) -> Line:
        """Add an auto-link on a connection to the tables of wanted links, and return it."""
        line = Line(self, rule, connection, self.now)
        self._lines.setdefault(rule.name, {})[connection] = line
        self._count(line, line.status, 1)
        return line

    def try_again(self, line: Line) -> None:
        """Schedule the next attempt to attach a failed link, after its retry delay."""
        self._at(line, self.now + self.retry_s(line))

    def remove_line(self, line: Line) -> None:
        """Remove a link from the tables of wanted links, if it is there.

        If the link is redirected, also give up the link at the target of the redirect.
        """
        if self._is_in_books(line):
            lines = self._lines[line.name]
            del lines[line.connection]
            if not lines:
                del self._lines[line.name]
            self._count(line, line.status, -1)
        self.redirected.forget(line)

    def _is_in_books(self, line: Line) -> bool:
        return self._lines.get(line.name, {}).get(line.connection) is line

    # Attaching.

    def make(self, line: Line, number: int) -> AutoLink:
        """Create a link for an attempt, with a name made of the auto-link's name and `number`."""
        return AutoLink(line.rule, f"auto-link/{line.name}/{number}", line)

    def retry_s(self, line: Line) -> float:
        """Return the retry delay, shorter after the first failure than after later ones."""
        return FIRST_RETRY_S if line.attempts <= 1 else RETRY_S

    def recovered(self, line: Line) -> None:
        """Announce that a link has become active. Its last error is kept, for operators to see."""
        line.announced_condition = None
        self._announce(line, None)

    def failed(self, line: Line) -> None:
        """Record that a link has failed, and follow a redirect if the peer has sent one.

        The failure is counted and announced later, unless the connection has been lost.
        """
        self._newly_failed.append(line)
        self.redirected.failed(line)

    def check_quiescing(self, line: Line, own: Attempt, now: float) -> None:
        """Mark a quiescing link as idle once it has no deliveries left; detach an idle link."""
        if line.status is Status.QUIESCING and self.is_quiet(line, own, now):
            self.set_status(line, Status.IDLE)
        elif line.status is Status.IDLE:
            own.detach()

    # Announcements.

    def tick(self, now: float) -> None:
        """Do all work that is due."""
        super().tick(now)
        self.redirected.tick(now)
        if self._newly_failed:
            self._tell_failures()

    def _tell_failures(self) -> None:
        """Count and announce failures, except those caused by a lost connection."""
        failed, self._newly_failed = self._newly_failed, []
        self.forwarder.turn.deferred.process_each(
            failed, self._tell_failure, at_once=ITEMS_PER_STEP
        )

    def _tell_failure(self, line: Line) -> None:
        if line.is_over:
            return
        self.failures += 1
        condition = "" if line.error is None else str(line.error.condition)
        if line.announced_condition != condition and line.status is Status.FAILED:
            line.announced_condition = condition
            self._announce(line, line.error)

    def _announce(self, line: Line, error: Error | None) -> None:
        news = AutoLinkChanged(line.rule, str(line.status), error)
        self.forwarder.observer.event_received(line.connection, news)

    # Views.

    def lines_of(self, name: str) -> list[Line]:
        """Return an auto-link's links, one for each connection, the best status first."""
        lines = self._lines.get(name, {}).values()
        return sorted(lines, key=lambda line: _RANKS[line.status])

    def status_of(self, name: str) -> Status:
        """Return the best status of an auto-link on any connection; `INACTIVE` if it has none."""
        rank = _best(self._standing.get(name, ()))
        return Status.INACTIVE if rank is None else _STATUSES[rank]

    def count_statuses(self) -> Counter[str]:
        """Return counts of auto-links by status, and of links that are no longer wanted.

        An auto-link counts once, by its best status on any connection. A link that is no longer
        wanted counts as quiescing or idle until it is detached.
        """
        counts = Counter({str(each): self._names_by_rank[_RANKS[each]] for each in Status})
        # during a change, lines of names that are not configured may still be in the tables
        counts[str(Status.INACTIVE)] += max(0, len(self.rules) - len(self._standing))
        for status in (Status.QUIESCING, Status.IDLE):
            counts[str(status)] += self.statuses[status]
        return +counts

    def status_changed(self, line: Line, before: Status) -> None:
        """Update the counts of auto-links by status after a link's status has changed."""
        if self._is_in_books(line):
            self._count(line, before, -1)
            self._count(line, line.status, 1)

    def _count(self, line: Line, status: Status, by: int) -> None:
        """Add `by` to the count of links that have this status and the name of `line`."""
        standing = self._standing.setdefault(line.name, [0] * len(Status))
        before = _best(standing)
        standing[_RANKS[status]] += by
        after = _best(standing)
        if before is not None:
            self._names_by_rank[before] -= 1
        if after is not None:
            self._names_by_rank[after] += 1
        else:
            del self._standing[line.name]


def _best(standing: Iterable[int]) -> int | None:
    """Return the first index with a count above 0, or None; `standing` has counts by status."""
    return next((rank for rank, count in enumerate(standing) if count), None)


def _key(rule: AutoLinkRule) -> tuple[str | None, str | None]:
    if rule.container_id is not None:
        return rule.container_id, None
    return None, rule.connection


def _keys_of(connection: Connection) -> tuple[tuple[str | None, str | None], ...]:
    return (connection.remote_open.container_id, None), (None, connection.settings.endpoint)
