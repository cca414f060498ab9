"""Link routes as management tells them: configured, asked for, and the addresses that they have."""

from __future__ import annotations

import pytest

from router.config.link_routes import LinkRouteSettings
from router.config.listeners import ListenerSettings
from router.config.model import Configuration
from router.core.link_routes.link_routes import IN, LinkRoutes, Route
from router.core.link_routes.route_outlets import LinkRouteRule
from router.management.entities.address import ADDRESS
from router.management.entities.configured import CONFIGURED_LINK_ROUTE
from router.management.entities.link_routes import LINK_ROUTE, LinkRouteAddress
from router.management.entities.router import ROUTER

from support.entities import told
from support.in_memory import Router
from support.loopback import dialled, running_node

CONFIGURATION = Configuration(
    listeners=(ListenerSettings(port=0, name="brokers", role="route-container"),),
    link_routes=(
        LinkRouteSettings(prefix="orders", direction="in", container_id="artemis", name="a"),
        LinkRouteSettings(prefix="orders", direction="in", connection="brokers", name="b"),
        LinkRouteSettings(pattern="x/*", direction="out", container_id="rabbit", name="c"),
    ),
)


async def test_a_configured_one_tells_whether_its_container_is_there() -> None:
    async with running_node(CONFIGURATION) as running:
        routes = told(running, CONFIGURED_LINK_ROUTE)
        assert [each["operStatus"] for each in routes] == ["inactive"] * 3
        assert (routes[0]["prefix"], routes[0]["pattern"]) == ("orders", None)
        async with dialled(running.address) as peer:
            await peer.begin(container_id="artemis")
            routes = told(running, CONFIGURED_LINK_ROUTE)
            assert [each["operStatus"] for each in routes] == ["active", "active", "inactive"]
            assert routes[1]["containers"] == ["artemis"]
            (router,) = told(running, ROUTER)
            assert router["linkRouteCount"] == 3
            addresses = {each["key"]: each for each in told(running, ADDRESS)}
            assert addresses["Corders"]["containerCount"] == 1
            assert addresses["Corders"]["distribution"] == "linkBalanced"
            assert addresses["Fx/*"]["containerCount"] == 0
            (pump,) = running.pumps
            routing = running.node.control.link_routes
            routing.add_requested(LinkRouteRule("own", "out", False, "y", scope=pump.connection))
            head = "router.linkRoute/"
            every = {each["name"].removeprefix(head): each for each in told(running, LINK_ROUTE)}
            assert list(every) == ["a", "b", "c", f"connection/{pump.number}/own"]
            assert every["a"]["pattern"] == "orders/#"
            assert every["a"]["connectionId"] is None
            own = every[f"connection/{pump.number}/own"]
            assert (own["pattern"], own["connectionId"]) == ("y", str(pump.number))
            assert (own["operStatus"], own["containers"]) == ("active", ["artemis"])


@pytest.mark.parametrize(
    ("pattern", "direction", "key"),
    [
        ("orders/#", "in", "Corders"),
        ("orders.eu.#", "out", "Dorders.eu"),
        ("orders", "in", "Eorders"),
        ("x/*", "out", "Fx/*"),
        ("x/*/#", "in", "Ex/*/#"),
        ("x/#/#", "in", "Ex/#/#"),
        ("#", "out", "F#"),
    ],
)
def test_the_key_is_dispatchs(pattern: str, direction: str, key: str) -> None:
    router = Router()
    route = Route(LinkRoutes(router.table, router.turn), pattern, direction)
    assert LinkRouteAddress(route).key == key
    assert IN == "in"
