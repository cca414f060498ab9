"""The routers of a network are told as each of them knows them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from router.config.connectors import ConnectorSettings
from router.config.listeners import ListenerSettings
from router.config.model import Configuration
from router.config.router_settings import RouterSettings
from router.core.routers.routing_state import Interest
from router.management.entities.node import NODE, nodes, other_nodes
from router.management.entities.router import ROUTER
from router.management.operations import _NODE_ANSWERS
from router.management.requests import Request
from router.management.views import RouterView
from router.simulation.network import Network


def routers(names: str, *joined: str, mode: Any = "interior") -> Network:
    """Routers, of which some are joined, two and two."""
    network = Network(1)
    for name in names:
        network.add(name, Configuration(router=RouterSettings(mode=mode)))
    for one, other in map(tuple, joined):
        network.join(
            one,
            other,
            connector=ConnectorSettings(role="inter-router", cost=3),
            listener=ListenerSettings(role="inter-router"),
        )
    network.start()
    network.run(3)
    return network


def view(network: Network, name: str) -> RouterView:
    """Return the view of a router that management reads."""
    host = network.hosts[name]
    return RouterView(name, "host", host.configuration, host.hub, 0.0, control=host.control)


def told(network: Network, name: str) -> dict[str, dict[str, Any]]:
    """All that is told, by id."""
    found = {}
    for node in nodes(view(network, name)):
        entity: dict[str, Any] = {each.name: each.read(node) for each in NODE.attributes}
        found[entity["id"]] = entity
    return found


def test_three_in_a_row() -> None:
    network = routers("ABC", "AB", "BC")
    host = network.hosts["C"]
    host.turn(lambda: host.reach.set_own_interest("M0q", Interest(1)))
    network.run(1)
    found = told(network, "A")
    assert list(found) == ["A", "B", "C"]
    assert [each["index"] for each in found.values()] == [0, 1, 2]
    assert [each["nextHop"] for each in found.values()] == ["(self)", None, "B"]
    assert [each["cost"] for each in found.values()] == [0, 3, 6]
    assert [each["linkState"] for each in found.values()] == [["B"], ["A", "C"], ["B"]]
    assert [each["routerLink"] for each in found.values()] == [None, 1, None]
    assert [each["addressCount"] for each in found.values()] == [0, 0, 1]
    assert found["C"]["address"] == "amqp:/_topo/0/C"
    assert found["C"]["name"] == found["C"]["identity"] == "router.node/C"
    assert found["B"]["protocolVersion"] == 1
    assert all(each["instance"] > 0 for each in found.values())
    assert other_nodes(view(network, "A")) == ["B", "C"]
    assert [each["state"] for each in found.values()] == ["self", "reached", "reached"]
    assert all(each["linkStateSequence"] >= 1 for each in found.values())
    assert all(0 <= each["linkStateAge"] <= 5 for each in found.values())
    assert [each["addressSequence"] for each in found.values()] == [0, 0, 1]
    assert [each["heardMilliseconds"] is None for each in found.values()] == [True, False, True]
    assert 0 <= found["B"]["heardMilliseconds"] <= 1000


def test_what_went_wrong_last_is_remembered() -> None:
    network = routers("ABC", "AB", "BC")
    read: dict[str, Callable[[RouterView], Any]]
    read = {each.name: each.read for each in ROUTER.attributes}
    asked = view(network, "A")
    assert read["networkInSync"](asked) is True
    assert read["routerIdConflicts"](asked) == 0
    assert read["lastRouterIdConflict"](asked) is read["lastNeighborLost"](asked) is None
    network.hosts["B"].kill()
    network.run(3)
    assert read["lastNeighborLost"](asked) == "B"
    assert 0 <= read["lastNeighborLostSeconds"](asked) <= 3
    assert told(network, "A")["B"]["state"] == "unreachable"
    alone = view(routers("A", mode="standalone"), "A")
    assert read["networkInSync"](alone) is True
    assert read["routerIdConflicts"](alone) == 0
    assert read["lastNeighborLostSeconds"](alone) is None


@pytest.mark.parametrize(
    ("names", "mode", "known"),
    [("AB", "interior", "AB"), ("A", "interior", "A"), ("A", "standalone", ""), ("A", "edge", "")],
)
def test_the_management_nodes_are_those_of_all_routers(names: str, mode: str, known: str) -> None:
    network = routers(names, *([names] if len(names) > 1 else []), mode=mode)
    found = _NODE_ANSWERS["GET-MGMT-NODES"](view(network, "A"), Request({}, None))
    assert found == [f"amqp:/_topo/0/{each}/$management" for each in known]


def test_whose_messages_come_by_here() -> None:
    network = routers("ABC", "AB", "BC")
    found = told(network, "B")
    assert found["C"]["validOrigins"] == ["A"]
    assert found["A"]["validOrigins"] == ["C"]
    assert told(network, "A")["C"]["validOrigins"] == []


def test_a_router_that_cannot_be_reached_is_told_as_long_as_it_is_remembered() -> None:
    network = routers("ABC", "AB", "BC")
    network.hosts["C"].kill()
    network.run(1)
    found = told(network, "A")
    assert (found["C"]["cost"], found["C"]["nextHop"]) == (None, None)
    assert other_nodes(view(network, "A")) == ["B"]


def test_a_router_alone_knows_none() -> None:
    assert told(routers("A", mode="standalone"), "A") == {}
    assert told(routers("A", mode="edge"), "A") == {}
    assert list(told(routers("A"), "A")) == ["A"]
