"""Link routes as configured or requested, and the outlets that lead to their containers.

`link_routes` keeps all of them and chooses an outlet for each link. Nothing here runs per message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import attrs

from router.core.addresses.table import path_of
from router.core.model.patterns import pattern_of
from router.core.routers.routing_state import RoutingState
from router.engine.states import ConnectionState

if TYPE_CHECKING:
    from router.engine.connection import Connection

NEVER: Final = 2**62
# For how many seconds a container is the last choice after it refused a link or ended one with an
# error.
BACK_OFF_S = 5.0


class LinkRouteRule(NamedTuple):
    """Link route as it was configured or requested.

    `direction` is `in` for links on which peers send to the router, and `out` for links on which
    they receive. The route leads to the containers with this `container_id`, to those at the
    listener or connector named `connection`, or to the container that requested the route on the
    connection `scope`. The address at the container is the peer's address without `del_prefix`, and
    with `add_prefix` in front.
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
        """Return the pattern; for a prefix, the pattern that matches the same names."""
        return pattern_of(self.pattern) if self.is_prefix else self.pattern

    def outward(self, text: str) -> str:
        """Return the address at the container for a peer's address `text`."""
        path = path_of(text)
        if self.del_prefix and path.startswith(self.del_prefix) and path != self.del_prefix:
            path = path[len(self.del_prefix) :]
        return self.add_prefix + path

    def inward(self, text: str) -> str:
        """Return the peer's address for the address `text` at the container."""
        if self.add_prefix and text.startswith(self.add_prefix) and text != self.add_prefix:
            text = text[len(self.add_prefix) :]
        return self.del_prefix + text


@attrs.define(eq=False, kw_only=True)
class DestinationLoad:
    """Load on a link route's destination, with the time of the destination's last refusal."""

    links: int = 0
    # when it was last chosen, as a number in the order of all choices
    chosen: int = 0
    # when it last refused a link, or ended one with an error, on the turn's clock
    refused_at: float = float("-inf")

    def is_backing_off(self, now: float) -> bool:
        """Return whether the destination refused or broke a link less than `BACK_OFF_S` ago."""
        return now - self.refused_at < BACK_OFF_S


@attrs.define(eq=False)
class RouteDestination(DestinationLoad):
    """Connection to a container, as used by one link route."""

    connection: Connection
    # its distance, comparable to path costs in the network
    cost: int = 0

    @property
    def place(self) -> Connection:
        """Return the connection, which identifies the place that the outlet leads to."""
        return self.connection

    @property
    def is_open(self) -> bool:
        """Return whether links can be attached over the connection."""
        return bool(self.connection.state == ConnectionState.OPENED)


@attrs.define(eq=False)
class FarOutlet(DestinationLoad):
    """Outlet to another router that has containers for a route's links."""

    router: str
    reach: RoutingState
    # how many keys of the router announce the route (as a prefix, as a pattern)
    key_count: int = 0

    @property
    def place(self) -> str:
        """Return the router's id, which identifies the place that the outlet leads to."""
        return self.router

    @property
    def cost(self) -> int:
        """Return the cost of the path to the router; 0 if there is no path."""
        path = self.reach.path(self.router)
        return 0 if path is None else path.cost

    @property
    def connection(self) -> Any:
        """Return the connection to the next hop, or None if there is none."""
        path = self.reach.path(self.router)
        return None if path is None else self.reach.connection(path.via)

    @property
    def is_open(self) -> bool:
        """Return whether links can be attached over the connection to the next hop."""
        connection = self.connection
        return connection is not None and bool(connection.state == ConnectionState.OPENED)


@attrs.define(eq=False)
class UplinkOutlet(DestinationLoad):
    """Outlet to the router at the other end of an uplink, which has containers for a route.

    The router is an edge if this router is an interior, and the interior if this router is an edge.
    """

    router: str
    connection: Connection
    # how many keys of the router announce the route
    key_count: int = 0
    # its distance; all uplinks cost the same
    cost: int = 1

    @property
    def place(self) -> Connection:
        """Return the connection, which identifies the place that the outlet leads to."""
        return self.connection

    @property
    def leads_down(self) -> bool:
        """Return whether the peer is an edge router; only edge routers open uplinks."""
        return not self.connection.is_client

    @property
    def is_open(self) -> bool:
        """Return whether links can be attached over the connection."""
        return bool(self.connection.state == ConnectionState.OPENED)


@attrs.define(eq=False)
class LinkRoute:
    """Link route: its rule, and the outlets to its containers.

    The link route is in force while `LinkRoutes.edition` is at least `since` and less than `until`.
    """

    rule: LinkRouteRule
    outlets: dict[Connection, RouteDestination] = attrs.Factory(dict)
    # how many links were forwarded, and how many of these the containers refused
    placed: int = 0
    refused: int = 0
    # error of the last link that a container refused or ended; empty if there was none
    last_refusal: str = ""
    last_refusal_at: float = 0.0
    since: int = 0
    until: int = NEVER

    @property
    def links(self) -> int:
        """Return how many links the link route forwards now."""
        return sum(outlet.links for outlet in self.outlets.values())

    @property
    def is_active(self) -> bool:
        """Return whether a container of the link route is connected."""
        return bool(self.outlets)
