"""Addresses with local receivers are advertised to the network, and withdrawn with the last one."""

from __future__ import annotations

from typing import Any

from router.amqp.performatives import Source, Target
from router.amqp.types import Symbol
from router.core.addresses.node_names import mark_of
from router.core.model.address import BALANCED, CLOSEST, MULTICAST
from router.core.routers.routing_state import Interest

from support.far_routers import Mesh
from support.in_memory import Router


def alone(**fields: Any) -> Router:
    router = Mesh("a", **fields)["a"]
    router.finish_turn()
    return router


def test_an_address_is_told_with_its_first_receiver_and_withdrawn_with_its_last() -> None:
    router = alone()
    here = router.forwarder.reach.own_interests
    one, other = router.client().receiver("q"), router.client().receiver("q")
    assert here == {"M0q": Interest(BALANCED)}
    one.detach()
    assert here == {"M0q": Interest(BALANCED)}
    other.client.lose()
    assert here == {}


def test_the_treatment_is_told_and_whether_somebody_is_shown_the_way() -> None:
    router = alone(rules=[(False, "m", "multicast"), (False, "c", "closest")])
    here = router.forwarder.reach.own_interests
    router.client().receiver("c")
    router.client().receiver("m")
    shown = router.client(shows_annotations=True).receiver("m")
    assert here == {"M0c": Interest(CLOSEST), "M0m": Interest(MULTICAST, shows=True)}
    shown.detach()
    assert here["M0m"] == Interest(MULTICAST)


def test_senders_and_dynamic_nodes_are_nobody_elses_business() -> None:
    router = alone()
    router.table.add_own_node("$management", "_topo/0/a/$management")
    router.client().sender("q")
    router.client(is_own=True).receiver("$management")
    router.client().receiver("_topo/0/a/x")
    dynamic = router.client().receiver(None, source=Source(dynamic=True))
    assert dynamic.address is not None
    assert router.forwarder.reach.own_interests == {}


def test_a_topic_that_was_made_for_one_link_is_told_until_it_is_over() -> None:
    router = alone()
    router.table._new_name = "amqp:/_topo/0/a/temp.{}".format
    target = Target(dynamic=True, capabilities=(Symbol("temporary-topic"),))
    maker = router.client().sender(None, target=target)
    assert maker.attach is not None
    assert isinstance(maker.attach.target, Target)
    topic = maker.attach.target.address
    router.client().receiver(topic)
    assert list(router.forwarder.reach.own_interests.values()) == [Interest(MULTICAST)]
    maker.detach()
    assert router.forwarder.reach.own_interests == {}


def test_who_receives_from_a_node_of_another_router_is_told() -> None:
    router = alone()
    client = router.client()
    name = f"_topo/0/b/temp.1.{mark_of(client.connection, is_receiver=False)}"
    client.receiver(name)
    assert router.forwarder.reach.own_interests == {f"M0{name}": Interest(BALANCED)}


def test_what_was_received_before_is_told_when_the_network_is_turned_on() -> None:
    router = Router(router_id="a")
    router.client().receiver("q")
    router.client().receiver("q").detach()
    assert router.forwarder.reach.own_interests == {}
    router.forwarder.network.turn_on()
    router.finish_turn()
    assert list(router.forwarder.reach.own_interests) == ["M0q"]
    address = router.table.in_use("q")
    assert address is not None
    assert router.forwarder.network.interest.receivers(address) == 1


def test_phases_and_fallbacks_have_keys_of_their_own() -> None:
    router = alone(rules=[(False, "q", "balanced", True, None, 0, 1, True)])
    router.client().receiver("q")
    fallback = Source(address="q", capabilities=(Symbol("qd.fallback"),))
    router.client().receiver("q", source=fallback)
    assert set(router.forwarder.reach.own_interests) == {"M1q", "MFq"}
