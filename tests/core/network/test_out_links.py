"""A link to the next router: what its attach says, and how it takes leave."""

from __future__ import annotations

from typing import Any

from router.amqp.types import ULong
from router.core.network.out_links import OutLink
from router.core.routers.link_properties import COST, DESTINATION, PHASE

from support.far_routers import Mesh
from support.waypoints import message


def mesh_of_two(**fields: Any) -> Mesh:
    mesh = Mesh("a", "b", **fields)
    mesh.join("a", "b", cost=4)
    mesh.learn()
    return mesh


def out_link(mesh: Mesh, router: str, name: str, phase: int = 0) -> OutLink:
    address = mesh[router].table.in_use(name, phase)
    assert address is not None
    (link,) = mesh[router].forwarder.network.outward.links(address)
    return link


def test_an_attach_says_where_it_leads_and_what_the_way_costs() -> None:
    mesh = mesh_of_two(rules=[(False, "w", "balanced", True, None, 2, 2)])
    mesh["b"].client().receiver("q", credit=2)
    mesh["b"].client().receiver("w", credit=2)
    mesh["a"].client().sender("q")
    mesh["a"].client().sender("w")
    mesh.run()
    link = out_link(mesh, "a", "q")
    target: Any = link.frame.target
    assert target.address == "q"
    assert link.frame.properties == {DESTINATION: "b", COST: ULong(4)}
    assert link.consumer is not None
    assert link.consumer.cost == 4
    assert link.consumer.link.credit == 2
    properties = out_link(mesh, "a", "w", 2).frame.properties
    assert properties is not None
    assert properties[PHASE] == 2
    address = mesh["b"].table.in_use("w", 2)
    assert address is not None
    assert len(address.producers) == 1


def test_it_is_there_before_the_other_router_has_answered() -> None:
    mesh = mesh_of_two()
    mesh["b"].client().receiver("q", credit=1)
    mesh.run()
    mesh.hold("a", "b")
    sender = mesh["a"].client().sender(None)
    sender.send(message("hello", "q"))
    address = mesh["a"].table.in_use("q")
    assert address is not None
    assert address.waiting.count == 1
    mesh.hold("a", "b", held=False)
    mesh.run()
    assert address.waiting.count == 0


def test_it_ends_when_all_it_has_sent_is_settled() -> None:
    mesh = mesh_of_two()
    receiver = mesh["b"].client().receiver("q", credit=5)
    sender = mesh["a"].client().sender("q")
    mesh.run()
    sending = sender.send(b"one")
    mesh.run()
    link = out_link(mesh, "a", "q")
    link.retire()
    mesh.settle()
    assert link in mesh["a"].forwarder.network.outward.leaving
    receiver.settle()
    mesh.settle()
    assert link.is_over
    assert sending.outcome is not None


def test_nobody_is_left_behind_when_its_connection_is_lost() -> None:
    mesh = mesh_of_two()
    mesh["b"].client().receiver("q", credit=5)
    sender = mesh["a"].client().sender("q")
    mesh.run()
    sending = sender.send(b"one")
    mesh.run()
    link = out_link(mesh, "a", "q")
    mesh.cut("a", "b")
    assert link.is_over
    assert sending.is_over
    mesh.learn()
    mesh.settle()
    address = mesh["b"].table.in_use("q")
    assert address is not None
    assert address.producers == []
