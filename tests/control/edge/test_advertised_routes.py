"""Link routes that the peer of an uplink advertises are limited and charged."""

from __future__ import annotations

import pytest

from router.control.edge.advertised_routes import MAX_FROM_EDGE, AdvertisedRoutes
from router.core.routers.routing_state import IN_PREFIX

from support.in_memory import Router
from support.traced import traced_bytes


def test_an_interior_may_tell_of_more_than_an_edge() -> None:
    link_routes = Router().forwarder.link_routes
    connection = Router().client().connection
    connection.is_client = True
    told = AdvertisedRoutes(link_routes, connection, "a")
    told.change((f"Cq{number}" for number in range(MAX_FROM_EDGE + 1)), ())
    assert told.keys is not None
    assert len(told.keys) == MAX_FROM_EDGE + 1
    assert told.refused == 0


@pytest.mark.parametrize(
    "text", ["a" * 2000, "a" * 2000 + "\U0001f600", "a/\U0001f600." * 400, ".a" * 40, "a"],
    ids=["ascii", "widest", "parted", "tokens", "short"],
)  # fmt: skip
def test_no_more_is_held_of_routes_than_is_charged(text: str) -> None:
    router = Router()
    connection = router.client(role="edge").connection
    told = AdvertisedRoutes(router.forwarder.link_routes, connection, "edge")
    told.use(is_open=True)
    before = connection.account.total

    def tell() -> None:
        told.change([f"{IN_PREFIX}{number:03}{text}" for number in range(200)], [])
        router.finish_turn()

    assert traced_bytes(tell) < connection.account.total - before
    told.change([], list(told.keys or ()))
    assert connection.account.total == before
