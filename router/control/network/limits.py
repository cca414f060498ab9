"""How much of what a neighbour tells of the network is kept.

What is beyond a limit is ignored, and what was there before stays: no limit takes anything away.
"""

from __future__ import annotations

import attrs

from router.config.router_settings import RouterSettings


@attrs.frozen
class Limits:
    """All limits of the routing protocol; those of a real network are far below."""

    routers: int = 2000
    """So many routers may be known by what one neighbour has told of them, it among them."""
    addresses: int = 200_000
    """So many addresses of one router are kept."""
    octets: int = 1 << 28
    """The addresses of the routers known by one neighbour may take about so much memory."""


def limits_of(router: RouterSettings) -> Limits:
    """The limits that a router's settings say."""
    return Limits(
        routers=router.max_routers_per_neighbour,
        addresses=router.max_addresses_per_router,
        octets=router.max_address_bytes_per_neighbour,
    )
