"""EXPLAIN of an address whose links are forwarded, over $management."""

from __future__ import annotations

from typing import Any

from router.config.link_routes import LinkRouteSettings
from router.config.listeners import ListenerSettings
from router.config.model import AddressSettings, Configuration
from router.config.redirects import RedirectSettings
from router.core.link_routes.route_outlets import BACK_OFF_S
from router.engine.states import ConnectionState
from router.management.explain import explain
from router.management.explain_link_route import explain_link_route
from router.management.requests import Request

from support.entities import view_of
from support.loopback import Running, dialled, running_node

CONFIGURATION = Configuration(
    listeners=(ListenerSettings(port=0, name="any", role="route-container"),),
    addresses=(AddressSettings(prefix="orders", distribution="unavailable"),),
    redirects=(RedirectSettings(prefix="orders/old", to_network_host="10.0.0.2"),),
    link_routes=(
        LinkRouteSettings(prefix="orders", direction="in", container_id="one", name="a"),
        LinkRouteSettings(
            prefix="orders",
            direction="in",
            container_id="two",
            name="b",
            add_external_prefix="x.",
        ),
    ),
)


def explained(running: Running, address: str, direction: str = "send") -> dict[str, Any]:
    """Return the router's explanation of an address."""
    properties = {"operation": "EXPLAIN", "address": address, "direction": direction}
    return explain(view_of(running), Request(properties, None))


async def test_where_links_go_and_who_is_next() -> None:
    async with running_node(CONFIGURATION) as running:
        told = explained(running, "orders/eu")
        assert (told["allowed"], told["flows"]) == (False, False)
        assert [each["reason"] for each in told["reasons"]] == ["no_container"]
        async with dialled(running.address) as one, dialled(running.address) as two:
            await one.begin(container_id="one")
            await two.begin(container_id="two")
            told = explained(running, "orders/eu")
            assert (told["allowed"], told["flows"], told["reasons"]) == (True, True, [])
            assert told["distribution"] == "linkBalanced"
            route = told["linkRoute"]
            assert (route["pattern"], route["direction"]) == ("orders/#", "in")
            assert (route["names"], route["containerCount"]) == (["a", "b"], 2)
            assert [each["container"] for each in route["containers"]] == ["one", "two"]
            assert [each["address"] for each in route["containers"]] == ["orders/eu", "x.orders/eu"]
            assert [each["chosen"] for each in route["containers"]] == [True, False]
            again = explained(running, "orders/eu")
            assert again["linkRoute"] == route
            assert len(running.node.hub.forwarder.link_routes) == 2


async def test_others_are_not_forwarded() -> None:
    async with running_node(CONFIGURATION) as running:
        assert (explained(running, "bills"))["linkRoute"] is None
        assert (explained(running, "orders", "receive"))["linkRoute"] is None
        (why,) = (explained(running, "orders/old"))["reasons"]
        assert why["reason"] == "link_redirected"


async def test_a_container_that_is_not_asked_says_why() -> None:
    async with (
        running_node(CONFIGURATION) as running,
        dialled(running.address) as one,
        dialled(running.address) as two,
    ):
        await one.begin(container_id="one")
        await two.begin(container_id="two")
        route = running.node.hub.forwarder.link_routes.find("orders", is_sender=True)
        assert route is not None
        first, second = (outlet for way in route.link_routes for outlet in way.outlets.values())
        first.refused_at = running.node.hub.turn.now
        told = explain_link_route(view_of(running), route, "orders")
        containers = told["linkRoute"]["containers"]
        assert [each["reason"] for each in containers] == ["refused", None]
        assert [each["chosen"] for each in containers] == [False, True]
        first.refused_at -= BACK_OFF_S
        state, second.connection.state = second.connection.state, int(ConnectionState.CLOSE_RCVD)
        told = explain_link_route(view_of(running), route, "orders")
        second.connection.state = state
        containers = told["linkRoute"]["containers"]
        assert [each["reason"] for each in containers] == [None, "closing"]
