"""Messages go to receivers at other routers, by links along the cheapest way."""

from __future__ import annotations

import itertools

import pytest

from router.amqp.message import decode_message
from router.amqp.performatives import Accepted, Rejected
from router.core.model.address import BALANCED, ROUTED, UNAVAILABLE
from router.core.network.network import MOST_AT_ONCE, ROUTERS_AT_ONCE
from router.core.routers.routing_state import Interest, Path, Place, mobile_key

from support.far_routers import Mesh
from support.in_memory import Router
from support.turns import most_in_a_turn
from support.waypoints import message

NAMES = [f"q{number}" for number in range(100)]


def line(*names: str) -> Mesh:
    mesh = Mesh(*names)
    for one, other in itertools.pairwise(names):
        mesh.join(one, other)
    mesh.learn()
    return mesh


def test_a_message_goes_to_a_receiver_at_another_router() -> None:
    mesh = line("a", "b")
    receiver = mesh["b"].client().receiver("q", credit=3)
    sender = mesh["a"].client().sender("q")
    mesh.run()
    assert sender.credit == 3
    sending = sender.send(b"hello")
    mesh.run()
    assert receiver.take() == b"hello"
    receiver.settle()
    mesh.run()
    assert isinstance(sending.outcome, Accepted)


def test_who_may_ask_nothing_of_management_may_ask_nothing_of_other_routers_either() -> None:
    mesh = line("a", "b")
    node = mesh["b"].client(is_own=True).receiver("_topo/0/b/$management", credit=10)
    name = "_topo/0/b/$management"
    client = mesh["a"].client(management="none")
    refused = client.sender(name)
    assert refused.detached is not None
    assert refused.detached.error is not None
    assert refused.detached.error.condition == "amqp:not-allowed"
    anonymous = client.sender(None)
    sending = anonymous.send(message("ask", f"amqp:/{name}"))
    mesh.run()
    assert isinstance(sending.outcome, Rejected)
    mesh["a"].client(management="read").sender(None).send(message("ask", name))
    mesh.run()
    assert len(node.received) == 1
    # it is in use by now, and still not for everybody
    again = anonymous.send(message("ask", name))
    mesh.run()
    assert isinstance(again.outcome, Rejected)
    assert len(node.received) == 1


def test_annotations_are_written_on_the_way_only_for_who_is_shown_them() -> None:
    mesh = line("a", "b", "c")
    shown = mesh["c"].client(shows_annotations=True).receiver("shown", credit=1)
    plain = mesh["c"].client().receiver("plain", credit=1)
    sender, other = (mesh["a"].client().sender(name) for name in ("shown", "plain"))
    mesh.run()
    sender.send(message("x"))
    other.send(message("x"))
    mesh.run()
    annotations = decode_message(shown.take()).message_annotations
    assert annotations is not None
    assert annotations["x-opt-qd.trace"] == ["0/a", "0/b", "0/router"]
    assert annotations["x-opt-qd.ingress"] == "0/a"
    assert plain.take() == message("x")


@pytest.mark.parametrize("key", ["M", "M0", "M:q", "M\u20acq", "H", "C", "E", ""])
def test_whatever_others_say_that_they_receive_from(key: str) -> None:
    mesh = line("a", "b")
    receiver = mesh["b"].client().receiver("q", credit=1)
    sender = mesh["a"].client().sender("q")
    mesh.run()
    reach = mesh["a"].forwarder.reach
    reach.set_interest("b", key, Interest(BALANCED))
    mesh["a"].finish_turn()
    mesh.settle()
    sender.send(message("x"))
    mesh.run()
    assert receiver.take() == message("x")
    reach.set_interest("b", key, None)
    mesh.settle()


@pytest.mark.parametrize("treatment", [UNAVAILABLE, ROUTED, 15])
def test_a_treatment_that_addresses_have_nowhere_else_is_not_taken_over(treatment: int) -> None:
    mesh = line("a", "b")
    receiver = mesh["b"].client().receiver("q", credit=10)
    mesh.run()
    mesh["a"].forwarder.reach.set_interest("b", "M0q", Interest(treatment))
    senders = [mesh["a"].client().sender("q") for _ in range(2)]
    mesh.settle()
    for sender in senders:
        sender.send(message("x"))
    mesh.run()
    assert len(receiver.received) == 2


def test_addresses_that_many_routers_receive_from_are_seen_to_over_several_turns() -> None:
    router = Router(router_id="a")
    network, reach = router.forwarder.network, router.forwarder.reach
    network.turn_on()
    far = [f"r{number}" for number in range(10 * ROUTERS_AT_ONCE)]
    reach.set_paths({}, {each: Path("b", 1) for each in far}, lambda _: None)
    client = router.client()
    for name in NAMES:
        for each in far:
            reach.set_interest(each, mobile_key(name), Interest(BALANCED))
        client.sender(name)
    asked = []
    nearest = reach.nearest

    def nearest_counted(key: str) -> list[Place]:
        asked.append(key)
        return nearest(key)

    reach.nearest = nearest_counted  # type: ignore[method-assign]
    reach.set_paths({}, {each: Path("b", 2) for each in far}, lambda _: None)
    most = most_in_a_turn(router, lambda: len(set(asked)), lambda: None)
    assert 0 < most <= MOST_AT_ONCE // 10
    assert set(asked) == {mobile_key(name) for name in NAMES}
