"""Record of where a routed link was forwarded to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from router.core.addresses.link_origins import Origin
    from router.core.link_routes.link_routes import Route
    from router.core.link_routes.route_outlets import (
        FarOutlet,
        LinkRoute,
        RouteDestination,
        UplinkOutlet,
    )
    from router.engine.connection import Connection


@attrs.frozen(eq=False)
class Placement:
    """Record of where a peer's link was forwarded to.

    `asked` is the address that the peer named, or None, and `sent` the address that was passed on.
    `link_route` is None if the container is at another router.
    """

    route: Route
    link_route: LinkRoute | None
    outlet: RouteDestination | FarOutlet | UplinkOutlet
    connection: Connection
    origin: Origin
    asked: str | None
    sent: str | None
    is_coordinator: bool
