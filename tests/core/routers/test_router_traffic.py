"""Deliveries from and to other routers are counted apart from those of clients."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from router.amqp.performatives import Transfer
from router.amqp.types import Symbol, ULong
from router.core.addresses.rules import AddressRule
from router.core.model.address import Address
from router.core.routers.router_traffic import (
    MOST_PASSED,
    TransitCounts,
    entered,
    left,
    total_counters,
)

from support.edges import one_interior
from support.far_routers import Mesh
from support.in_memory import Router
from support.routed import Pair, flow, sender
from support.transcripts import On
from support.waypoints import message


def counts(router: Router) -> tuple[int, int, int, int]:
    """From clients, to clients, from routers, to routers."""
    total = router.table.total()
    return entered(total), left(total), total.from_routers, total.to_routers


def line(*names: str, **fields: Any) -> Mesh:
    mesh = Mesh(*names, **fields)
    for one, other in itertools.pairwise(names):
        mesh.join(one, other)
    mesh.learn()
    return mesh


def test_each_router_tells_its_part_also_when_all_is_over() -> None:
    mesh = line("a", "b", "c")
    receiving = mesh["c"].client().receiver("q", credit=5)
    sending = mesh["a"].client().sender("q")
    mesh.run()
    wanted = {"a": (3, 0, 0, 3), "b": (0, 0, 3, 3), "c": (0, 3, 3, 0)}
    for number in range(3):
        sending.send(b"%d" % number)
    mesh.run()
    assert {name: counts(mesh[name]) for name in "abc"} == wanted
    used = [mesh[name].table.in_use("q") for name in "ac"]
    found = [total_counters(address) for address in used if address is not None]
    assert [(entered(each), left(each), each.to_routers) for each in found] == [
        (3, 0, 3),
        (0, 3, 0),
    ]
    transit = mesh["b"].forwarder.network.transit_counts
    assert (transit.count_of("M0q"), transit.count_of("M0other")) == (3, 0)
    sending.client.close()
    receiving.client.close()
    for _ in range(4):
        mesh.settle()
    assert [len(mesh[name].table) for name in "abc"] == [0, 0, 0]
    assert not mesh["b"].table.transit
    assert {name: counts(mesh[name]) for name in "abc"} == wanted
    assert transit.count_of("M0q") == 3


def test_what_is_lost_with_a_connection_has_been_counted() -> None:
    mesh = line("a", "b")
    mesh["b"].client().receiver("q", credit=5)
    sending = mesh["a"].client().sender("q")
    mesh.run()
    sending.send(b"1")
    sending.send(b"2")
    mesh.run()
    mesh.cut("a", "b")
    assert counts(mesh["a"]) == (2, 0, 0, 2)
    assert counts(mesh["b"]) == (0, 2, 2, 0)


@pytest.mark.parametrize("how", ["rest", "abort", "loss", "detach"])
def test_a_message_whose_head_has_not_all_come_is_in_no_number_yet(how: str) -> None:
    mesh = Mesh("b")
    receiving = mesh["b"].client().receiver("q", credit=5)
    router = mesh["b"].client(role="inter-router")
    properties = {Symbol("qd.destination"): "b", Symbol("qd.cost"): ULong(5)}
    sending = router.sender("q", properties=properties)
    octets = message("m")
    sending.send(octets)
    assert counts(mesh["b"]) == (0, 1, 1, 0)
    sending.send(octets[:1], more=True, message_format=0)
    assert counts(mesh["b"]) == (0, 1, 1, 0)
    if how == "rest":
        sending.go_on(octets[1:])
    elif how == "abort":
        sending.abort()
    elif how == "detach":
        sending.detach()
    else:
        router.lose()
    told = {"rest": (0, 2, 2, 0), "abort": (0, 1, 2, 0)}.get(how, (0, 1, 1, 0))
    assert counts(mesh["b"]) == told
    assert len(receiving.received) == 1 + (how == "rest")


def test_a_multicast_is_counted_for_each_router_that_it_goes_to() -> None:
    mesh = line("a", "b", "c", rules=[AddressRule(True, "q", "multicast")])
    for name in "abc":
        mesh[name].client().receiver("q", credit=5)
    mesh.settle()
    sending = mesh["b"].client().sender("q")
    mesh.settle()
    sending.send(message("m"))
    mesh.run()
    assert [counts(mesh[name]) for name in "abc"] == [(0, 1, 1, 0), (1, 1, 0, 2), (0, 1, 1, 0)]


def test_links_that_are_routed_are_counted_alike() -> None:
    pair = Pair(routers=3)
    pair.attach(sender("q.a"))
    pair.from_container(flow(credit=3))
    for number in range(3):
        pair.client >> On(0, Transfer(0, number, b"%d" % number), message("m"))
    wanted = [(3, 0, 0, 3), (0, 0, 3, 3), (0, 3, 3, 0)]
    assert [counts(router) for router in pair.routers] == wanted
    if pair.mesh is not None:
        pair.mesh.cut("router-0", "router-1")
    assert [counts(router) for router in pair.routers] == wanted
    assert [router.table.total().to_containers for router in pair.routers] == [0, 0, 3]


def test_edges_are_routers_too() -> None:
    world = one_interior("E", "F")
    world.receiver("F", "q")
    sending = world.sender("E", "q")
    world.run(1)
    world.offer(sending, 4)
    world.run(1)
    found = {}
    for name in "EIF":
        total = world.host(name).hub.table.total()
        found[name] = entered(total), left(total), total.from_routers, total.to_routers
    assert found == {"E": (4, 0, 0, 4), "I": (0, 0, 4, 4), "F": (0, 4, 4, 0)}


def test_what_has_passed_is_kept_for_so_many_addresses_and_those_that_are_wanted() -> None:
    passed = TransitCounts({"M0wanted": {}})
    for name in ("wanted", *(f"q{number}" for number in range(MOST_PASSED))):
        address = Address(name, 0)
        passed.add_transit(address)
        address.counters.to_routers = 2
        passed.remove_transit(address)
    idle = Address("idle", 0)
    passed.add_transit(idle)
    passed.remove_transit(idle)
    assert [passed.count_of(key) for key in ("M0wanted", "M0q0", "M0idle")] == [2, 2, 0]
    last = Address("last", 0)
    passed.add_transit(last)
    last.counters.to_routers = 1
    passed.remove_transit(last)
    assert [passed.count_of(key) for key in ("M0wanted", "M0q0", "M0last")] == [2, 0, 0]
