"""Names that say where they lead: what is not there is named."""

from __future__ import annotations

from typing import Any

from router.core.diagnosis.blocking import MEANINGS, Reason, Survey
from router.core.routers.unreachable import why_unreachable

from support.edges import World

NO_EDGE = "no edge router E9 is connected to the network"
NOT_KNOWN = "edge router E9 is unknown to the interior routers"


def a_network() -> World:
    """Two interiors, and an edge at each."""
    world = World()
    world.interior("I")
    world.interior("J")
    world.between("I", "J")
    world.edge("E1", "I")
    world.edge("E2", "J")
    world.start()
    return world


def said(world: World, router: str, name: str) -> str | None:
    network: Any = world.host(router).forwarder.network
    return why_unreachable(network, name)


def words_at(world: World, router: str, name: str) -> list[str | None]:
    """Why those who send to an address have no credit."""
    forwarder = world.host(router).forwarder
    address = forwarder.table.in_use(name)
    assert address is not None
    survey = Survey(forwarder)
    return [survey.describe(producer.link) for producer in address.producers]


def test_an_interior_names_who_is_not_there() -> None:
    world = a_network()
    for name in ("q", "_edge/E1/x", "_edge/E2/x", "_topo/0/I/x", "_topo/0/J/x", "_edge/E9"):
        assert said(world, "I", name) is None
    assert said(world, "I", "_edge/E9/x") == NO_EDGE
    assert said(world, "I", "_topo/0/K/x") == "router K cannot be reached"
    # an interior's id is not that of an edge
    assert said(world, "I", "_edge/I/x") == "no edge router I is connected to the network"
    world.host("E2").kill()
    world.run(0.1)
    assert said(world, "I", "_edge/E2/x") == "no edge router E2 is connected to the network"
    world.host("J").kill()
    world.run(0.1)
    assert said(world, "I", "_topo/0/J/x") == "router J cannot be reached"


def test_an_edge_names_what_its_interiors_do_not_know() -> None:
    world = a_network()
    names = ("_edge/E9/x", "_topo/0/K/x", "_edge/E2/x", "_topo/0/J/x", "_edge/E1/x")
    # as long as nobody has sent there it has not asked
    assert [said(world, "E1", name) for name in names] == [None] * 5
    for name in names:
        world.sender("E1", name)
    world.run(1)
    assert [said(world, "E1", name) for name in names] == [
        NOT_KNOWN,
        "router K is unknown to the interior routers",
        None,
        None,
        None,
    ]


def test_alone_a_router_knows_of_no_others() -> None:
    world = World()
    world.edge("E1")
    world.start()
    assert said(world, "E1", "_edge/E9/x") is None


def test_who_sends_there_is_told() -> None:
    world = a_network()
    nobody = MEANINGS[Reason.NO_CONSUMER]
    for router, words in (("I", NO_EDGE), ("E1", NOT_KNOWN)):
        world.sender(router, "_edge/E9/x")
        world.sender(router, "q")
        world.run(1)
        assert words_at(world, router, "_edge/E9/x")[-1] == f"{nobody}: {words}"
        assert words_at(world, router, "q") == [nobody]
