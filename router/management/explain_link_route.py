"""EXPLAIN of an address with a link route: where links for it are forwarded, or why not."""

from __future__ import annotations

import itertools
from typing import Final

from router.core.link_routes.link_routes import Route
from router.core.link_routes.route_outlets import (
    FarOutlet,
    LinkRoute,
    RouteDestination,
    UplinkOutlet,
)
from router.engine.naming import link_identity
from router.management.requests import AnswerMap
from router.management.views import RouterView

# Maximum number of containers, routers and links that are listed.
MAX_LISTED: Final = 100
NO_CONTAINER: Final = {
    "reason": "no_container",
    "text": "no container of the link route is connected: links are refused with "
    "qd:no-route-to-dest",
}
CLOSING: Final = {"reason": "closing", "text": "its connection is being closed"}
NO_WAY: Final = {"reason": "no_way", "text": "there is no route to the router now"}
BACKING_OFF: Final = {
    "reason": "refused",
    "text": "it refused a link a moment ago, so others are tried before it",
}


def explain_link_route(router: RouterView, route: Route, asked: str) -> AnswerMap:
    """Return the part of the answer to EXPLAIN that describes the link route of an address.

    `asked` is the address.
    """
    now = router.observed.turn.now
    found = route.next_outlet(now)
    chosen = None if found is None else found[1]
    outlets = [(way, outlet) for way in route.link_routes for outlet in way.outlets.values()]
    links = list(router.observed.forwarder.link_routes.placed_by(route))
    return {
        "distribution": "linkBalanced",
        "allowed": found is not None,
        "flows": found is not None,
        "reasons": [] if found is not None else [NO_CONTAINER],
        "linkRoute": {
            "pattern": route.pattern,
            "direction": route.direction,
            "names": [way.rule.name for way in itertools.islice(route.link_routes, MAX_LISTED)],
            "containers": [
                _container(way, outlet, asked, now, is_chosen=outlet is chosen)
                for way, outlet in itertools.islice(outlets, MAX_LISTED)
            ],
            "containerCount": len(outlets),
            "routers": [
                _router(outlet, now, is_chosen=outlet is chosen)
                for outlet in itertools.islice(route.far.values(), MAX_LISTED)
            ],
            "routerCount": len(route.far),
            "links": [
                {
                    "connection": str(link.session.connection.number),
                    "link": link_identity(link),
                    "address": placed.asked,
                    "toConnection": str(placed.connection.number),
                    "toRouter": getattr(placed.outlet, "router", None),
                    "toAddress": placed.sent,
                }
                for link, placed in itertools.islice(links, MAX_LISTED)
            ],
            "linkCount": len(links),
        },
    }


def _router(outlet: FarOutlet | UplinkOutlet, now: float, *, is_chosen: bool) -> AnswerMap:
    """Describe another router or an edge router that has containers."""
    why: AnswerMap = {"reason": None, "text": None}
    if not outlet.is_open:
        why = NO_WAY
    elif outlet.is_backing_off(now):
        why = BACKING_OFF
    connection = outlet.connection
    return {
        "router": outlet.router,
        "isEdge": isinstance(outlet, UplinkOutlet) and outlet.leads_down,
        "cost": outlet.cost,
        "connection": None if connection is None else str(connection.number),
        "links": outlet.links,
        "chosen": is_chosen,
        **why,
    }


def _container(
    way: LinkRoute, outlet: RouteDestination, asked: str, now: float, *, is_chosen: bool
) -> AnswerMap:
    """Describe a connection to a container."""
    connection = outlet.connection
    why: AnswerMap = {"reason": None, "text": None}
    if not outlet.is_open:
        why = CLOSING
    elif outlet.is_backing_off(now):
        why = BACKING_OFF
    return {
        "connection": str(connection.number),
        "container": str(connection.remote_open.container_id),
        "host": connection.name,
        "linkRoute": way.rule.name,
        "address": way.rule.outward(asked),
        "links": outlet.links,
        "lastRefusal": way.last_refusal or None,
        "chosen": is_chosen,
        **why,
    }
