"""How much of what neighbours tell is kept, as configured."""

from __future__ import annotations

from router.config.router_settings import RouterSettings
from router.control.network.limits import Limits, limits_of


def test_they_are_those_of_the_configuration() -> None:
    assert limits_of(RouterSettings()) == Limits()
    router = RouterSettings(
        max_routers_per_neighbour=5,
        max_addresses_per_router=6,
        max_address_bytes_per_neighbour=7 * 2**20,
    )
    assert limits_of(router) == Limits(routers=5, addresses=6, octets=7 * 2**20)
