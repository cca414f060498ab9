"""Limits on the data kept from a neighbour's advertisements.

Entries beyond a limit are ignored. A limit never removes entries that are already known.
"""

from __future__ import annotations

import attrs

from router.config.router_settings import RouterSettings


@attrs.frozen
class Limits:
    """Limits of the routing protocol; real networks stay far below them."""

    routers: int = 2000
    """Most routers known through one neighbour, the neighbour included."""
    addresses: int = 200_000
    """Most addresses of one router."""
    octets: int = 1 << 28
    """Most memory, estimated, for addresses of all routers known through one neighbour."""


def limits_of(router: RouterSettings) -> Limits:
    """Return the routing protocol's limits from a router's settings."""
    return Limits(
        routers=router.max_routers_per_neighbour,
        addresses=router.max_addresses_per_router,
        octets=router.max_address_bytes_per_neighbour,
    )
