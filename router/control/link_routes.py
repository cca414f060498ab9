"""Manage configured and requested link routes, and the connections to their containers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

import attrs

from router.control.containers import Containers
from router.core.link_routes.link_routes import LinkRoutes
from router.core.link_routes.route_outlets import NEVER, LinkRoute, LinkRouteRule
from router.engine.connection import Connection
from router.engine.deferred import CHANGES_AT_ONCE, pop_from_end, pop_items
from router.engine.events import ConnectionClosed
from router.engine.outbox import Turn

# A change of at most this many link routes is made in one turn, in the existing tables.
MAX_SMALL_CHANGE: Final = 64


@attrs.frozen(eq=False)
class LinkRouteChange:
    """Change to the configured link routes: names to remove and rules to add."""

    removed: list[str]
    added: list[LinkRouteRule]
    # set by `prepare`: link routes to remove and to add, and all that are configured afterwards
    left: list[LinkRoute] = attrs.Factory(list)
    came: list[LinkRoute] = attrs.Factory(list)
    configured: dict[str, LinkRoute] = attrs.Factory(dict)

    @property
    def is_small(self) -> bool:
        """Return whether the change is small enough to be made in one turn."""
        return len(self.removed) + len(self.added) + len(self.left) <= MAX_SMALL_CHANGE


class LinkRouting:
    """Manager of a router's link routes, and of the connections to their containers.

    A link route is configured, or requested by a peer. A requested link route leads only to the
    connection that requested it, and is removed when that connection closes. It may have the same
    name as a configured one.
    """

    def __init__(self, link_routes: LinkRoutes, turn: Turn, containers: Containers) -> None:
        self._routes = link_routes
        self._turn = turn
        self._containers = containers
        self._configured: dict[str, LinkRoute] = {}
        # link routes by the container-id or by the connection name of their containers
        self._by_id: dict[str, dict[LinkRoute, None]] = {}
        self._by_name: dict[str, dict[LinkRoute, None]] = {}
        self._of_connection: dict[Connection, dict[str, LinkRoute]] = {}
        containers.watchers.append(self)

    # Configured link routes.

    def configure(self, rules: Iterable[LinkRouteRule]) -> None:
        """Replace the configured link routes by `rules`; unchanged link routes are left alone."""
        wanted = {rule.name: rule for rule in rules}
        before = self._configured
        gone = [name for name, way in before.items() if wanted.get(name) != way.rule]
        self.change(gone, [rule for name, rule in wanted.items() if name not in before])
        # the new route of an old name is added once the old one is removed
        self.change([], [wanted[name] for name in gone if name in wanted])

    def change(self, removed: Iterable[str], added: Iterable[LinkRouteRule]) -> None:
        """Remove configured link routes by name, and add others. Call this in a turn.

        All other routes are left alone. Links stay attached even if their route is removed.
        """
        change = LinkRouteChange(list(removed), list(added))
        for _ in self.prepare(change):
            pass
        self.commit(change)

    def prepare(self, change: LinkRouteChange) -> Iterator[None]:
        """Prepare a change in steps; it has no effect before `commit`."""
        is_small = change.is_small
        if not is_small:
            change.configured.update(self._configured)
        yield
        for name in pop_from_end(change.removed):
            way = self._configured[name] if is_small else change.configured.pop(name)
            way.until = self._routes.edition + 1
            change.left.append(way)
            yield
        for rule in change.added:
            # each of these steps may have to resize a large table
            way = self._routes.add(rule, is_next=True)
            change.came.append(way)
            yield
            self._learn(way)
            yield
            if not is_small:
                change.configured[rule.name] = way
            yield

    def commit(self, change: LinkRouteChange) -> None:
        """Put a change that `prepare` has prepared into effect. Call this in a turn."""
        deferred = self._turn.deferred
        if change.is_small:
            for way in change.left:
                del self._configured[way.rule.name]
            self._configured.update((way.rule.name, way) for way in change.came)
        else:
            before, self._configured = self._configured, change.configured
            deferred.forget(pop_items(before))
        self._routes.begin_edition()
        deferred.process_each(change.came, self._routes.report_new, at_once=CHANGES_AT_ONCE)
        left = pop_from_end(change.left)
        deferred.process_each(left, self._forget, at_once=CHANGES_AT_ONCE)

    def discard(self, change: LinkRouteChange) -> None:
        """Undo `prepare` for a change that is not put into effect."""
        for way in change.left:
            way.until = NEVER
        self._turn.deferred.process_each(change.came, self._forget)
        self._turn.deferred.forget(pop_items(change.configured))

    def configured(self, name: str) -> LinkRoute | None:
        """Return the configured link route of this name; None if there is none."""
        return self._configured.get(name)

    def _learn(self, way: LinkRoute) -> None:
        rule = way.rule
        for known, key in self._keys(rule):
            known.setdefault(key, {})[way] = None
            for connection in self._containers.find(rule.container_id, rule.connection):
                self._routes.open(way, connection)

    def _forget(self, way: LinkRoute) -> None:
        self._routes.remove(way)
        for known, key in self._keys(way.rule):
            ways = known.get(key, {})
            # if the change was given up while it was prepared, the route may not exist
            ways.pop(way, None)
            if not ways:
                known.pop(key, None)

    def _keys(self, rule: LinkRouteRule) -> list[tuple[dict[str, dict[LinkRoute, None]], str]]:
        if rule.container_id is not None:
            return [(self._by_id, rule.container_id)]
        return [] if rule.connection is None else [(self._by_name, rule.connection)]

    # Containers.

    def container_came(self, connection: Connection) -> None:
        """Start to forward links to a container that has connected.

        If very many link routes lead to the container, some are opened in later turns.
        """

        def open_way(way: LinkRoute) -> None:
            # by now, the connection may have ended, or the link route may have been removed
            if connection.is_open() and self._is_known(way):
                self._routes.open(way, connection)

        self._tell(connection, open_way)

    def container_left(self, connection: Connection) -> None:
        """Remove a connection that has ended from the link routes that lead to it."""
        self._tell(connection, lambda way: self._routes.close(way, connection))

    def _tell(self, connection: Connection, act: Callable[[LinkRoute], None]) -> None:
        """Call `act` for each configured link route that leads to a connection."""
        by_id = self._by_id.get(connection.remote_open.container_id, ())
        ways = [*by_id, *self._by_name.get(connection.settings.endpoint, ())]
        self._turn.deferred.process_each(ways, act, at_once=CHANGES_AT_ONCE)

    def _is_known(self, way: LinkRoute) -> bool:
        return any(way in known.get(key, {}) for known, key in self._keys(way.rule))

    # Link routes that connections have requested.

    def requested_by(self, connection: Connection) -> dict[str, LinkRoute]:
        """Return the link routes that a connection has requested, by name."""
        return dict(self._of_connection.get(connection, ()))

    def all_requested(self) -> Iterable[LinkRoute]:
        """Return all link routes that connections have requested."""
        return [way for ways in self._of_connection.values() for way in ways.values()]

    def add_requested(self, rule: LinkRouteRule) -> LinkRoute:
        """Add a link route that a connection, the rule's `scope`, has requested.

        The name must be new on that connection.
        """
        way = self._routes.add(rule)
        self._routes.open(way, rule.scope)
        self._of_connection.setdefault(rule.scope, {})[rule.name] = way
        return way

    def remove_requested(self, way: LinkRoute) -> None:
        """Remove a link route that a connection has requested; links attached through it stay."""
        scope = way.rule.scope
        mine = self._of_connection[scope]
        del mine[way.rule.name]
        if not mine:
            del self._of_connection[scope]
        self._routes.remove(way)

    def event_received(self, connection: Connection, event: object) -> None:
        """On a connection's close, remove the link routes that the connection has requested."""
        if isinstance(event, ConnectionClosed):
            for way in self._of_connection.pop(connection, {}).values():
                self._routes.remove(way)
