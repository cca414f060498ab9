"""What keeps link routes true: which connections lead to their containers, and which routes there
are because a container has asked for them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from router.control.containers import Containers
from router.core.link_routes import LinkRoutes
from router.core.route_outlets import Rule, Way
from router.engine.events import ConnectionClosed


class LinkRouting:
    """The link routes of one router, and the containers that are there for them.

    Those that are configured have names of their own. A connection that has asked for link routes
    is their only container, however it came, and they go with it.
    """

    def __init__(self, link_routes: LinkRoutes, containers: Containers) -> None:
        self._routes = link_routes
        self._containers = containers
        self._configured: dict[str, Way] = {}
        # for a container that comes or goes: the link routes by what they know it by
        self._by_id: dict[str, dict[Way, None]] = {}
        self._by_name: dict[str, dict[Way, None]] = {}
        self._of_connection: dict[Any, dict[str, Way]] = {}
        containers.watchers.append(self)

    # What is configured.

    def configure(self, rules: Iterable[Rule]) -> None:
        """From now on these link routes are configured, and no others; otherwise as `change`."""
        wanted = {rule.name: rule for rule in rules}
        before = self._configured
        gone = [name for name, way in before.items() if wanted.get(name) != way.rule]
        self.change(gone, [rule for name, rule in wanted.items() if name not in before])
        self.change([], [wanted[name] for name in gone if name in wanted])

    def change(self, removed: Iterable[str], added: Iterable[Rule]) -> None:
        """From now on some are not configured any more, by name, and others are; what stays costs
        nothing.

        Those that stay keep what they have, and no link ends because its route does.
        """
        for name in removed:
            self._forget(self._configured.pop(name))
        for rule in added:
            self._configured[rule.name] = self._make(rule)

    def configured(self, name: str) -> Way | None:
        """The configured link route of this name, if there is one."""
        return self._configured.get(name)

    def _make(self, rule: Rule) -> Way:
        way = self._routes.add(rule)
        for known, key in self._keys(rule):
            known.setdefault(key, {})[way] = None
            for connection in self._containers.find(rule.container_id, rule.connection):
                self._routes.open(way, connection)
        return way

    def _forget(self, way: Way) -> None:
        self._routes.remove(way)
        for known, key in self._keys(way.rule):
            del known[key][way]
            if not known[key]:
                del known[key]

    def _keys(self, rule: Rule) -> list[tuple[dict[str, dict[Way, None]], str]]:
        if rule.container_id is not None:
            return [(self._by_id, rule.container_id)]
        return [] if rule.connection is None else [(self._by_name, rule.connection)]

    # Containers.

    def container_came(self, connection: Any) -> None:
        """A connection to a container is open."""
        for way in self._ways_to(connection):
            self._routes.open(way, connection)

    def container_left(self, connection: Any) -> None:
        """A connection to a container is over."""
        for way in self._ways_to(connection):
            self._routes.close(way, connection)

    def _ways_to(self, connection: Any) -> list[Way]:
        by_id = self._by_id.get(connection.remote_open.container_id, ())
        return [*by_id, *self._by_name.get(connection.settings.endpoint, ())]

    # What connections have asked for.

    def scoped(self, connection: Any) -> dict[str, Way]:
        """The link routes that a connection has asked for, by name."""
        return dict(self._of_connection.get(connection, ()))

    def every_scoped(self) -> Iterable[Way]:
        """All link routes that connections have asked for."""
        return [way for ways in self._of_connection.values() for way in ways.values()]

    def ask(self, rule: Rule) -> Way:
        """A connection, the `scope` of the rule, asks for one; it has none of this name."""
        way = self._routes.add(rule)
        self._routes.open(way, rule.scope)
        self._of_connection.setdefault(rule.scope, {})[rule.name] = way
        return way

    def withdraw(self, way: Way) -> None:
        """A connection does without one that it has asked for; what it forwards goes on."""
        scope = way.rule.scope
        mine = self._of_connection[scope]
        del mine[way.rule.name]
        if not mine:
            del self._of_connection[scope]
        self._routes.remove(way)

    def event_received(self, connection: Any, event: object) -> None:
        """A connection that is over takes its link routes with it."""
        if isinstance(event, ConnectionClosed):
            for way in self._of_connection.pop(connection, {}).values():
                self._routes.remove(way)
