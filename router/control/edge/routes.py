"""Link routes between an edge and its interiors: each end advertises those with containers.

Link routes are advertised on every open connection, even if it is on standby, so that an uplink
that becomes active already has all routes. Links are forwarded on active uplinks only. While an
edge has no active uplink, it keeps the last routes: a link that matches one of them is refused, and
is not attached to an address of the same name. If there are very many routes, some are added and
removed in later turns (docs/decisions/0072-link-routes-of-edges.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from router.amqp.constants import Condition
from router.control.edge.key_streams import KeyStreams
from router.control.edge.messages import Message, Routes, routes
from router.core.addresses.table import address_name
from router.core.forwarding.forward import Forwarder
from router.core.link_routes.link_routes import LinkRoutes, Route, is_topological
from router.core.link_routes.remote_link_routes import (
    LinkRoutesUnsupported,
    RouteRefused,
    RoutesLeftOut,
    key_of,
    parse_key,
)
from router.core.link_routes.route_outlets import UplinkOutlet
from router.core.model.split_table import ListedTable
from router.core.model.token_tree import MAX_TOKENS
from router.engine import account
from router.engine.connection import Connection
from router.engine.deferred import pop_items
from router.errors import AmqpError

# Feature in the open of a router that supports link routes on uplinks.
FEATURE: Final = "edge-routes"
# Most keys, and octets of keys, that an edge may advertise; then most that an edge keeps of those
# that an interior advertises. An interior advertises the routes of the whole network.
MAX_FROM_EDGE: Final = 10_000
MAX_FROM_EDGE_BYTES: Final = 4 << 20
MAX_FROM_INTERIOR: Final = 100_000
MAX_FROM_INTERIOR_BYTES: Final = 64 << 20
# Longest key, in octets; the same as between interior routers.
LONGEST_KEY: Final = 8192
# Refused keys are logged again each time their number has grown by this factor.
LOG_FACTOR: Final = 10

# Memory of a token of a pattern in addition to its text, and the number of copies of a key's text:
# as received, as a pattern, in tokens, and as advertised to others.
TOKEN_BYTES: Final = 600
TIMES_KEPT: Final = 5

Tell = Callable[[Connection, Message], None]
TellAll = Callable[[Iterable[Connection], Message], None]


def route_bytes(key: str) -> int:
    """Return how many octets to charge to a peer for advertising a link route with this key."""
    tokens = min(MAX_TOKENS, 1 + key.count("/") + key.count("."))
    return account.ROUTE_BYTES + TOKEN_BYTES * tokens + TIMES_KEPT * account.text_bytes(key)


class AdvertisedRoutes:
    """Set of link routes that the peer of an uplink has advertised.

    While the uplink is active, each route has an outlet, by which links are forwarded to the peer.
    """

    def __init__(self, link_routes: LinkRoutes, connection: Connection, router: str) -> None:
        self.connection = connection
        self.router = router
        # the advertised keys; None until the first message
        self.keys: ListedTable[str, tuple[str, str]] | None = None
        self.is_open = False
        # number of keys that were refused, or ignored as too many
        self.refused = 0
        self._said_at = 1
        self._octets = 0
        self._link_routes = link_routes
        # keys with an outlet, and keys whose outlet may have to be opened or closed
        self._opened: ListedTable[str, None] = ListedTable()
        self._due: ListedTable[str, tuple[str, str]] = ListedTable()
        # whether all keys are due
        self._once_more = False
        self._is_going_on = False
        self._is_over = False
        # called when the outlets of all keys are up to date
        self.settled: Callable[[], None] = lambda: None

    def change(self, added: Iterable[str], removed: Iterable[str]) -> None:
        """Add and remove link routes by key, as the peer advertises them.

        Raises `AmqpError` for an invalid key, and if an edge advertises too many. If an interior
        does, the excess is ignored, because the edge needs its uplink.
        """
        keys = self.keys = ListedTable() if self.keys is None else self.keys
        for key in removed:
            route = keys.pop(key, None)
            if route is None:
                continue
            self._count(-1, key)
            if key in self._opened:
                self._due[key] = route
        for key in added:
            route = parse_key(key)
            octets = len(key.encode())
            if route is None or octets > LONGEST_KEY:
                raise AmqpError(
                    Condition.INVALID_FIELD,
                    f"{key[:64]!r} is not the key of a link route of at most {LONGEST_KEY} octets",
                )
            if key in keys:
                continue
            if self._has_no_room(octets):
                self.refused += 1
                continue
            keys[key] = route
            self._count(1, key)
            if self.is_open:
                self._due[key] = route
        self._update_outlets()

    def _count(self, by: int, key: str) -> None:
        """Charge the peer for an added link route (`by` is 1), or release the charge (-1)."""
        self._octets += by * len(key.encode())
        self.connection.account.charge(account.ROUTES, by * route_bytes(key))

    def _has_no_room(self, octets: int) -> bool:
        """Return whether an interior advertises too much; raise `AmqpError` if an edge does."""
        assert self.keys is not None
        if self.connection.is_client:
            return (
                len(self.keys) >= MAX_FROM_INTERIOR
                or self._octets + octets > MAX_FROM_INTERIOR_BYTES
            )
        if len(self.keys) < MAX_FROM_EDGE and self._octets + octets <= MAX_FROM_EDGE_BYTES:
            return False
        reason = (
            f"the edge advertises more than {MAX_FROM_EDGE} link routes, which is the limit"
            if len(self.keys) >= MAX_FROM_EDGE
            else f"the link routes that the edge advertises have more than {MAX_FROM_EDGE_BYTES} "
            "octets, which is the limit"
        )
        raise AmqpError(Condition.RESOURCE_LIMIT_EXCEEDED, reason)

    def should_log(self) -> bool:
        """Return whether the count of refused link routes has grown enough to be logged again."""
        if self.refused < self._said_at:
            return False
        self._said_at = self.refused * LOG_FACTOR
        return True

    def use(self, *, is_open: bool) -> None:
        """Start or stop forwarding links by these routes, in later turns if there are many."""
        if self.is_open == is_open:
            return
        self.is_open = is_open
        # this may be called several times before the last outlet is open
        self._once_more = bool(self.keys)
        self._update_outlets()

    def leave(self) -> None:
        """Stop forwarding links to the peer, whose connection has ended."""
        self._is_over = True
        self.use(is_open=False)
        self._update_outlets()

    @property
    def is_behind(self) -> bool:
        """Return whether forwarding is still to be started or stopped for some link routes."""
        return self._is_going_on

    def _update_outlets(self) -> None:
        """Start or stop forwarding by changed link routes, in later turns if there are many."""
        if not self._is_going_on and (self._due or self._once_more or self._is_over):
            self._is_going_on = True
            self.connection.turn.deferred.run_steps(self._steps())

    def _steps(self) -> Iterator[object]:
        while self._due or self._once_more:
            every = list(self.keys or ()) if self._once_more else []
            self._once_more = False
            for key in every:
                route = None if self.keys is None else self.keys.get(key)
                # a key that was removed meanwhile is due
                if route is not None:
                    self._update_outlet(key, route)
                yield None
            for key in list(self._due):
                route = self._due.pop(key, None)
                if route is not None:
                    self._update_outlet(key, route)
                yield None
        self._is_going_on = False
        self.settled()
        if self._is_over and self.keys:
            yield from pop_items(self.keys)

    def _update_outlet(self, key: str, route: tuple[str, str]) -> None:
        is_wanted = self.is_open and self.keys is not None and key in self.keys
        if is_wanted == (key in self._opened):
            return
        if is_wanted:
            self._opened[key] = None
            outlet = UplinkOutlet(self.router, self.connection)
            self._link_routes.open_far(*route, outlet)
        else:
            del self._opened[key]
            self._link_routes.close_far(*route, self.connection)


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

    def received(self, connection: Connection, message: Routes) -> None:
        """Update the link routes of an interior; raise `AmqpError` for an invalid key."""
        advertised = self.advertised[connection]
        advertised.change(message.added, message.removed)
        if advertised.should_log():
            assert advertised.keys is not None
            event = RoutesLeftOut(advertised.router, advertised.refused, len(advertised.keys))
            self.forwarder.observer.event_received(connection, event)
        self._update()

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

    def received(self, connection: Connection, message: Routes) -> None:
        """Update the link routes of an edge; raise `AmqpError` if a key is invalid or in excess."""
        advertised = self.advertised[connection]
        added = []
        for key in message.added:
            route = parse_key(key)
            if route is not None and self._is_ours(address_name(route[1])):
                # these names have a fixed location, no matter what an edge advertises
                advertised.refused += 1
                if advertised.should_log():
                    event = RouteRefused(advertised.router, key, advertised.refused)
                    self.forwarder.observer.event_received(connection, event)
            else:
                added.append(key)
        advertised.change(added, message.removed)

    def _is_ours(self, name: str) -> bool:
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
        if not self._due:
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
