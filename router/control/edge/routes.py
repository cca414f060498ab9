"""Link routes between an edge and its interiors: each tells the other for which it has containers.

Both say so on every connection as soon as it is there, used or not, so that one that takes over is
known at once. An interior takes an edge's containers for some of its own, which are there while the
edge uses the connection; an edge goes by what the interiors say that it uses. While there is none,
what was said last still counts as routes, though no container can be reached: a link that is to be
at a container is refused, and does not become one of an address that has the same name.
(docs/decisions/0072-link-routes-of-edges.md)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from router.amqp.constants import Condition
from router.control.edge.messages import Message, Routes, routes
from router.core.link_routes import LinkRoutes, Route, is_topological
from router.core.network.far_routes import RouteRefused, RoutesUnknown, key_of, parse_key
from router.core.route_outlets import UplinkOutlet
from router.core.table import address_name
from router.errors import AmqpError

# What a router says in its open that knows of link routes by way of edges.
FEATURE: Final = "edge-routes"
# So many keys an edge may tell of.
MOST_TOLD: Final = 10_000
# In octets, as long as a key may be between interior routers.
LONGEST_KEY: Final = 8192

Tell = Callable[[Any, Message], None]


class ToldRoutes:
    """What one connection's router has told, and the outlets that there are for it."""

    def __init__(self, link_routes: LinkRoutes, connection: Any, router: str) -> None:
        self.connection = connection
        self.router = router
        # None until it has said anything
        self.keys: dict[str, tuple[str, str]] | None = None
        self.is_open = False
        self._link_routes = link_routes

    def change(self, added: Iterable[str], removed: Iterable[str]) -> None:
        """It says of these that they have containers, and of those that they have none any more.

        Raises `AmqpError` for what is no key of a link route, and where there are too many.
        """
        keys = self.keys = {} if self.keys is None else self.keys
        for key in removed:
            route = keys.pop(key, None)
            if route is not None and self.is_open:
                self._close(route)
        for key in added:
            route = parse_key(key)
            if route is None or len(key.encode()) > LONGEST_KEY:
                raise AmqpError(Condition.INVALID_FIELD, f"{key[:64]!r} is no key of a link route")
            if key in keys:
                continue
            if len(keys) >= MOST_TOLD and self._is_edges:
                reason = f"more than {MOST_TOLD} link routes are told of"
                raise AmqpError(Condition.RESOURCE_LIMIT_EXCEEDED, reason)
            keys[key] = route
            if self.is_open:
                self._open(route)

    @property
    def _is_edges(self) -> bool:
        return not self.connection.is_client

    def use(self, *, is_open: bool) -> None:
        """From now on links are forwarded by these, or by none of them any more."""
        if self.is_open == is_open:
            return
        self.is_open = is_open
        for route in (self.keys or {}).values():
            if is_open:
                self._open(route)
            else:
                self._close(route)

    def _open(self, route: tuple[str, str]) -> None:
        self._link_routes.open_far(*route, UplinkOutlet(self.router, self.connection))

    def _close(self, route: tuple[str, str]) -> None:
        self._link_routes.close_far(*route, self.connection)


class RoutesBeyond:
    """The link routes of an edge, as it tells its interiors, and those that they have told of."""

    def __init__(self, forwarder: Any, tell: Tell) -> None:
        self.forwarder = forwarder
        self._tell = tell
        # what each interior has told, by its connection
        self.told: dict[Any, ToldRoutes] = {}
        # those that know what to do with what they are told
        self._hearing: dict[Any, None] = {}
        # of one that is lost and was used, while none takes its place
        self._last: list[ToldRoutes] = []
        self._used: list[Any] = []
        forwarder.link_routes.watchers.append(self._changed)

    def came(self, connection: Any, router: str, features: frozenset[str]) -> None:
        """A connection to an interior is there."""
        self.finish()
        told = self.told[connection] = ToldRoutes(self.forwarder.link_routes, connection, router)
        if FEATURE not in features:
            told.keys = {}
            self.forwarder.observer.event_received(connection, RoutesUnknown(router))
            return
        self._hearing[connection] = None
        self._say(connection, [(key, True) for key in self.forwarder.reach.here])

    def left(self, connection: Any) -> None:
        """It is over; `use` follows if it was used."""
        self._hearing.pop(connection, None)
        told = self.told.pop(connection)
        if told.is_open:
            self._last.append(told)

    def received(self, connection: Any, message: Routes) -> None:
        """An interior says what is beyond. Raises `AmqpError`."""
        self.told[connection].change(message.added, message.removed)
        self._see_to()

    def use(self, connections: Iterable[Any]) -> None:
        """From now on these are the uplinks that are used."""
        self._used = list(connections)
        self._see_to()

    def _see_to(self) -> None:
        """Forward by the uplinks that are used; what was lost is known until one has spoken."""
        used = [self.told[each] for each in self._used if each in self.told]
        for told in self.told.values():
            if told.keys is not None:
                told.use(is_open=told in used)
        if any(told.keys is not None for told in used):
            last, self._last = self._last, []
            for told in last:
                told.use(is_open=False)

    # What is at this edge.

    def _changed(self, route: Route) -> None:
        self.forwarder.network.note_edges()

    def finish(self) -> None:
        """At the end of a turn: tell what has changed in it."""
        reach = self.forwarder.reach
        if not reach.changed_here:
            return
        changes = [(key, interest is not None) for key, interest in reach.take_changed_here()]
        for connection in self._hearing:
            self._say(connection, changes)

    def _say(self, connection: Any, changes: Iterable[tuple[str, bool]]) -> None:
        for message in routes(changes):
            self._tell(connection, message)


class RoutesOfEdges:
    """The link routes of an interior's edges, and what it tells them of all others."""

    def __init__(self, forwarder: Any, tell: Tell) -> None:
        self.forwarder = forwarder
        self._tell = tell
        self.told: dict[Any, ToldRoutes] = {}
        # by connection, of what its edge was told last that there is
        self._heard: dict[Any, set[str]] = {}
        self._due: dict[str, tuple[str, str]] = {}
        forwarder.link_routes.watchers.append(self._changed)

    def came(self, connection: Any, router: str, features: frozenset[str]) -> None:
        """A connection of an edge is there."""
        self.told[connection] = ToldRoutes(self.forwarder.link_routes, connection, router)
        if FEATURE not in features:
            self.forwarder.observer.event_received(connection, RoutesUnknown(router))
            return
        known = self.forwarder.link_routes.routes()
        heard = self._heard[connection] = {
            key_of(route) for route in known if self._is_beyond(route, connection)
        }
        for message in list(routes((key, True) for key in heard)) or [Routes()]:
            self._tell(connection, message)

    def left(self, connection: Any) -> None:
        """It is over."""
        self._heard.pop(connection, None)
        self.told.pop(connection).use(is_open=False)

    def use(self, connection: Any, *, is_active: bool) -> None:
        """The edge uses it from now on, or does not any more."""
        told = self.told.get(connection)
        if told is not None:
            told.use(is_open=is_active)

    def received(self, connection: Any, message: Routes) -> None:
        """An edge says for which link routes it has containers. Raises `AmqpError`."""
        told = self.told[connection]
        added = []
        for key in message.added:
            route = parse_key(key)
            if route is not None and self._is_ours(address_name(route[1])):
                # these lead where they lead, whoever says what
                event = RouteRefused(told.router, key)
                self.forwarder.observer.event_received(connection, event)
            else:
                added.append(key)
        told.change(added, message.removed)

    def _is_ours(self, name: str) -> bool:
        return is_topological(name) or self.forwarder.table.is_own_node(name)

    # What is beyond each edge.

    def _changed(self, route: Route) -> None:
        if self._heard:
            self._due[key_of(route)] = route.direction, route.pattern
            self.forwarder.network.note_edges()

    def _is_beyond(self, route: Route, connection: Any) -> bool:
        """Whether a route has containers that are not at the edge of a connection."""
        edge = self.told[connection].router
        return any(way.outlets for way in route.ways) or any(
            not isinstance(outlet, UplinkOutlet) or outlet.router != edge
            for outlet in route.far.values()
        )

    def finish(self) -> None:
        """At the end of a turn: tell each edge what has changed for it."""
        if not self._due:
            return
        due, self._due = self._due, {}
        known = {key: self.forwarder.link_routes.route_by(*route) for key, route in due.items()}
        for connection, heard in self._heard.items():
            changes = []
            for key, route in known.items():
                is_beyond = route is not None and self._is_beyond(route, connection)
                if is_beyond != (key in heard):
                    changes.append((key, is_beyond))
            heard.update(key for key, is_beyond in changes if is_beyond)
            heard.difference_update(key for key, is_beyond in changes if not is_beyond)
            for message in routes(changes):
                self._tell(connection, message)
