"""Limits of what is kept of a neighbour's advertisements.

What exceeds a limit is ignored, and what is known already stays: no limit takes anything away.
"""

from __future__ import annotations

import attrs

from router.config.router_settings import RouterSettings


@attrs.frozen
class Limits:
    """The limits of the routing protocol; real networks stay far below them."""

    routers: int = 2000
    """How many routers may be known through one neighbour, the neighbour included."""
    addresses: int = 200_000
    """How many addresses of one router are kept."""
    octets: int = 1 << 28
    """About how much memory the addresses of all routers known through one neighbour may take."""


def limits_of(router: RouterSettings) -> Limits:
    """Return the limits of a router's settings."""
    return Limits(
        routers=router.max_routers_per_neighbour,
        addresses=router.max_addresses_per_router,
        octets=router.max_address_bytes_per_neighbour,
    )
