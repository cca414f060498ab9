"""Link routes are read as they are."""

from __future__ import annotations

from router.core.link_routes.route_outlets import LinkRouteRule
from router.metrics.link_routes import LinkRouteReading, read_link_routes

from support.in_memory import Router


def test_what_is_read_of_them() -> None:
    router = Router()
    routes = router.forwarder.link_routes
    assert read_link_routes(routes) == LinkRouteReading()
    connection = router.client().connection
    routes.open(routes.add(LinkRouteRule("own", "in", False, "a", scope=connection)), connection)
    routes.add(LinkRouteRule("far", "in", False, "b"))
    routes.forwarded, routes.refusals, routes.unplaced = 3, 2, 1
    assert read_link_routes(routes) == LinkRouteReading(1, {"active": 1, "inactive": 1}, 0, 3, 2, 1)
