"""The next hops of exchanges are looked at one after the other, and each of them in the end."""

from __future__ import annotations

from router.core.addresses.bindings import BindingRule, ExchangeRule
from router.core.addresses.next_hops import NextHops
from router.core.model.address import Address
from router.core.network.lanes import IDLE_S
from router.core.network.network import MOST_AT_ONCE
from router.core.routers.routing_state import mobile_key

from support.far_routers import Mesh
from support.in_memory import Router
from support.turns import most_in_a_turn

MANY = 2 * MOST_AT_ONCE + 10
NAMES = [f"q{number}" for number in range(MANY)]


def with_exchange(router: Router, names: list[str]) -> Address:
    """Return the address of an exchange that leads to all of these names."""
    rules = [BindingRule(name, "e", None, name) for name in names]
    router.forwarder.exchanges.configure([ExchangeRule("e", "e")], rules)
    router.finish_turn()
    address = router.table.in_use("e")
    assert address is not None
    return address


def taken(next_hops: NextHops, most: int = MANY) -> list[str]:
    names: list[str] = []
    while next_hops and len(names) < most:
        names.append(next_hops.take().name)
    return sorted(names)


def test_each_next_hop_is_taken_once() -> None:
    address = with_exchange(Router(), ["one", "two", "three"])
    next_hops = NextHops()
    assert not next_hops
    next_hops.note(address)
    assert taken(next_hops) == ["one", "three", "two"]


def test_what_is_noted_meanwhile_is_taken_once_more_when_all_have_been() -> None:
    address = with_exchange(Router(), ["one", "two", "three"])
    next_hops = NextHops()
    next_hops.note(address)
    first = next_hops.take().name
    for _ in range(2):
        next_hops.note(address)
    assert sorted([first, *taken(next_hops, 2)]) == ["one", "three", "two"]
    assert taken(next_hops) == ["one", "three", "two"]
    assert not next_hops


def test_an_address_that_leads_nowhere_else_has_none() -> None:
    router = Router()
    router.client().sender("q")
    address = router.table.in_use("q")
    assert address is not None
    next_hops = NextHops()
    next_hops.note(address)
    assert not next_hops


def test_very_many_next_hops_have_their_links_over_several_turns() -> None:
    mesh = Mesh("a", "b")
    mesh.join("a", "b")
    mesh.learn()
    router = mesh["a"]
    with_exchange(router, NAMES)
    there = mesh["b"].client()
    for name in NAMES:
        there.receiver(name, credit=1)
    mesh.run()
    network = router.forwarder.network
    assert mobile_key(NAMES[0]) in network.reach.wanted
    made = network.links_made
    senders = []
    most = most_in_a_turn(
        router,
        lambda: network.links_made,
        lambda: senders.append(router.client().sender("e")),
    )
    assert 0 < most < MANY
    assert network.links_made == made + MANY
    mesh.run()
    senders[0].detach()
    mesh.run()
    mesh.wait(1)
    for _ in range(int(IDLE_S) + 2):
        mesh.wait(1)
    assert network.outward.addresses() == []


def test_those_that_go_meanwhile_are_left_alone() -> None:
    mesh = Mesh("a", "b")
    mesh.join("a", "b")
    mesh.learn()
    router = mesh["a"]
    with_exchange(router, NAMES)
    there = mesh["b"].client()
    for name in NAMES:
        there.receiver(name, credit=1)
    mesh.run()
    network = router.forwarder.network
    router.is_patient = True
    router.client().sender("e")
    made = len(network.outward.addresses())
    assert made < MANY
    router.forwarder.exchanges.configure([], [])
    router.catch_up()
    assert not network.is_behind
    mesh.run()
    for _ in range(int(IDLE_S) + 4):
        mesh.wait(1)
    assert network.outward.addresses() == []
