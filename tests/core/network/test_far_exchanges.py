"""Exchanges whose next hops are received from at other routers."""

from __future__ import annotations

import pytest

from router.amqp.performatives import Accepted, Released
from router.core.addresses.bindings import BindingRule, ExchangeRule
from router.core.addresses.rules import AddressRule

from support.far_routers import Mesh
from support.waypoints import message, texts

RULES = [
    AddressRule(True, "many", "multicast"),
    AddressRule(True, "fewest", "balanced"),
    AddressRule(True, "near", "closest"),
]
HOPS = ["many", "fewest", "near", "nobody"]


def network() -> Mesh:
    """Three routers in a line; `a` has an exchange whose bindings lead to all of `HOPS`."""
    mesh = Mesh("a", "b", "c", rules=RULES)
    mesh.join("a", "b")
    mesh.join("b", "c")
    mesh.learn()
    rules = [BindingRule(hop, "e", "x", hop) for hop in HOPS]
    mesh["a"].forwarder.exchanges.configure([ExchangeRule("e", "e")], rules)
    mesh["a"].finish_turn()
    mesh.settle()
    return mesh


@pytest.mark.parametrize("at", ["a", "b", "c"])
def test_a_message_goes_to_next_hops_at_other_routers(at: str) -> None:
    mesh = network()
    names = ["many", "many", "fewest", "near"]
    links = [mesh["c"].client().receiver(name, credit=5) for name in names]
    mesh.settle()
    sender = mesh[at].client().sender("e")
    mesh.settle()
    assert sender.credit > 0
    sending = sender.send(message("m", subject="x"))
    mesh.settle()
    assert [texts(link) for link in links] == [["m"]] * 4
    for link in links:
        link.settle()
    mesh.settle()
    assert sending.outcome == Accepted()


def test_a_message_that_leads_nowhere_is_its_sender_s_again() -> None:
    mesh = network()
    link = mesh["c"].client().receiver("many", credit=5)
    sender = mesh["a"].client().sender("e")
    mesh.settle()
    sending = sender.send(message("m", subject="y"))
    mesh.settle()
    assert sending.outcome == Released()
    assert link.received == []


def exchanges_at(mesh: Mesh, **hops: tuple[str, str]) -> None:
    """Give routers an exchange each: its address, and where all that is sent to it leads."""
    for name, (address, hop) in hops.items():
        rule = BindingRule("binding", address, None, hop)
        mesh[name].forwarder.exchanges.configure([ExchangeRule(address, address)], [rule])
        mesh[name].finish_turn()
    mesh.settle()


@pytest.mark.parametrize(
    ("exchange", "at", "copies"),
    [("near", "c", 1), ("fewest", "c", 1), ("many", "c", 2), ("many", "a", 1)],
)
def test_one_exchange_at_two_routers(exchange: str, at: str, copies: int) -> None:
    """As with all who receive, each router's gets a copy of a multicast, and leads it on."""
    mesh = Mesh("a", "b", "c", rules=RULES)
    for one, other in ("ab", "bc", "ca"):
        mesh.join(one, other)
    mesh.learn()
    exchanges_at(mesh, a=(exchange, "hop"), b=(exchange, "hop"))
    link = mesh["c"].client().receiver("hop", credit=5)
    mesh.settle()
    sender = mesh[at].client().sender(exchange)
    mesh.settle()
    sending = sender.send(message("m"))
    mesh.settle()
    assert texts(link) == ["m"] * copies
    for _ in range(copies):
        link.settle()
    mesh.settle()
    assert sending.outcome == Accepted()


@pytest.mark.parametrize("treatment", ["multicast", "balanced", "closest"])
@pytest.mark.parametrize("is_anonymous", [False, True])
def test_exchanges_that_lead_to_each_other_over_routers_send_nothing_round(
    treatment: str, is_anonymous: bool
) -> None:
    """Each gives the other as much credit as it has itself, which is none."""
    mesh = Mesh("a", "b", rules=[AddressRule(True, name, treatment) for name in ("x", "y")])
    mesh.join("a", "b")
    mesh.learn()
    exchanges_at(mesh, a=("x", "y"), b=("y", "x"))
    sender = mesh["a"].client().sender(None if is_anonymous else "x")
    mesh.settle()
    assert is_anonymous == (sender.credit > 0)
    if is_anonymous:
        sender.send(message("m", to="x"))
        mesh.settle()
    total = mesh["b"].table.total()
    assert (total.ingress, total.egress) == (0, 0)


def test_an_exchange_s_own_receivers_at_other_routers_get_nothing_from_it() -> None:
    mesh = network()
    here = mesh["a"].client().receiver("e", credit=5)
    elsewhere = mesh["b"].client().receiver("e", credit=5)
    mesh.settle()
    sender = mesh["a"].client().sender("e")
    mesh.settle()
    sender.send(message("m", subject="x"))
    mesh.settle()
    assert (texts(here), texts(elsewhere)) == (["m"], [])
