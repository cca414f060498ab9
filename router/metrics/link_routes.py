"""Read link routes for metrics."""

from __future__ import annotations

from typing import Final

import attrs

from router.core.link_routes.link_routes import LinkRoutes

ACTIVE: Final = "active"
INACTIVE: Final = "inactive"


@attrs.frozen
class LinkRouteReading:
    """Counts of link routes; `by_status` includes link routes that connections have requested."""

    configured: int = 0
    by_status: dict[str, int] = attrs.Factory(lambda: {ACTIVE: 0, INACTIVE: 0})
    links: int = 0
    forwarded: int = 0
    refused: int = 0
    unplaced: int = 0


def read_link_routes(routes: LinkRoutes) -> LinkRouteReading:
    """Read the counts of all link routes in one step."""
    by_status = {ACTIVE: 0, INACTIVE: 0}
    configured = 0
    for way in routes.each_link_route():
        by_status[ACTIVE if way.is_active else INACTIVE] += 1
        configured += way.rule.scope is None
    return LinkRouteReading(
        configured, by_status, routes.links, routes.forwarded, routes.refusals, routes.unplaced
    )
