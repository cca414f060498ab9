"""Link routes: find the container to which a peer's link is forwarded, by the link's address.

A route is configured, requested by a container itself, or announced by another router that has a
container. `router.control.link_routes` knows the connections to this router's containers,
`remote_link_routes` the other routers with containers, and `control.edge.routes` the uplinks that
lead to containers. Of several routes that match an address the most specific one applies. Link
routes with the same pattern form one route (docs/decisions/0048-link-routes.md). Nothing here runs
per message.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from router.amqp.performatives import Coordinator
from router.amqp.types import Symbol
from router.core.addresses import tenants
from router.core.addresses.access import tenant_of
from router.core.addresses.link_origins import (
    ASKED_ADDRESS,
    Origin,
    coordinator_names,
    is_loop,
    is_same,
    origin_of,
)
from router.core.addresses.table import AddressTable, address_name
from router.core.link_routes.placement import Placement
from router.core.link_routes.route_outlets import (
    FarOutlet,
    LinkRoute,
    LinkRouteRule,
    RouteDestination,
    UplinkOutlet,
)
from router.core.model.patterns import PatternTree
from router.core.routers.names import COORDINATOR
from router.engine.link import IncomingLink
from router.errors import AmqpError, Scope

if TYPE_CHECKING:
    from router.engine.connection import Connection
    from router.engine.link import Link
    from router.engine.outbox import Turn

IN = "in"
OUT = "out"
# prefixes of names that contain the id of the router which has the node
TOPOLOGICAL = ("_topo/", "_edge/")
# destination for a link; the link route is None if the container is at another router
Candidate = tuple[LinkRoute | None, RouteDestination | FarOutlet | UplinkOutlet]
# function that says whether a link may go to another router
Allows = Callable[[FarOutlet | UplinkOutlet], bool]
# Dispatch's condition and description, which programs compare.
NO_ROUTE = "qd:no-route-to-dest"
NO_ROUTE_WORDS = "No route to the destination node"


class Route:
    """Set of all link routes that share a pattern and a direction."""

    def __init__(self, owner: LinkRoutes, pattern: str, direction: str) -> None:
        self.pattern = pattern
        self.direction = direction
        # its link routes, including those of the next edition and of earlier ones
        self.all_link_routes: dict[LinkRoute, None] = {}
        # outlets to other routers that have containers, by place
        self.far: dict[Connection | str, FarOutlet | UplinkOutlet] = {}
        self._owner = owner

    @property
    def link_routes(self) -> Iterator[LinkRoute]:
        """Return the link routes that exist in the current edition (`LinkRoutes.edition`)."""
        now = self._owner.edition
        return (each for each in self.all_link_routes if each.since <= now < each.until)

    def exists(self) -> bool:
        """Return whether this router or another one has a link route with this pattern."""
        return bool(self.far) or any(True for _ in self.link_routes)

    @property
    def containers(self) -> int:
        """Return how many connections lead to containers of the route, or to edges with them."""
        edges = sum(
            isinstance(outlet, UplinkOutlet) and outlet.leads_down for outlet in self.far.values()
        )
        return edges + len({where for each in self.link_routes for where in each.outlets})

    def outlets(self) -> Iterator[tuple[LinkRoute, RouteDestination]]:
        """Yield the open outlets to containers at this router, each with its link route."""
        for link_route in self.link_routes:
            for outlet in link_route.outlets.values():
                if outlet.is_open:
                    yield link_route, outlet

    def far_outlets(self) -> Iterator[tuple[None, FarOutlet | UplinkOutlet]]:
        """Yield the open outlets to containers at other routers."""
        for outlet in self.far.values():
            if outlet.is_open:
                yield None, outlet

    def next_outlet(self, now: float) -> Candidate | None:
        """Return the outlet that a new client's first link would get; None if no outlet is open."""
        candidates: list[Candidate] = [*self.outlets(), *self.far_outlets()]
        return min(
            candidates,
            key=lambda at: (at[1].is_backing_off(now), at[1].cost, at[1].links, at[1].chosen),
            default=None,
        )

    def place(
        self, link: Link, origin: Origin | None = None, allows: Allows = lambda _: True
    ) -> Placement:
        """Choose a container for a peer's link; `origin` is the client if it is at another router.

        `allows` returns whether an outlet to another router may be chosen. The link counts as
        forwarded until `LinkRoutes.left`. Raises `AmqpError` if there is no container.
        """
        return self._owner.place(self, link, origin, allows)


class LinkRoutes:
    """Table of all link routes of a router, and of the links that they forward.

    Forwarding code calls `route_of` and `Route.place`, then `refused` if the container refuses the
    link, `ended` if the container ends it with an error, and `left` when the link has ended in any
    way.
    """

    def __init__(self, table: AddressTable, turn: Turn) -> None:
        # The number of the configuration of link routes in force. Link routes of the next one may
        # be added before `begin_edition`, which puts all of them into force at the same moment.
        self.edition = 0
        # whether termini at containers may outlive the links that are forwarded there
        self.allows_resumable = True
        self._table = table
        self._turn = turn
        # called for routes that have gained or lost a container
        self.watchers: list[Callable[[Route], None]] = []
        self._trees: dict[str, PatternTree[Route]] = {IN: PatternTree(), OUT: PatternTree()}
        self._routes: dict[tuple[str, str], Route] = {}
        self._placed: dict[Link, Placement] = {}
        # how many links of each client, and how many of its links to coordinators, are forwarded,
        # by connection or router
        self._links_of: dict[object, Counter[object]] = {}
        self._coordinators_of: dict[object, Counter[object]] = {}
        self._choices = 0
        # how many links were forwarded, how many of these were refused, and how many links found no
        # container; these counts only grow
        self.forwarded = 0
        self.refusals = 0
        self.unplaced = 0

    # The link routes.

    def __len__(self) -> int:
        return sum(1 for _ in self.each_link_route())

    def routes(self) -> Iterator[Route]:
        """Return all routes; each holds the link routes with its pattern and direction."""
        return (route for route in list(self._routes.values()) if route.exists())

    def each_link_route(self) -> Iterator[LinkRoute]:
        """Return all link routes of the current edition."""
        return (each for route in self.routes() for each in route.link_routes)

    def add(self, rule: LinkRouteRule, *, is_next: bool = False) -> LinkRoute:
        """Add a link route; with `is_next` it takes effect only in the next edition."""
        link_route = LinkRoute(rule, since=self.edition + is_next)
        self._enter(rule.direction, rule.whole_pattern).all_link_routes[link_route] = None
        return link_route

    def remove(self, link_route: LinkRoute) -> None:
        """Remove a link route; links that it has already forwarded are kept."""
        route = self._route(link_route)
        del route.all_link_routes[link_route]
        self._changed(route)
        self._leave(route)

    def begin_edition(self) -> None:
        """Begin the next edition; the caller reports the changes by `report_new` and `remove`."""
        self.edition += 1

    def report_new(self, link_route: LinkRoute) -> None:
        """Report a link route of the new edition to the watchers, if it has a container."""
        if link_route.outlets and link_route.until > self.edition:
            self._changed(self._route(link_route))

    def _route(self, link_route: LinkRoute) -> Route:
        return self._routes[_key(link_route.rule.direction, link_route.rule.whole_pattern)]

    def open(self, link_route: LinkRoute, connection: Connection) -> None:
        """Add a connection that leads to a container of a link route."""
        if connection not in link_route.outlets:
            link_route.outlets[connection] = RouteDestination(connection)
            self._changed(self._route(link_route))

    def close(self, link_route: LinkRoute, connection: Connection) -> None:
        """Remove a connection that no longer leads to a container of a link route."""
        if link_route.outlets.pop(connection, None) is not None:
            route = self._routes.get(_key(link_route.rule.direction, link_route.rule.whole_pattern))
            if route is not None:
                self._changed(route)

    def open_far(self, direction: str, pattern: str, outlet: FarOutlet | UplinkOutlet) -> None:
        """Add an outlet to another router if it is new, and increase the outlet's `key_count`."""
        route = self._enter(direction, pattern)
        route.far.setdefault(outlet.place, outlet).key_count += 1
        self._changed(route)

    def close_far(self, direction: str, pattern: str, place: Connection | str) -> None:
        """Remove the outlet to `place`, unless another key of that router announces the route."""
        route = self._routes[_key(direction, pattern)]
        outlet = route.far[place]
        outlet.key_count -= 1
        if not outlet.key_count:
            del route.far[place]
            self._changed(route)
            self._leave(route)

    def route_by(self, direction: str, pattern: str) -> Route | None:
        """Return the route with this pattern and direction, or None if there is none."""
        route = self._routes.get(_key(direction, pattern))
        return route if route is not None and route.exists() else None

    def _enter(self, direction: str, pattern: str) -> Route:
        key = _key(direction, pattern)
        route = self._routes.get(key)
        if route is None:
            route = self._routes[key] = Route(self, pattern, direction)
            self._trees[direction].add(pattern, route)
        return route

    def _leave(self, route: Route) -> None:
        if not route.all_link_routes and not route.far:
            del self._routes[_key(route.direction, route.pattern)]
            self._trees[route.direction].remove(route.pattern)

    def _changed(self, route: Route) -> None:
        for watcher in self.watchers:
            watcher(route)

    # The route of a link.

    def route_of(self, link: Link) -> Route | None:
        """Return the route for a peer's attach, or None if the link is not forwarded.

        Raises `AmqpError` if the peer asks for a dynamic node at a container and no route matches.
        """
        is_sender = isinstance(link, IncomingLink)
        terminus = link.remote_attach.target if is_sender else link.remote_attach.source
        if terminus is None or link.session.connection.settings.is_own:
            return None
        if isinstance(terminus, Coordinator):
            return self._coordinator(link) if self._routes else None
        if terminus.dynamic:
            asked = (terminus.dynamic_node_properties or {}).get(ASKED_ADDRESS)
            if not isinstance(asked, str):
                return None
            name = address_name(self._inside(link, asked))
            route = self._match(name, is_sender=is_sender, link=link)
            if route is None:
                raise no_route(asked)
            return route
        if not self._routes or not terminus.address:
            return None
        return self.find(self._inside(link, terminus.address), is_sender=is_sender, link=link)

    def _inside(self, link: Link, text: str) -> str:
        """Return the router's name for an address that a client uses (`tenants.inside`)."""
        is_sender = isinstance(link, IncomingLink)
        return tenants.inside(self._table, link.session.connection, text, is_sender=is_sender)

    def find(self, text: str, *, is_sender: bool, link: Link | None = None) -> Route | None:
        """Return the route for links to or from an address, or None if there is none.

        A redirected address has no route. For a node that exists only at this router, the pattern
        must be exactly the node's name. For a name with a prefix in `TOPOLOGICAL`, the pattern must
        have such a prefix, too.
        """
        if not self._routes:
            return None
        name = address_name(text)
        route = self._match(name, is_sender=is_sender, link=link)
        if route is None:
            return None
        if self._table.is_local_only(name) and address_name(route.pattern) != name:
            return None
        if is_topological(name) and not is_topological(address_name(route.pattern)):
            return None
        tenant = None if link is None else tenant_of(link.session.connection)
        elsewhere = self._table.redirect_for(name, is_sender=is_sender, tenant=tenant)
        return route if elsewhere is None else None

    def _match(self, name: str, *, is_sender: bool, link: Link | None = None) -> Route | None:
        def counts(route: Route) -> bool:
            return route.exists() and (link is None or tenants.may_use(link, route.pattern))

        return self._trees[IN if is_sender else OUT].match(name, counts)

    def _coordinator(self, link: Link) -> Route | None:
        """Return the route for a link to a transaction coordinator; None if there is none."""
        usual = self._match(COORDINATOR, is_sender=True)
        for name in coordinator_names(link):
            route = self._match(f"{COORDINATOR}/{name}", is_sender=True)
            if route is None or route is usual:
                continue
            if tenants.may_use(link, route.pattern.lstrip("/").removeprefix(f"{COORDINATOR}/")):
                return route
        return usual

    # Links that are forwarded.

    def place(self, route: Route, link: Link, guest: Origin | None, allows: Allows) -> Placement:
        """Choose a container for a link; see `Route.place`.

        A link goes back to the container that it comes from only if there is no other container,
        and only once. A client's links prefer the container of the client's transaction
        coordinator. Containers that refused a link lately come last. Of the others, the nearest are
        preferred, then those with the fewest links, then the one chosen least recently.
        """
        origin = guest or origin_of(link)
        is_sender = isinstance(link, IncomingLink)
        terminus = link.remote_attach.target if is_sender else link.remote_attach.source
        is_coordinator = isinstance(terminus, Coordinator)
        links = self._links_of.get(origin.key, _NONE)
        coordinators = self._coordinators_of.get(origin.key, _NONE)
        now = self._turn.now

        def rank(candidate: Candidate) -> tuple[bool, int, bool, int, int, int, int]:
            outlet = candidate[1]
            return (
                is_same(outlet.connection, origin),
                0 if is_coordinator else -coordinators[outlet.place],
                outlet.is_backing_off(now),
                -links[outlet.place] if is_coordinator else 0,
                outlet.cost,
                outlet.links,
                outlet.chosen,
            )

        asked = getattr(terminus, "address", None)
        candidates: list[Candidate] = [*route.outlets()]
        candidates += [each for each in route.far_outlets() if allows(each[1])]
        link_route, outlet = min(candidates, key=rank, default=(None, None))
        me = link.session.connection.settings.container_id
        if outlet is None or is_loop(me, origin, outlet.connection):
            self.unplaced += 1
            raise no_route(COORDINATOR if is_coordinator else asked)
        sent = None if asked is None else self._inside(link, asked)
        if sent is not None and link_route is not None:
            sent = link_route.rule.outward(sent)
        placed = Placement(
            route, link_route, outlet, outlet.connection, origin, asked, sent, is_coordinator
        )
        self._placed[link] = placed
        self._choices += 1
        outlet.chosen = self._choices
        outlet.links += 1
        if link_route is not None:
            link_route.placed += 1
        self.forwarded += 1
        self._links_of.setdefault(origin.key, Counter())[outlet.place] += 1
        if is_coordinator:
            self._coordinators_of.setdefault(origin.key, Counter())[outlet.place] += 1
        return placed

    @property
    def links(self) -> int:
        """Return how many links are forwarded now."""
        return len(self._placed)

    def placed(self, link: Link) -> Placement | None:
        """Return where a peer's link is forwarded to; None if it is not forwarded."""
        return self._placed.get(link)

    def placed_by(self, route: Route) -> Iterator[tuple[Link, Placement]]:
        """Return the links that are forwarded by a route, with their placements."""
        return ((link, placed) for link, placed in self._placed.items() if placed.route is route)

    def peer_address(self, link: Link, text: str | None) -> str | None:
        """Translate `text`, an address in the container's answer, to the peer's address."""
        placed = self._placed.get(link)
        if placed is None or text is None or text == placed.sent:
            return text if placed is None or text is None else placed.asked
        if placed.link_route is not None:
            text = placed.link_route.rule.inward(text)
        return tenants.outside(link.session.connection, text)

    def refused(self, link: Link, condition: str, description: str = "") -> None:
        """Note that the container has refused a link; choose this container last for a while."""
        placed = self._placed.get(link)
        if placed is not None:
            if placed.link_route is not None:
                placed.link_route.refused += 1
            self.refusals += 1
            self.ended(link, condition, description)

    def ended(self, link: Link, condition: str, description: str = "") -> None:
        """Note that the container has ended a link with an error; choose it last for a while."""
        placed = self._placed.get(link)
        if placed is not None:
            if placed.link_route is not None:
                why = f"{condition}: {description}" if description else condition
                placed.link_route.last_refusal = why
                placed.link_route.last_refusal_at = self._turn.now
            placed.outlet.refused_at = self._turn.now

    def left(self, link: Link) -> None:
        """Remove a forwarded link that has ended; do nothing for a link that is not forwarded."""
        placed = self._placed.pop(link, None)
        if placed is None:
            return
        placed.outlet.links -= 1
        client, place = placed.origin.key, placed.outlet.place
        _subtract(self._links_of, client, place)
        if placed.is_coordinator:
            _subtract(self._coordinators_of, client, place)


_NONE: Counter[object] = Counter()


def _subtract(counts: dict[object, Counter[object]], client: object, place: object) -> None:
    mine = counts[client]
    mine[place] -= 1
    if not mine[place]:
        del mine[place]
        if not mine:
            del counts[client]


def _key(direction: str, pattern: str) -> tuple[str, str]:
    """Return the key of a route; patterns that differ only in separators have the same key."""
    return direction, pattern.strip("/.").replace(".", "/")


def is_topological(name: str) -> bool:
    """Return whether a name has one of the prefixes in `TOPOLOGICAL`."""
    return name.startswith(TOPOLOGICAL)


def no_route(text: str | None) -> AmqpError:
    """Return the error for a link whose address no container serves."""
    info = None if text is None else {Symbol("address"): text}
    return AmqpError(NO_ROUTE, NO_ROUTE_WORDS, Scope.LINK, info)
