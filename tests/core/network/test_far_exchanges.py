"""Exchanges whose next hops are received from at other routers."""

from __future__ import annotations

import pytest

from router.amqp.performatives import Accepted, Released
from router.core.exchanges import BindingRule, ExchangeRule
from router.core.table import AddressRule

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
