"""Link routes between an edge and its interiors: each end advertises those with containers.

Link routes are advertised on every open connection, even if it is on standby, so that an uplink
that becomes active already has all routes. Links are forwarded on active uplinks only. While an
edge has no active uplink, it keeps the last routes: a link that matches one of them is refused, and
is not attached to an address of the same name. If there are very many routes, some are added and
removed in later turns (docs/decisions/0072-link-routes-of-edges.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from router.control.edge.advertised_routes import AdvertisedRoutes
from router.control.edge.key_streams import KeyStreams
from router.control.edge.messages import Message, Routes, routes
from router.control.network.held_back import HeldBack
from router.control.network.steps import Steps
from router.core.addresses.table import address_name
from router.core.forwarding.forward import Forwarder
from router.core.link_routes.link_routes import Route, is_topological
from router.core.link_routes.remote_link_routes import (
    LinkRoutesUnsupported,
    RouteRefused,
    RoutesLeftOut,
    key_of,
    parse_key,
)
from router.core.link_routes.route_outlets import UplinkOutlet
from router.core.model.split_table import ListedTable
from router.engine.connection import Connection
from router.engine.deferred import pop_items

# Feature in the open of a router that supports link routes on uplinks.
FEATURE: Final = "edge-routes"
# Work of adding or removing a link route that an edge advertises (`Steps`).
WORK_A_ROUTE: Final = 8

Tell = Callable[[Connection, Message], None]
TellAll = Callable[[Iterable[Connection], Message], None]


class EdgeLinkRoutes:
    """Handler of link routes at an edge: its own, and those that its interiors advertise."""

    def __init__(self, forwarder: Forwarder, tell: Tell) -> None:
        self.forwarder = forwarder
        self._tell = tell
        # routes of each interior, by connection
        self.advertised: dict[Connection, AdvertisedRoutes] = {}
        # connections whose routers have `FEATURE`
        self._supporting: dict[Connection, None] = {}
        # routes of lost active uplinks, until another uplink takes over
        self._last: list[AdvertisedRoutes] = []
        self._used: list[Connection] = []
        forwarder.link_routes.watchers.append(self._changed)

    def came(self, connection: Connection, router: str, features: frozenset[str]) -> None:
        """Add an uplink, and advertise the link routes of this edge to its interior."""
        self.finish()
        advertised = AdvertisedRoutes(self.forwarder.link_routes, connection, router)
        self.advertised[connection] = advertised
        advertised.settled = self._update
        if FEATURE not in features:
            advertised.keys = ListedTable()
            self.forwarder.observer.event_received(connection, LinkRoutesUnsupported(router))
            return
        self._supporting[connection] = None
        self._say(connection, [(key, True) for key in self.forwarder.reach.own_interests])

    def left(self, connection: Connection) -> None:
        """Remove an uplink that has ended. If it was active, the caller must call `use` next."""
        self._supporting.pop(connection, None)
        advertised = self.advertised.pop(connection)
        if advertised.is_open:
            self._last.append(advertised)
        else:
            advertised.leave()

    def receive(self, connection: Connection, message: Routes) -> Steps[None]:
        """Update the link routes of an interior; raise `AmqpError` for an invalid key."""
        advertised = self.advertised[connection]
        advertised.change(message.added, message.removed)
        if advertised.should_log():
            assert advertised.keys is not None
            event = RoutesLeftOut(advertised.router, advertised.refused, len(advertised.keys))
            self.forwarder.observer.event_received(connection, event)
        self._update()
        yield WORK_A_ROUTE * (len(message.added) + len(message.removed))

    def use(self, connections: Iterable[Connection]) -> None:
        """Make these connections the active uplinks."""
        self._used = list(connections)
        self._update()

    def _update(self) -> None:
        """Start forwarding by routes of the active uplinks, then stop it on all other uplinks.

        The routes of a lost uplink are kept until an active uplink has advertised its own
        routes. A route that both uplinks advertise is thus never missing.
        """
        used = [self.advertised[each] for each in self._used if each in self.advertised]
        spoken = [each for each in used if each.keys is not None]
        for each in spoken:
            each.use(is_open=True)
        if any(each.is_behind for each in spoken):
            return
        for each in self.advertised.values():
            if each not in used:
                each.use(is_open=False)
        if spoken:
            last, self._last = self._last, []
            for each in last:
                each.leave()

    # Link routes at this edge.

    def _changed(self, route: Route) -> None:
        self.forwarder.network.note_edges()

    def finish(self) -> None:
        """Send the changes of this turn to the interiors. Call this at the end of the turn."""
        reach = self.forwarder.reach
        if not reach.own_changes:
            return
        changes = [(key, interest is not None) for key, interest in reach.take_own_changes()]
        for connection in self._supporting:
            self._say(connection, changes)

    def _say(self, connection: Connection, changes: Iterable[tuple[str, bool]]) -> None:
        for message in routes(changes):
            self._tell(connection, message)


class InteriorLinkRoutes:
    """Handler of link routes at an interior: those of its edges, and those advertised to them.

    Most keys are sent to every edge, so keys are recorded and encoded once for all edges.
    """

    def __init__(self, forwarder: Forwarder, tell: TellAll) -> None:
        self.forwarder = forwarder
        self._tell = tell
        self.advertised: dict[Connection, AdvertisedRoutes] = {}
        # connections whose routers have `FEATURE`
        self._supporting: dict[Connection, None] = {}
        # keys last advertised as having containers. If all containers are at one edge, the value is
        # that edge, to which the key is not sent; otherwise it is None.
        self._said: dict[str, str | None] = {}
        self._due: dict[str, tuple[str, str]] = {}
        # whether a message of an edge is being processed, which may change more
        self._is_receiving = False
        self._held_back = HeldBack()
        self._telling = KeyStreams(forwarder.turn.deferred, self._tell_of)
        forwarder.link_routes.watchers.append(self._changed)

    def came(self, connection: Connection, router: str, features: frozenset[str]) -> None:
        """Add an edge's connection, and advertise the link routes of other routers to the edge."""
        known = self.forwarder.link_routes
        self.advertised[connection] = AdvertisedRoutes(known, connection, router)
        if FEATURE not in features:
            self.forwarder.observer.event_received(connection, LinkRoutesUnsupported(router))
            return
        self.finish()
        is_first = not self._supporting
        self._supporting[connection] = None
        if is_first:
            # treat all routes as new
            found = map(self._changed, self.forwarder.link_routes.routes())
            self.forwarder.turn.deferred.run_steps(found)
            self.finish()
        else:
            self._telling.queue_keys(connection, list(self._said))
        if all(only == router for only in self._said.values()):
            # an empty message reports that there are none
            self._tell((connection,), Routes())

    def _tell_of(self, connection: Connection, keys: list[str]) -> None:
        edge = self.advertised[connection].router
        for message in routes((key, True) for key in keys if self._said.get(key, edge) != edge):
            self._tell((connection,), message)

    def advertised_to(self, connection: Connection) -> list[str]:
        """Return the keys of the link routes that were advertised to an edge."""
        edge = self.advertised[connection].router
        return [key for key, only in self._said.items() if only != edge]

    def left(self, connection: Connection) -> None:
        """Remove a connection that has ended."""
        self._supporting.pop(connection, None)
        self._telling.drop(connection)
        if not self._supporting:
            # changes are not sent to any edge from now on
            said, self._said = self._said, {}
            self.forwarder.turn.deferred.forget(pop_items(said))
            self._due.clear()
        self.advertised.pop(connection).leave()

    def use(self, connection: Connection, *, is_active: bool) -> None:
        """Note whether an edge's connection is now an active uplink."""
        advertised = self.advertised.get(connection)
        if advertised is not None:
            advertised.use(is_open=is_active)

    def receive(self, connection: Connection, message: Routes) -> Steps[None]:
        """Update the link routes of an edge; raise `AmqpError` for an invalid key, or too many."""
        advertised = self.advertised[connection]
        self._is_receiving = True
        try:
            for key in message.removed:
                advertised.change((), (key,))
                yield WORK_A_ROUTE
            for key in message.added:
                self._add(advertised, key)
                yield WORK_A_ROUTE
        finally:
            self._is_receiving = False
            self.forwarder.network.note_edges()

    def _add(self, advertised: AdvertisedRoutes, key: str) -> None:
        if not self._has_fixed_place(key):
            advertised.change((key,), ())
            return
        advertised.refused += 1
        if advertised.should_log():
            event = RouteRefused(advertised.router, key, advertised.refused)
            self.forwarder.observer.event_received(advertised.connection, event)

    def _has_fixed_place(self, key: str) -> bool:
        """Return whether a link route has names with a fixed location, whatever edges advertise."""
        _, pattern = parse_key(key) or ("", "")
        name = address_name(pattern)
        return is_topological(name) or self.forwarder.table.is_own_node(name)

    # Link routes elsewhere than at each edge.

    def _changed(self, route: Route) -> None:
        if self._supporting:
            self._due[key_of(route)] = route.direction, route.pattern
            self.forwarder.network.note_edges()

    def _note_said(self, key: str, route: Route | None) -> None:
        """Record the present state of `route`, which has this key, as the state sent last."""
        edges = _edges_of(route)
        if len(edges) > 1:
            self._said[key] = None
        elif edges:
            (self._said[key],) = edges
        else:
            self._said.pop(key, None)

    def finish(self) -> None:
        """Send the changes of this turn to the edges. Call this at the end of the turn."""
        held = self._held_back
        if not self._due or held.holds(
            len(self._due), self.forwarder.turn.now, expects_more=self._is_receiving
        ):
            return
        due, self._due = self._due, {}
        common: list[tuple[str, bool]] = []
        # keys whose state for one edge differs from that for the others, by edge
        others: dict[str, dict[str, bool | None]] = {}
        for key, place in due.items():
            was_said, before = key in self._said, self._said.get(key)
            self._note_said(key, self.forwarder.link_routes.route_by(*place))
            is_said, now = key in self._said, self._said.get(key)
            if was_said != is_said:
                common.append((key, is_said))
            for edge in {each for each in (before, now) if each is not None}:
                had, has = was_said and before != edge, is_said and now != edge
                others.setdefault(edge, {})[key] = None if had == has else has
        same = [each for each in self._supporting if self.advertised[each].router not in others]
        for message in routes(common):
            self._tell(same, message)
        for connection in self._supporting:
            own = others.get(self.advertised[connection].router)
            if own is not None:
                changes = [(key, has) for key, has in common if key not in own]
                changes += [(key, has) for key, has in own.items() if has is not None]
                for message in routes(changes):
                    self._tell((connection,), message)


def _edges_of(route: Route | None) -> set[str | None]:
    """Return the ids of the edges where a link route has containers.

    None stands for other places. At most two elements are returned, as no caller needs more.
    """
    found: set[str | None] = set()
    if route is None:
        return found
    if any(way.outlets for way in route.link_routes):
        return {None, ""}
    for outlet in route.far.values():
        found.add(outlet.router if isinstance(outlet, UplinkOutlet) else None)
        if len(found) > 1:
            break
    return found
