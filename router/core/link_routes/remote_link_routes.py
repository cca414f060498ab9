"""Link routes of other routers, and announcements of link routes with containers at this router.

A router announces a route while a container of the route is connected to it, by a key that holds
the route's pattern and direction (`RoutingState`). How addresses are changed for the container is
not announced.
"""

from __future__ import annotations

import attrs

from router.core.link_routes.link_routes import IN, OUT, LinkRoutes, Route
from router.core.link_routes.route_outlets import FarOutlet, UplinkOutlet
from router.core.model.address import ROUTED
from router.core.model.patterns import pattern_of
from router.core.routers.routing_state import (
    IN_PATTERN,
    IN_PREFIX,
    OUT_PATTERN,
    OUT_PREFIX,
    Interest,
    RoutingState,
)

_KINDS = {IN_PREFIX: IN, OUT_PREFIX: OUT, IN_PATTERN: IN, OUT_PATTERN: OUT}
_PREFIXES = (IN_PREFIX, OUT_PREFIX)


def key_of(route: Route) -> str:
    """Return the key by which routers announce a route: a class letter and the pattern."""
    is_in = route.direction == IN
    pattern = route.pattern
    head = pattern.removesuffix("#")
    if pattern.endswith("#") and head.strip("/.") and not set(head) & set("*#"):
        return (IN_PREFIX if is_in else OUT_PREFIX) + head.strip("/.")
    return (IN_PATTERN if is_in else OUT_PATTERN) + pattern


def parse_key(key: str) -> tuple[str, str] | None:
    """Return the direction and pattern in the key of a link route; None for any other key."""
    direction = _KINDS.get(key[:1])
    text = key[1:]
    if direction is None or not text.strip("/."):
        return None
    return direction, pattern_of(text) if key[0] in _PREFIXES else text


@attrs.frozen
class LinkRoutesUnsupported:
    """Event: the peer on an uplink does not support link routes, so none are exchanged."""

    router: str


@attrs.frozen
class RouteRefused:
    """Event: an edge router announced a link route that edge routers may not have.

    `count` is how many link routes of this edge router were refused on the connection so far.
    """

    router: str
    key: str
    count: int = 1


@attrs.frozen
class RoutesLeftOut:
    """Event: an edge router ignores link routes of its interior, because there are too many.

    `count` is how many were ignored so far, and `kept` how many were accepted.
    """

    router: str
    count: int
    kept: int


class RemoteLinkRoutes:
    """Exchange of link routes with the other routers."""

    def __init__(self, reach: RoutingState, link_routes: LinkRoutes) -> None:
        self._reach = reach
        self._link_routes = link_routes
        # the routers that have announced each key
        self._told: dict[str, set[str]] = {}
        link_routes.watchers.append(self.containers_changed)
        reach.on_wanted.append(self.wanted_changed)

    def containers_changed(self, route: Route) -> None:
        """Announce a route if it has a container at this router, and withdraw it otherwise.

        Containers of edge routers count as containers of this router.
        """
        is_here = any(way.outlets for way in route.link_routes) or any(
            isinstance(outlet, UplinkOutlet) and outlet.leads_down for outlet in route.far.values()
        )
        self._reach.set_own_interest(key_of(route), Interest(ROUTED) if is_here else None)

    def wanted_changed(self, key: str) -> None:
        """Update the outlets for a key that other routers have announced or withdrawn.

        A key that does not stand for a link route is ignored.
        """
        if key[:1] not in _KINDS:
            return
        parsed = parse_key(key)
        if parsed is None:
            return
        direction, pattern = parsed
        before = self._told.get(key, set())
        now = set(self._reach.wanted.get(key, ()))
        for router in sorted(now - before):
            self._link_routes.open_far(direction, pattern, FarOutlet(router, self._reach))
        for router in sorted(before - now):
            self._link_routes.close_far(direction, pattern, router)
        if now:
            self._told[key] = now
        else:
            self._told.pop(key, None)
