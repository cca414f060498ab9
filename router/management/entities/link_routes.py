"""Link routes of the router: configured ones, and those that connections requested."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import attrs

from router.config.link_routes import LinkRouteSettings
from router.core.link_routes.link_routes import Route
from router.core.link_routes.remote_link_routes import key_of
from router.core.link_routes.route_outlets import LinkRoute, UplinkOutlet
from router.core.model.counters import Counters
from router.management.entities.attributes import AttributesOf
from router.management.entities.link_route_state import LINK_ROUTE_STATE, LinkRouteState
from router.management.schema import (
    CONFIGURATION,
    OPERATIONAL,
    Attribute,
    EntityType,
    LiveEntity,
    Setting,
)
from router.management.views import RouterView


def configured_link_routes(router: RouterView) -> Iterator[LiveEntity]:
    """Return the configured link routes, with their live states."""
    return (configured_link_route(router, each) for each in router.configuration.link_routes)


def configured_link_route(router: RouterView, settings: LinkRouteSettings) -> LiveEntity:
    """Return a configured link route, with its live state."""
    control = router.control
    way = None if control is None else control.link_routes.configured(settings.name)
    return LiveEntity(settings, way and LinkRouteState(way, router.observed.turn.now))


def _ways(router: RouterView) -> Iterator[LinkRoute]:
    return router.observed.forwarder.link_routes.each_link_route()


# Link routes that a connection has requested.


@attrs.frozen
class ConnectionLinkRoute:
    """Link route that a connection has requested; `number` is the number of that connection."""

    way: LinkRoute
    number: int

    @property
    def identity(self) -> str:
        """Return the entity's identity: the connection's number and the link route's name."""
        return f"{self.number}/{self.way.rule.name}"


def connection_link_routes(router: RouterView) -> Iterator[ConnectionLinkRoute]:
    """Yield the link routes of the requesting connection only, as in Dispatch."""
    # no connection in `pumps` has the number 0
    pump = router.observed.pumps.get(router.requester_number or 0)
    if pump is None or router.control is None:
        return
    for way in router.control.link_routes.requested_by(pump.connection).values():
        yield ConnectionLinkRoute(way, pump.number)


def _given(
    name: str, kind: str, meaning: str, read: Callable[[ConnectionLinkRoute], object]
) -> Attribute[ConnectionLinkRoute]:
    field = attrs.fields_dict(LinkRouteSettings)[name]
    return Attribute(
        name, kind, meaning, read, Setting(field, "it is set when the entity is created")
    )


CONNECTION_LINK_ROUTE: Final = EntityType[ConnectionLinkRoute](
    "router.connection.linkRoute",
    "A link route to the connection that requested it. Only that connection sees it here, and "
    "it lasts as long as the connection does.",
    CONFIGURATION,
    (
        *AttributesOf[ConnectionLinkRoute].identified(
            lambda e: e.way.rule.name, lambda e: e.identity, "router.connection.linkRoute"
        ),
        _given("pattern", "string", "The addresses that match.", lambda e: e.way.rule.pattern),
        _given(
            "direction",
            "string",
            "Links that clients send on (in) or receive on (out).",
            lambda e: e.way.rule.direction,
        ),
        Attribute(
            "containerId",
            "string",
            "The container-id that the connection was opened with.",
            lambda e: str(e.way.rule.scope.remote_open.container_id),
        ),
    ),
    operations=("CREATE", "DELETE", "READ"),
)


# All link routes.


@attrs.frozen
class LinkRouteView(LinkRouteState):
    """View of any link route.

    `number` is the number of the connection that requested the link route, None if the link route
    is configured.
    """

    number: int | None

    @property
    def identity(self) -> str:
        """Return the entity's identity, which contains the link route's name.

        The number of the connection that requested the link route, if any, precedes the name.
        """
        scope = "" if self.number is None else f"connection/{self.number}/"
        return f"router.linkRoute/{scope}{self.way.rule.name}"


def link_routes(router: RouterView) -> Iterator[LinkRouteView]:
    """Return all link routes, configured or requested by connections."""
    return (link_route(router, way) for way in _ways(router))


def link_route(router: RouterView, way: LinkRoute) -> LinkRouteView:
    """Return the view of a link route."""
    scope = way.rule.scope
    number = None if scope is None else scope.number
    return LinkRouteView(way, router.observed.turn.now, number)


LINK_ROUTE: Final = EntityType[LinkRouteView](
    "router.linkRoute",
    "An existing link route, configured or requested by a connection. Dispatch has no such type.",
    OPERATIONAL,
    (
        *AttributesOf[LinkRouteView].identified(
            lambda e: e.identity, lambda e: e.identity, "router.linkRoute"
        ),
        Attribute(
            "pattern",
            "string",
            "The addresses that match; a prefix is a pattern that ends in #.",
            lambda e: e.way.rule.whole_pattern,
        ),
        Attribute(
            "direction",
            "string",
            "Links that clients send on (in) or receive on (out).",
            lambda e: e.way.rule.direction,
        ),
        Attribute(
            "connectionId",
            "string",
            "The connection that requested it; null if it is configured.",
            lambda e: None if e.number is None else str(e.number),
        ),
        Attribute(
            "addExternalPrefix",
            "string",
            "The prefix that is added to the address at the container.",
            lambda e: e.way.rule.add_prefix or None,
        ),
        Attribute(
            "delExternalPrefix",
            "string",
            "The prefix that is removed from the address.",
            lambda e: e.way.rule.del_prefix or None,
        ),
        *LINK_ROUTE_STATE,
    ),
)


# Addresses of link routes.


@attrs.frozen
class LinkRouteAddress:
    """Address that stands for a link route's pattern; Dispatch lists it with other addresses."""

    route: Route
    # the address has no counters
    counters: Counters = attrs.Factory(Counters)
    passed: int = 0
    distribution: str = "linkBalanced"
    priority: int = -1
    in_process: int = 0
    subscribers: int = 0
    # links are blocked one by one, not by address
    blocked_reason: None = None
    blocked_text: None = None

    @property
    def key(self) -> str:
        """Return the key as in Dispatch: a class letter, and the link route's prefix or pattern.

        The letters C and D are for prefixes (`in` and `out`), E and F for patterns.
        """
        return key_of(self.route)

    @property
    def containers(self) -> int:
        """Return how many connections lead to the link route's containers."""
        return self.route.containers

    @property
    def remote_routers(self) -> list[str]:
        """Return the other routers that have containers for the link route.

        Edge routers that are connected to this router are left out: they count as containers.
        """
        outlets = self.route.far.values()
        return sorted(
            outlet.router
            for outlet in outlets
            if not (isinstance(outlet, UplinkOutlet) and outlet.leads_down)
        )


def link_route_addresses(router: RouterView) -> Iterator[LinkRouteAddress]:
    """Return the addresses of all link routes."""
    return (LinkRouteAddress(each) for each in router.observed.forwarder.link_routes.routes())
