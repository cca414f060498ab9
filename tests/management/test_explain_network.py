"""EXPLAIN in a network of routers: where else it is received, and what leads there."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from router.amqp.performatives import Source
from router.amqp.types import Symbol
from router.config.listeners import ListenerSettings
from router.config.model import Configuration
from router.core.addresses.rules import AddressRule, Rules
from router.core.diagnosis.blocking import MEANINGS, Reason
from router.core.network.idle_links import GRACE_S
from router.management.explain import explain
from router.management.requests import Request
from router.management.views import RouterView

from support.far_routers import Mesh

MULTICAST = [(True, "m", "multicast")]
NO_LINK = "no link leads there yet: one is attached when a client sends"


def line(**fields: Any) -> Mesh:
    """Three routers, each connected to the next."""
    mesh = Mesh("a", "b", "c", **fields)
    mesh.join("a", "b", 2)
    mesh.join("b", "c", 3)
    mesh.learn()
    return mesh


def explained(
    mesh: Mesh, router: str, address: str, direction: str = "send", **configured: Any
) -> dict[str, Any]:
    """Return a router's explanation of an address, and check that asking changes nothing."""
    core = mesh[router]
    observed: Any = SimpleNamespace(
        table=core.table, forwarder=core.forwarder, turn=core.turn, auto_links=None, pumps={}
    )
    view = RouterView(router, "host", Configuration(**configured), observed, 0.0)
    rotations = {each.key: each.rotation for each in core.table.addresses()}
    asked = {"operation": "EXPLAIN", "address": address, "direction": direction}
    told = explain(view, Request(asked, None))
    # nothing is changed by asking
    assert {each.key: each.rotation for each in core.table.addresses()} == rotations
    assert told["flows"] == (told["allowed"] and not told["reasons"])
    return told


def reasons(told: dict[str, Any]) -> list[tuple[str, str]]:
    return [(each["reason"], each["text"]) for each in told["reasons"]]


def test_alone_there_is_no_network() -> None:
    mesh = Mesh("a")
    mesh["a"].forwarder.network.is_on = False
    assert explained(mesh, "a", "q")["network"] is None


def test_a_router_without_ports_for_clients_tells_of_the_network() -> None:
    mesh = line()
    mesh["c"].client().receiver("q", credit=5)
    mesh.settle()
    routers = ListenerSettings(name="routers", port=5673, role="inter-router")
    told = explained(mesh, "a", "q", listeners=(routers,))
    assert [each["admits"] for each in told["listeners"]] == [False]
    assert reasons(told) == [("not_attached", f"router c: {NO_LINK}")]


def test_one_that_is_received_elsewhere_and_sent_to_by_nobody() -> None:
    mesh = line()
    mesh["c"].client().receiver("q", credit=5)
    mesh.settle()
    told = explained(mesh, "a", "q")
    assert (told["flows"], told["inUse"]) == (False, False)
    assert reasons(told) == [("not_attached", f"router c: {NO_LINK}")]
    (router,) = told["network"]["routers"]
    joint = mesh["a"].forwarder.reach.connection("b")
    assert joint is not None
    assert router == {
        "router": "c",
        "cost": 5,
        "via": "b",
        "way": [],
        "connection": str(joint.number),
        "distribution": "balanced",
        "used": True,
        "attached": False,
        "credit": 0,
        "unsettled": 0,
        "chosen": False,
        "reason": "not_attached",
        "text": NO_LINK,
    }
    assert (told["route"], told["cost"]) == (["a"], 0)
    assert mesh["a"].table.in_use("q") is None


def test_the_credit_of_a_router_and_the_way_of_the_next_message() -> None:
    mesh = line()
    receiver = mesh["c"].client().receiver("q")
    mesh["a"].client().sender("q")
    mesh.settle()
    words = "waits for credit from router c, via b"
    told = explained(mesh, "a", "q")
    assert reasons(told) == [("no_credit", words)]
    (router,) = told["network"]["routers"]
    assert (router["attached"], router["credit"], router["text"]) == (True, 0, words)
    (link,) = told["destinations"]
    assert (link["router"], link["cost"], link["text"]) == ("c", 5, words)
    (sender,) = told["senders"]
    assert sender["text"] == words
    receiver.grant(7)
    mesh.settle()
    told = explained(mesh, "a", "q")
    assert told["flows"]
    (router,) = told["network"]["routers"]
    assert (router["credit"], router["chosen"], router["reason"]) == (7, True, None)
    assert (told["route"], told["cost"]) == (["a", "b", "c"], 5)
    # and at the other end, where it comes by the mesh
    told = explained(mesh, "c", "q", "receive")
    assert told["flows"]
    assert [each["container"] for each in told["senders"]] == ["b"]


def test_the_next_message_takes_the_way_that_the_core_would_have_it_take() -> None:
    mesh = line(default="balanced")
    mesh["b"].client().receiver("q", credit=50)
    mesh["c"].client().receiver("q", credit=50)
    sender = mesh["a"].client().sender("q")
    mesh.settle()
    for _ in range(10):
        told = explained(mesh, "a", "q")
        (chosen,) = [each for each in told["network"]["routers"] if each["chosen"]]
        address = mesh["a"].table.in_use("q")
        assert address is not None
        before = {each.link: each.link.deliveries for each in address.consumers}
        sender.send(b"x")
        (taken,) = [each for each in address.consumers if each.link.deliveries > before[each.link]]
        way = mesh["a"].forwarder.network.outward.link_to(address, chosen["router"])
        assert way is not None
        assert way.consumer is taken
        mesh.run()


def test_closest_leaves_the_others_out() -> None:
    mesh = line(default="closest")
    mesh["b"].client().receiver("q", credit=5)
    mesh["c"].client().receiver("q", credit=5)
    mesh["a"].client().sender("q")
    mesh.settle()
    near, far = explained(mesh, "a", "q")["network"]["routers"]
    assert (near["router"], near["used"], near["chosen"]) == ("b", True, True)
    assert (far["router"], far["used"], far["text"]) == ("c", False, "other routers are nearer")


def test_a_link_that_failed_says_when_it_is_tried_again() -> None:
    mesh = line()
    mesh["c"].client().receiver("q", credit=5)
    mesh["a"].client().sender("q")
    mesh.settle()
    # `b` does not know any more of a way to `c`
    mesh["b"].forwarder.reach.set_paths({}, {}, lambda _: None)
    mesh["b"].finish_turn()
    mesh.wait(GRACE_S)
    told = explained(mesh, "a", "q")
    ((reason, text),) = reasons(told)
    assert (reason, text[:10]) == ("not_attached", "router c: ")
    assert "the next attempt is in 0.5 s" in text


@pytest.mark.parametrize("name", ["_topo/0/c/x", "amqp:/_topo/0/c/x"])
def test_a_name_that_says_where_it_leads(name: str) -> None:
    mesh = line()
    (router,) = explained(mesh, "a", name)["network"]["routers"]
    assert (router["router"], router["via"], router["distribution"]) == ("c", "b", None)
    mesh.cut("b", "c")
    mesh.learn()
    told = explained(mesh, "a", name)
    assert told["network"]["routers"] == []
    assert reasons(told) == [("no_way", "router c cannot be reached")]
    # one of its own is received here, or by nobody
    assert reasons(explained(mesh, "a", "_topo/0/a/x")) == [
        ("no_consumer", MEANINGS[Reason.NO_CONSUMER])
    ]


def test_branches_say_who_is_behind_and_whether_they_agree() -> None:
    mesh = line(rules=MULTICAST)
    receiver = mesh["c"].client().receiver("m")
    mesh.settle()
    told = explained(mesh, "a", "m")
    assert told["network"]["routers"] == []
    (branch,) = told["network"]["branches"]
    assert (branch["router"], branch["routers"], branch["behind"]) == ("b", ["c"], 1)
    assert (branch["attached"], branch["text"]) == (False, NO_LINK)
    assert reasons(told) == [("not_attached", f"router b: {NO_LINK}")]
    mesh["a"].client().sender("m")
    mesh.hold("a", "b")
    mesh.settle()
    (branch,) = explained(mesh, "a", "m")["network"]["branches"]
    assert not branch["agreed"]
    assert branch["text"] == "waits until router b agrees on the multicast tree"
    mesh.hold("a", "b", held=False)
    mesh.settle()
    receiver.grant(3)
    mesh.settle()
    told = explained(mesh, "a", "m")
    (branch,) = told["network"]["branches"]
    assert (branch["agreed"], branch["chosen"], branch["reason"]) == (True, True, None)
    assert told["flows"]


def test_what_comes_by_another_tree_is_not_for_who_sends_here() -> None:
    mesh = line(rules=MULTICAST)
    mesh["a"].client().receiver("m", credit=5)
    mesh["b"].client().receiver("m", credit=5)
    mesh["c"].client().sender("m")
    mesh.settle()
    chosen = [each for each in explained(mesh, "b", "m")["destinations"] if each["chosen"]]
    assert [each["router"] for each in chosen] == [None]


def test_a_router_that_does_not_give_to_all_is_left_out() -> None:
    mesh = Mesh("a", "b")
    mesh.join("a", "b")
    mesh["a"].table.rules = Rules([AddressRule(True, "m", "multicast")], "balanced")
    mesh["b"].table.rules = Rules([AddressRule(True, "m", "closest")], "balanced")
    mesh.learn()
    mesh["b"].client().receiver("m", credit=10)
    mesh["a"].client().receiver("m", credit=10)
    mesh["a"].client().sender("m")
    mesh.settle()
    (branch,) = explained(mesh, "a", "m")["network"]["branches"]
    assert (branch["reason"], branch["agreed"]) == ("left_out", False)


def test_those_who_take_what_nobody_else_does() -> None:
    mesh = line()
    for name in "abc":
        rule = AddressRule(True, "q", "balanced", fallback=True)
        mesh[name].table.rules = Rules([rule], "balanced")
    fallback = Source(address="q", capabilities=(Symbol("qd.fallback"),))
    mesh["c"].client().receiver("q", source=fallback, credit=4)
    mesh.settle()
    assert reasons(explained(mesh, "a", "q")) == [("not_attached", f"router c: {NO_LINK}")]
    mesh["a"].client().sender("q")
    mesh.settle()
    told = explained(mesh, "a", "q")
    (router,) = told["network"]["routers"]
    assert (told["flows"], told["toFallback"], router["chosen"]) == (True, True, True)
    mesh["b"].client().receiver("q", credit=4)
    mesh.settle()
    told = explained(mesh, "a", "q")
    assert [each["router"] for each in told["network"]["routers"]] == ["b"]
    assert not told["toFallback"]
