"""Routed links on the way to a container at this router, or at another router of the network.

The client's router finds a route and chooses a container. If the container is at another router,
the attach goes to the next router on the cheapest path, and so on, until the container's router
attaches the link to the container. Each hop is a `RoutedLink`, and the container's answer comes
back over all hops. A router passes a link on only if this router is nearer to the container than
the router that attached the link, so that no link loops, even if routers disagree about the network
(docs/decisions/0064).

An edge router and its interior router do the same for a single hop. The interior router chooses
containers for links from an edge as for links of its own clients, but never at that edge. Links
that reach an edge go only to the edge's own containers (docs/decisions/0072). Nothing here runs per
message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from router.amqp.performatives import Attach, Error
from router.core.addresses.link_names import ForwardedName
from router.core.addresses.link_origins import Origin
from router.core.link_routes import remote_link_routes, routed_links
from router.core.link_routes.link_routes import NO_ROUTE, Allows, no_route
from router.core.link_routes.route_outlets import FarOutlet, RouteDestination, UplinkOutlet
from router.core.link_routes.routed_attach import (
    ROUTE_CHANGED,
    RoutedAttach,
    client_key,
    invalid,
    is_routed_attach,
    read_routed_attach,
    route_changed,
    router_in_key,
)
from router.core.link_routes.routed_links import RoutedLink
from router.core.links import stealing
from router.core.routers.link_properties import CLIENT
from router.engine.link import IncomingLink, OutgoingLink
from router.engine.states import ConnectionState, LinkState
from router.errors import AmqpError, Scope

if TYPE_CHECKING:
    from router.core.link_routes.link_routes import Route
    from router.core.link_routes.placement import Placement
    from router.core.ports import Core
    from router.engine.connection import Connection
    from router.engine.link import Link

__all__ = ["attach_received", "forward", "is_routed_attach"]

# the role of listeners and connectors between an edge and an interior router
EDGE: Final = "edge"


class FirstHopLink(RoutedLink):
    """First hop of a link for which this router has chosen a container at another router.

    If that router can no longer be reached, or has no container, others are tried, each only once.
    `guest` is None if the link's client is connected to this router. Otherwise `guest` is the
    client, whose router tries other containers if this router finds none.
    """

    def __init__(
        self, peer: Link, frame: Attach, guest: Origin | None, tried: frozenset[object]
    ) -> None:
        super().__init__(peer, frame)
        self.guest = guest
        # the places of the outlets that have been tried
        self.tried = tried

    def over(self, forwarder: Core, error: Error | None, closed: bool) -> None:
        """Try another container if a router on the way has refused the link, or is lost."""
        is_changed = error is not None and error.condition == ROUTE_CHANGED
        if self.address is not None or self.is_lost or not (is_changed or self.has_no_peer(error)):
            super().over(forwarder, error, closed)
        elif not _go_elsewhere(forwarder, self):
            if self.guest is not None:
                self.refuse(forwarder, route_changed())
            elif is_changed:
                self.refuse(forwarder, no_route(_address_of(self.peer)))
            else:
                super().over(forwarder, error, closed)


def forward(forwarder: Core, link: Link, route: Route) -> None:
    """Pass a client's attach on to a container of the route; the container answers it.

    Raises `AmqpError` at link scope if the link cannot be forwarded.
    """
    routed_links.check_lifetime(forwarder, link)
    _place(forwarder, link, route, None, frozenset())
    link.is_routed = True
    forwarder.link_names.enter(link)


def _place(
    forwarder: Core, link: Link, route: Route, guest: Origin | None, tried: frozenset[object]
) -> RoutedLink:
    placed = route.place(link, guest, _allows(link, guest, tried))
    outlet = placed.outlet
    if isinstance(outlet, RouteDestination):
        return _attach_here(forwarder, link, placed)
    origin = guest
    if origin is None:
        key = client_key(forwarder.reach.me, link.session.connection.number)
        origin = attrs.evolve(placed.origin, key=key)
    properties = link.remote_attach.properties
    routed_attach = RoutedAttach(
        remote_link_routes.key_of(route), outlet.router, outlet.cost, origin, properties
    )
    frame = _outward(forwarder, link, routed_attach)
    frame = routed_links.with_address(link, frame, placed.sent)
    routed = FirstHopLink(link, frame, guest, tried | {outlet.place})
    routed.leads_to = outlet.router
    _begin(forwarder, routed, placed.connection)
    return routed


def _allows(link: Link, guest: Origin | None, tried: frozenset[object]) -> Allows:
    """Return a function that says whether a link may go to another router.

    The link never goes to a router that has been tried, or back to the edge of its client. A
    link that another router has attached (`guest` is not None) may go to an edge. It may go to an
    interior router only if an edge router has attached it.
    """
    came_by = link.session.connection
    comes_up = _is_edges(came_by)

    def allows(outlet: FarOutlet | UplinkOutlet) -> bool:
        if outlet.place in tried:
            return False
        if guest is None:
            # not back to the edge that attaches the link like any other client
            return outlet.place is not came_by
        if isinstance(outlet, FarOutlet):
            return comes_up
        return outlet.leads_down and outlet.router != router_in_key(guest.key)

    return allows


def _is_edges(connection: Connection) -> bool:
    """Return whether an edge router has opened this connection."""
    return connection.settings.role == EDGE and not connection.is_client


def _go_elsewhere(forwarder: Core, lost: FirstHopLink) -> bool:
    """Try another container for a link whose first hop is lost or was refused.

    Return whether another container was found.
    """
    link = lost.peer
    placed = forwarder.link_routes.placed(link)
    if link.state != LinkState.ATTACH_RCVD or placed is None:
        return False
    forwarder.link_routes.ended(link, ROUTE_CHANGED)
    forwarder.link_routes.left(link)
    try:
        routed = _place(forwarder, link, placed.route, lost.guest, lost.tried)
    except AmqpError:
        return False
    lost.is_lost = True
    routed.take_over_early_flow(lost)
    return True


def attach_received(forwarder: Core, link: Link) -> None:
    """Forward a routed link that another router has attached at this router.

    Raises `AmqpError` at link scope if the link cannot be forwarded from this router.
    """
    routed_attach = read_routed_attach(link.remote_attach)
    reach = forwarder.reach
    if routed_attach.destination == reach.me:
        _place_arrived(forwarder, link, routed_attach)
        return
    if link.session.connection.settings.role == EDGE:
        # an edge is never on the way to another router
        raise route_changed()
    path = reach.path(routed_attach.destination)
    connection = None if path is None else reach.connection(path.via)
    if (
        path is None
        or connection is None
        or connection is link.session.connection
        or connection.state != ConnectionState.OPENED
        or path.cost >= routed_attach.cost
    ):
        raise route_changed()
    routed_attach = attrs.evolve(routed_attach, cost=path.cost)
    routed = RoutedLink(link, _outward(forwarder, link, routed_attach))
    routed.leads_to = routed_attach.destination
    _begin(forwarder, routed, connection)
    link.is_routed = True


def _place_arrived(forwarder: Core, link: Link, routed_attach: RoutedAttach) -> None:
    """Choose a container for a routed link whose destination is this router.

    A link from an edge may go on to another router. Any other link goes to a container at this
    router or at an edge.
    """
    origin = routed_attach.origin
    connection = link.session.connection
    if _is_edges(connection) and router_in_key(origin.key) != connection.remote_open.container_id:
        raise invalid(CLIENT)
    parsed = remote_link_routes.parse_key(routed_attach.key)
    route = None if parsed is None else forwarder.link_routes.route_by(*parsed)
    if route is None or (route.direction == "in") is not isinstance(link, IncomingLink):
        raise route_changed()
    link.remote_attach = attrs.evolve(link.remote_attach, properties=routed_attach.properties)
    routed_links.check_lifetime(forwarder, link)
    try:
        _place(forwarder, link, route, origin, frozenset())
    except AmqpError as error:
        raise route_changed() if error.condition == NO_ROUTE else error from None
    link.is_routed = True


def _attach_here(forwarder: Core, link: Link, placed: Placement) -> RoutedLink:
    """Attach one of the router's own links to a container that is connected to this router."""
    origin: Origin = placed.origin
    frame = routed_links.with_address(link, link.remote_attach, placed.sent)
    frame = attrs.evolve(frame, name=origin.forwarded_name, handle=0)
    routed = RoutedLink(link, frame)
    try:
        _take_name(forwarder, routed, origin)
    except AmqpError:
        forwarder.link_routes.left(link)
        raise
    _begin(forwarder, routed, placed.connection)
    return routed


def _take_name(forwarder: Core, routed: RoutedLink, origin: Origin) -> None:
    """Reserve a routed link's name at the containers that are connected to this router.

    Another link that already has the name, for a client at any router, is closed as stolen. Raises
    `AmqpError` if the client may not steal that link.
    """
    link = routed.peer
    names = forwarder.link_names
    holding = ForwardedName(origin.whole_id, origin.name, isinstance(link, OutgoingLink), origin)
    holder = names.forwarded(holding)
    if holder is not None and holder is not link:
        if not names.may_steal_forwarded(origin, holder.terminus.holding.origin):
            raise stealing.refused(forwarder, link, holder)
        stealing.close_stolen(forwarder, link, holder)
    routed.holding = holding
    names.enter_forwarded(holding, link)


def _begin(forwarder: Core, routed: RoutedLink, connection: Connection) -> None:
    link = routed.peer
    try:
        routed.begin(connection)
    except AmqpError as error:
        forwarder.link_names.leave_forwarded(routed.holding, link)
        forwarder.link_routes.left(link)
        raise AmqpError(error.condition, error.description, Scope.LINK) from None
    link.terminus = routed


def _outward(forwarder: Core, link: Link, routed_attach: RoutedAttach) -> Attach:
    """Return the attach for the next router, with a link name that was never used before."""
    forwarder.routed.hops += 1
    name = f"trioute.route.{forwarder.reach.me}.{forwarder.routed.hops}"
    remote: Attach = link.remote_attach
    return attrs.evolve(remote, name=name, handle=0, properties=routed_attach.to_properties())


def _address_of(link: Link) -> str | None:
    remote = link.remote_attach
    terminus = remote.target if isinstance(link, IncomingLink) else remote.source
    address = getattr(terminus, "address", None)
    return address if isinstance(address, str) else None
