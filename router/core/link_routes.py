"""Link routes: to which container a peer's link is forwarded, by the address that it names.

What a route is for is configured, or asked for by the container itself; which connections lead to
its containers, `router.control.link_routes` says. Of several routes that match an address the most
specific one speaks, as with treatments; several with one pattern are one route with the containers
of all of them (docs/decisions/0048-link-routes.md). None of this runs once a message.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import attrs

from router.amqp.performatives import Coordinator
from router.amqp.types import Symbol
from router.core.patterns import PatternTree, pattern_of
from router.core.route_peers import ASKED_ADDRESS, comes_round, coordinator_names, is_same
from router.core.table import AddressTable, address_name, path_of
from router.engine.link import IncomingLink
from router.engine.states import ConnectionState
from router.errors import AmqpError, Scope

IN = "in"
OUT = "out"
# the address that a link to a transaction coordinator is routed by
COORDINATOR = "$coordinator"
# Dispatch's, as are the words, which programs compare.
NO_ROUTE = "qd:no-route-to-dest"
NO_ROUTE_WORDS = "No route to the destination node"
# A container that refused a link, or ended one with an error, is asked last for so long.
REST_S = 5.0


class Rule(NamedTuple):
    """One link route as somebody asked for it.

    `direction` is the router's: links that peers send on (`in`) or receive on (`out`). Its
    containers are those of `container_id`, or at the listener or connector named `connection`, or
    the one whose `scope` it is: the connection that asked for it. The address at the container is
    without `del_prefix`, where it begins with that, and then behind `add_prefix`.
    """

    name: str
    direction: str
    is_prefix: bool
    pattern: str
    container_id: str | None = None
    connection: str | None = None
    add_prefix: str = ""
    del_prefix: str = ""
    scope: Any = None

    @property
    def whole_pattern(self) -> str:
        """The pattern that says the same as the prefix, if it is one."""
        return pattern_of(self.pattern) if self.is_prefix else self.pattern

    def outward(self, text: str) -> str:
        """The address at the container of what a peer calls `text`."""
        path = path_of(text)
        if self.del_prefix and path.startswith(self.del_prefix) and path != self.del_prefix:
            path = path[len(self.del_prefix) :]
        return self.add_prefix + path

    def inward(self, text: str) -> str:
        """What a peer calls the address that is `text` at the container."""
        if self.add_prefix and text.startswith(self.add_prefix) and text != self.add_prefix:
            text = text[len(self.add_prefix) :]
        return self.del_prefix + text


@attrs.define(eq=False)
class Lane:
    """A connection to a container, as one link route uses it."""

    connection: Any
    links: int = 0
    # when it was chosen last, in the order of all choices
    chosen: int = 0
    # when it refused a link last, or ended one with an error, by the turn's clock
    refused_at: float = float("-inf")

    @property
    def is_open(self) -> bool:
        """Whether links can be attached over it."""
        return bool(self.connection.state == ConnectionState.OPENED)

    def rests(self, now: float) -> bool:
        """Whether it refused a link of late."""
        return now - self.refused_at < REST_S


@attrs.define(eq=False)
class Way:
    """A link route that there is: its rule, and its containers' connections."""

    rule: Rule
    lanes: dict[Any, Lane] = attrs.Factory(dict)
    # links that were forwarded, and of these those that their containers refused
    placed: int = 0
    refused: int = 0
    # in words, why a container refused or ended one last; empty where none has
    last_refusal: str = ""
    last_refusal_at: float = 0.0

    @property
    def links(self) -> int:
        """How many links are forwarded by it now."""
        return sum(lane.links for lane in self.lanes.values())

    @property
    def is_active(self) -> bool:
        """Whether a container of it is there."""
        return bool(self.lanes)


@attrs.frozen(eq=False)
class Placed:
    """Where a peer's link was forwarded to: `asked` is what it called the address, `sent` what the
    container was told; both are None where there is none.
    """

    route: Route
    way: Way
    lane: Lane
    asked: str | None
    sent: str | None
    is_coordinator: bool


class Route:
    """All link routes of one pattern in one direction."""

    def __init__(self, owner: LinkRoutes, pattern: str, direction: str) -> None:
        self.pattern = pattern
        self.direction = direction
        self.ways: list[Way] = []
        self._owner = owner

    @property
    def containers(self) -> int:
        """How many connections lead to its containers."""
        return len({connection for way in self.ways for connection in way.lanes})

    def lanes(self) -> Iterator[tuple[Way, Lane]]:
        """What a link could be forwarded by now."""
        for way in self.ways:
            for lane in way.lanes.values():
                if lane.is_open:
                    yield way, lane

    def next_lane(self, now: float) -> tuple[Way, Lane] | None:
        """What the next link of a client without others would be forwarded by; None without any."""
        return min(
            self.lanes(),
            key=lambda each: (each[1].rests(now), each[1].links, each[1].chosen),
            default=None,
        )

    def place(self, link: Any) -> tuple[Any, str | None]:
        """Choose a container for a peer's link: its connection, and the address to send on.

        The address is None where the link names none. The link counts from now on as forwarded,
        until `LinkRoutes.left`. Raises `AmqpError` where no container is there.
        """
        return self._owner.place(self, link)


class LinkRoutes:
    """All link routes of a router.

    Whoever forwards a link asks `route_of` and `Route.place`, says `refused` if the container has
    refused it or `ended` if it has ended it with an error, and in any case `left`, once, when it is
    over.
    """

    def __init__(self, table: AddressTable, turn: Any) -> None:
        # whether termini at containers may outlive the links that are forwarded there
        self.allows_resumable = True
        self._table = table
        self._turn = turn
        self._trees: dict[str, PatternTree[Route]] = {IN: PatternTree(), OUT: PatternTree()}
        self._routes: dict[tuple[str, str], Route] = {}
        self._placed: dict[Any, Placed] = {}
        # by a peer's connection: how many of its links, and of its coordinator links, are forwarded
        # over which connections
        self._links_of: dict[Any, Counter[Any]] = {}
        self._coordinators_of: dict[Any, Counter[Any]] = {}
        self._choices = 0
        # links that were forwarded, of these those that were refused, and those that no container
        # was there for; they only grow
        self.forwarded = 0
        self.refusals = 0
        self.unplaced = 0

    # What there is.

    def __len__(self) -> int:
        return sum(len(route.ways) for route in self._routes.values())

    def routes(self) -> Iterator[Route]:
        """The routes, each with what all link routes of its pattern have."""
        return iter(list(self._routes.values()))

    def ways(self) -> Iterator[Way]:
        """The link routes."""
        return (way for route in self.routes() for way in route.ways)

    def add(self, rule: Rule) -> Way:
        """From now on links that match are forwarded, though there is no container yet."""
        key = _key(rule)
        route = self._routes.get(key)
        if route is None:
            route = self._routes[key] = Route(self, rule.whole_pattern, rule.direction)
            self._trees[rule.direction].add(route.pattern, route)
        way = Way(rule)
        route.ways.append(way)
        return way

    def remove(self, way: Way) -> None:
        """From now on no link is forwarded by this one; those that are stay."""
        key = _key(way.rule)
        route = self._routes[key]
        route.ways.remove(way)
        if not route.ways:
            del self._routes[key]
            self._trees[route.direction].remove(route.pattern)

    def open(self, way: Way, connection: Any) -> None:
        """A connection leads to a container of this link route."""
        if connection not in way.lanes:
            way.lanes[connection] = Lane(connection)

    def close(self, way: Way, connection: Any) -> None:
        """A connection does so no more."""
        way.lanes.pop(connection, None)

    # Whose a link is.

    def route_of(self, link: Any) -> Route | None:
        """The route of a peer's attach; None where its address is this router's business.

        Raises `AmqpError` for a dynamic node that is to be at a container where none matches.
        """
        settings = link.session.connection.settings
        if settings.is_own:
            return None
        is_sender = isinstance(link, IncomingLink)
        terminus = link.remote_attach.target if is_sender else link.remote_attach.source
        if terminus is None:
            return None
        if isinstance(terminus, Coordinator):
            return self._coordinator(link) if self._routes else None
        if terminus.dynamic:
            asked = (terminus.dynamic_node_properties or {}).get(ASKED_ADDRESS)
            if not isinstance(asked, str):
                return None
            route = self._match(address_name(asked), is_sender=is_sender)
            if route is None:
                raise _no_route(asked)
            return route
        if not self._routes or not terminus.address:
            return None
        return self.find(terminus.address, is_sender=is_sender)

    def find(self, text: str, *, is_sender: bool) -> Route | None:
        """The route of peers' senders to this address, or receivers from it, if there is one.

        An address that is redirected has none, nor has a node that is here, unless a route names
        that very one.
        """
        if not self._routes:
            return None
        name = address_name(text)
        route = self._match(name, is_sender=is_sender)
        if route is None:
            return None
        if self._table.is_here_alone(name) and address_name(route.pattern) != name:
            return None
        if self._table.place_of(name, is_sender=is_sender) is not None:
            return None
        return route

    def _match(self, name: str, *, is_sender: bool) -> Route | None:
        return self._trees[IN if is_sender else OUT].match(name)

    def _coordinator(self, link: Any) -> Route | None:
        """The route to the coordinator that a link is for: there may be one for what its peer says,
        or is known by, besides the one for all others.
        """
        usual = self._match(COORDINATOR, is_sender=True)
        for name in coordinator_names(link):
            route = self._match(f"{COORDINATOR}/{name}", is_sender=True)
            if route is not None and route is not usual:
                return route
        return usual

    # Links that are forwarded.

    def place(self, route: Route, link: Any) -> tuple[Any, str | None]:
        """Choose a container for a link; see `Route.place`.

        Back to where it comes from it goes if there is nobody else, and once. The transaction of a
        peer is at one container, so its links go there if they can. Otherwise a container that
        refused of late comes last, then the one with the fewest links is taken, and of these the
        one that was not chosen for longest.
        """
        peer = link.session.connection
        is_sender = isinstance(link, IncomingLink)
        terminus = link.remote_attach.target if is_sender else link.remote_attach.source
        is_coordinator = isinstance(terminus, Coordinator)
        links = self._links_of.get(peer, _NONE)
        coordinators = self._coordinators_of.get(peer, _NONE)
        now = self._turn.now

        def rank(candidate: tuple[Way, Lane]) -> tuple[bool, int, bool, int, int, int]:
            lane = candidate[1]
            return (
                is_same(lane.connection, peer),
                0 if is_coordinator else -coordinators[lane.connection],
                lane.rests(now),
                -links[lane.connection] if is_coordinator else 0,
                lane.links,
                lane.chosen,
            )

        asked = None if is_coordinator else terminus.address
        way, lane = min(route.lanes(), key=rank, default=(None, None))
        if way is None or lane is None or comes_round(link, lane.connection):
            self.unplaced += 1
            raise _no_route(COORDINATOR if is_coordinator else asked)
        sent = None if asked is None else way.rule.outward(asked)
        self._placed[link] = Placed(route, way, lane, asked, sent, is_coordinator)
        self._choices += 1
        lane.chosen = self._choices
        lane.links += 1
        way.placed += 1
        self.forwarded += 1
        self._links_of.setdefault(peer, Counter())[lane.connection] += 1
        if is_coordinator:
            self._coordinators_of.setdefault(peer, Counter())[lane.connection] += 1
        return lane.connection, sent

    @property
    def links(self) -> int:
        """How many links are forwarded now."""
        return len(self._placed)

    def placed(self, link: Any) -> Placed | None:
        """Where a peer's link was forwarded to, while it is."""
        return self._placed.get(link)

    def placed_by(self, route: Route) -> Iterator[tuple[Any, Placed]]:
        """The links that are forwarded by a route, and where to."""
        return ((link, placed) for link, placed in self._placed.items() if placed.route is route)

    def told(self, link: Any, text: str | None) -> str | None:
        """What to tell a peer of the address that the container has answered with."""
        placed = self._placed.get(link)
        if placed is None or text is None or text == placed.sent:
            return text if placed is None or text is None else placed.asked
        return placed.way.rule.inward(text)

    def refused(self, link: Any, condition: str, description: str = "") -> None:
        """The container has refused a link; it is asked last for a while."""
        placed = self._placed.get(link)
        if placed is not None:
            placed.way.refused += 1
            self.refusals += 1
            self.ended(link, condition, description)

    def ended(self, link: Any, condition: str, description: str = "") -> None:
        """The container has ended a link with an error, and is asked last for a while, too: whoever
        had the link is about to attach again, and not there.
        """
        placed = self._placed.get(link)
        if placed is not None:
            placed.way.last_refusal = f"{condition}: {description}" if description else condition
            placed.way.last_refusal_at = self._turn.now
            placed.lane.refused_at = self._turn.now

    def left(self, link: Any) -> None:
        """A link is over that was forwarded; nothing happens where it was not."""
        placed = self._placed.pop(link, None)
        if placed is None:
            return
        placed.lane.links -= 1
        peer, connection = link.session.connection, placed.lane.connection
        _subtract(self._links_of, peer, connection)
        if placed.is_coordinator:
            _subtract(self._coordinators_of, peer, connection)


_NONE: Counter[Any] = Counter()


def _subtract(counts: dict[Any, Counter[Any]], peer: Any, connection: Any) -> None:
    mine = counts[peer]
    mine[connection] -= 1
    if not mine[connection]:
        del mine[connection]
        if not mine:
            del counts[peer]


def _key(rule: Rule) -> tuple[str, str]:
    """What is equal for rules that match the same."""
    return rule.direction, rule.whole_pattern.strip("/.").replace(".", "/")


def _no_route(text: str | None) -> AmqpError:
    info = None if text is None else {Symbol("address"): text}
    return AmqpError(NO_ROUTE, NO_ROUTE_WORDS, Scope.LINK, info)
