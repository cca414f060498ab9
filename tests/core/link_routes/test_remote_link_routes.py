"""Link routes that routers tell each other of."""

from __future__ import annotations

import pytest

from router.core.link_routes.link_routes import IN, OUT
from router.core.link_routes.remote_link_routes import key_of, parse_key
from router.core.link_routes.route_outlets import LinkRouteRule
from router.core.model.address import BALANCED, ROUTED
from router.core.routers.routing_state import Interest

from support.in_memory import Client, Router


def wanted(router: Router) -> dict[str, Interest]:
    return router.forwarder.reach.own_interests


@pytest.mark.parametrize(
    ("rule", "key", "pattern"),
    [
        (LinkRouteRule("r", IN, True, "org.apache"), "Corg.apache", "org.apache/#"),
        (LinkRouteRule("r", OUT, True, "q"), "Dq", "q/#"),
        (LinkRouteRule("r", IN, False, "a/*/b"), "Ea/*/b", "a/*/b"),
        (LinkRouteRule("r", OUT, False, "a.*.#"), "Fa.*.#", "a.*.#"),
        (LinkRouteRule("r", OUT, False, "#"), "F#", "#"),
        # which says the same as a prefix
        (LinkRouteRule("r", OUT, False, "a/#"), "Da", "a/#"),
    ],
)
def test_a_route_is_known_by_its_key(rule: LinkRouteRule, key: str, pattern: str) -> None:
    routes = Router().forwarder.link_routes
    routes.add(rule)
    (route,) = routes.routes()
    assert key_of(route) == key
    assert parse_key(key) == (rule.direction, pattern)


@pytest.mark.parametrize("key", ["M0q", "MFq", "Hedge", "", "C", "D/", "E."])
def test_other_keys_are_of_no_route(key: str) -> None:
    assert parse_key(key) is None
    router = Router()
    router.forwarder.reach.set_interest("b", key, Interest(BALANCED))
    assert not list(router.forwarder.link_routes.routes())


def test_a_route_is_told_of_while_a_container_is_there() -> None:
    router = Router()
    routes = router.forwarder.link_routes
    ways = [routes.add(LinkRouteRule(name, IN, True, "q")) for name in ("one", "two")]
    other = routes.add(LinkRouteRule("three", OUT, True, "q"))
    assert wanted(router) == {}
    containers = [router.client(role="route-container") for _ in ways]
    for way, container in zip(ways, containers, strict=True):
        routes.open(way, container.connection)
        routes.open(way, container.connection)
    assert wanted(router) == {"Cq": Interest(ROUTED)}
    routes.close(ways[0], containers[0].connection)
    routes.close(ways[0], containers[0].connection)
    assert wanted(router) == {"Cq": Interest(ROUTED)}
    routes.remove(ways[1])
    assert wanted(router) == {}
    routes.open(other, containers[0].connection)
    assert wanted(router) == {"Dq": Interest(ROUTED)}


def test_routes_of_other_routers_are_there_while_they_are_told_of() -> None:
    router = Router()
    reach, routes = router.forwarder.reach, router.forwarder.link_routes
    for name, key in (("b", "Cq.a"), ("c", "Cq.a"), ("b", "Cq/a"), ("b", "Fx.*")):
        reach.set_interest(name, key, Interest(ROUTED))
    assert {route.pattern: sorted(map(str, route.far)) for route in routes.routes()} == {
        "q.a/#": ["b", "c"],
        "x.*": ["b"],
    }
    route = routes.find("q.a.b", is_sender=True)
    assert route is not None
    assert routes.find("q.a.b", is_sender=False) is None
    # it has said so in two ways, and takes one back
    reach.set_interest("b", "Cq.a", None)
    assert sorted(map(str, route.far)) == ["b", "c"]
    reach.set_interest("b", "Cq/a", None)
    assert sorted(map(str, route.far)) == ["c"]
    reach.set_interest("c", "Cq.a", None)
    reach.set_interest("b", "Fx.*", None)
    assert not list(routes.routes())
    assert routes.find("q.a.b", is_sender=True) is None


def test_a_route_that_is_configured_stays_when_others_have_it_no_more() -> None:
    router = Router()
    reach, routes = router.forwarder.reach, router.forwarder.link_routes
    reach.set_interest("b", "Dq", Interest(ROUTED))
    way = routes.add(LinkRouteRule("r", OUT, True, "q"))
    reach.set_interest("b", "Dq", None)
    assert [list(route.link_routes) for route in routes.routes()] == [[way]]
    reach.set_interest("b", "Dq", Interest(ROUTED))
    routes.remove(way)
    assert [list(route.far) for route in routes.routes()] == [["b"]]
    # who has it elsewhere is nobody that could be asked here
    assert wanted(router) == {}


def test_a_route_that_a_connection_asks_for_is_told_of() -> None:
    router = Router()
    routes = router.forwarder.link_routes
    container: Client = router.client()
    rule = LinkRouteRule("r", IN, False, "mine.*", scope=container.connection)
    way = routes.add(rule)
    routes.open(way, container.connection)
    assert list(wanted(router)) == ["Emine.*"]
    routes.remove(way)
    assert wanted(router) == {}
