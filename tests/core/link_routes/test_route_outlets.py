"""Address prefixes of link routes, and their outlets to containers."""

from __future__ import annotations

import pytest

from router.core.link_routes.route_outlets import (
    BACK_OFF_S,
    FarOutlet,
    LinkRoute,
    LinkRouteRule,
    RouteDestination,
)
from router.core.routers.routing_state import Path, RoutingState
from router.engine.states import ConnectionState

from support.in_memory import Router


@pytest.mark.parametrize(
    ("prefixes", "text", "outward", "inward"),
    [
        (("", ""), "q.a", "q.a", "q.a"),
        (("ext/", ""), "q.a", "ext/q.a", "q.a"),
        (("", "q."), "q.a", "a", "q.a"),
        (("ext/", "q."), "amqp://host/q.a", "ext/a", "q.a"),
        # nothing would be left of it
        (("", "q.a"), "q.a", "q.a", "q.aq.a"),
    ],
)
def test_an_address_at_the_container(
    prefixes: tuple[str, str], text: str, outward: str, inward: str
) -> None:
    rule = LinkRouteRule("r", "in", True, "q", add_prefix=prefixes[0], del_prefix=prefixes[1])
    assert rule.outward(text) == outward
    assert rule.inward(outward) == inward


def test_a_lane_is_open_while_its_connection_is() -> None:
    client = Router().client(role="route-container")
    outlet = RouteDestination(client.connection)
    assert (outlet.is_open, outlet.cost, outlet.place) == (True, 0, client.connection)
    client.close()
    assert not outlet.is_open


def test_who_refused_rests_for_a_while() -> None:
    outlet = RouteDestination(Router().client().connection)
    assert not outlet.is_backing_off(1000.0)
    outlet.refused_at = 1000.0
    assert outlet.is_backing_off(1000.0 + BACK_OFF_S - 0.1)
    assert not outlet.is_backing_off(1000.0 + BACK_OFF_S)


def test_a_far_lane_is_as_far_and_as_open_as_the_way_there() -> None:
    reach = RoutingState("a")
    outlet = FarOutlet("c", reach)
    assert (outlet.place, outlet.connection, outlet.is_open) == ("c", None, False)
    client = Router().client()
    reach.set_paths({"b": client.connection}, {"c": Path("b", 7)}, lambda _: None)
    assert (outlet.connection, outlet.cost, outlet.is_open) == (client.connection, 7, True)
    client.lose()
    assert client.connection.state != ConnectionState.OPENED
    assert not outlet.is_open


def test_a_way_has_the_links_of_its_lanes() -> None:
    way = LinkRoute(LinkRouteRule("r", "in", True, "q"))
    assert (way.links, way.is_active) == (0, False)
    for count in (2, 3):
        connection = Router().client().connection
        way.outlets[connection] = RouteDestination(connection, links=count)
    assert (way.links, way.is_active) == (5, True)
