"""Ways through a router: made for those before it, with the next one's credit, and forgotten."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from router.amqp.performatives import Accepted, Modified, Released
from router.core.deliveries import unsent
from router.core.model.address import Producer
from router.core.network.transit import Transit
from router.core.routers.link_properties import COST, DESTINATION
from router.core.routers.routing_state import Interest, Path
from router.engine.deferred import CHANGES_AT_ONCE

from support.far_routers import Mesh
from support.in_memory import ReceivingLink, SendingLink
from support.turns import most_in_a_turn


def line(*names: str, **fields: Any) -> Mesh:
    mesh = Mesh(*names, **fields)
    for one, other in pairwise(names):
        mesh.join(one, other)
    mesh.learn()
    return mesh


def pair(mesh: Mesh, start: str, end: str, credit: int) -> tuple[SendingLink, ReceivingLink]:
    receiver = mesh[end].client().receiver("q", credit=credit)
    sender = mesh[start].client().sender("q")
    mesh.run()
    return sender, receiver


def square() -> Mesh:
    """From a to d by b, which is cheaper, or by c."""
    mesh = Mesh("a", "b", "c", "d")
    mesh.join("a", "b", 1)
    mesh.join("b", "d", 1)
    mesh.join("a", "c", 2)
    mesh.join("c", "d", 2)
    mesh.learn()
    return mesh


def is_clear(mesh: Mesh) -> bool:
    """Whether no router is on anybody's way."""
    return not any(router.table.transit for router in mesh.routers.values())


def test_credit_goes_all_the_way_and_so_does_the_outcome() -> None:
    mesh = line("a", "b", "c", "d")
    sender, receiver = pair(mesh, "a", "d", 7)
    assert sender.credit == 7
    sent = [sender.send(b"%d" % number) for number in range(7)]
    mesh.run()
    assert [receiver.take() for _ in range(7)] == [b"%d" % number for number in range(7)]
    receiver.settle()
    mesh.run()
    assert all(isinstance(each.outcome, Accepted) for each in sent)
    counters = [address.counters for address in mesh["b"].table.transit.values()]
    assert [(each.ingress, each.egress) for each in counters] == [(7, 7)]


def test_a_receiver_without_credit_gets_no_more_than_one_message_a_hop_ahead() -> None:
    mesh = line("a", "b", "c")
    sender, receiver = pair(mesh, "a", "c", 3)
    count = 0
    while sender.can_send():
        sender.send(b"x")
        count += 1
        mesh.run()
    # what was granted, and one that each of three routers may have
    assert 3 <= count <= 3 + 3
    assert len(receiver.received) == 3
    receiver.grant(10)
    mesh.run()
    assert len(receiver.received) == count


def test_a_drain_goes_all_the_way() -> None:
    mesh = line("a", "b", "c")
    sender, receiver = pair(mesh, "a", "c", 0)
    receiver.grant(5, drain=True)
    mesh.run()
    if sender.can_send():
        sender.send(b"x")
    mesh.settle()
    assert receiver.credit == 0
    assert receiver.drained + len(receiver.received) == 5


def test_a_large_message_goes_through_before_it_is_complete() -> None:
    mesh = line("a", "b", "c")
    sender, receiver = pair(mesh, "a", "c", 1)
    sending = sender.send(b"x" * 1000, more=True)
    mesh.run()
    assert receiver.received[0].payload == b"x" * 1000
    for _ in range(50):
        sender.go_on(b"y" * 60000, more=True)
        mesh.run()
    sender.go_on(b"z")
    mesh.run()
    assert receiver.take() == b"x" * 1000 + b"y" * 60000 * 50 + b"z"
    receiver.settle()
    mesh.run()
    assert isinstance(sending.outcome, Accepted)


def test_an_abort_goes_all_the_way() -> None:
    mesh = line("a", "b", "c")
    sender, receiver = pair(mesh, "a", "c", 2)
    sender.send(b"x" * 1000, more=True)
    mesh.run()
    sender.abort()
    mesh.run()
    assert receiver.received[0].aborted
    sender.send(b"y")
    mesh.run()
    assert receiver.received[1].payload == b"y"


def test_a_way_is_forgotten_when_nobody_uses_it() -> None:
    mesh = line("a", "b", "c")
    sender, receiver = pair(mesh, "a", "c", 2)
    assert not is_clear(mesh)
    total = sender.send(b"x")
    mesh.run()
    receiver.settle()
    mesh.run()
    sender.detach()
    for _ in range(20):
        mesh.settle()
    assert total.outcome is not None
    assert is_clear(mesh)
    assert mesh["b"].table.total().egress == 1
    assert mesh["b"].table.total().to_routers == 1
    assert all(len(mesh[name].table) == (name == "c") for name in "abc")


def test_another_way_is_taken_when_the_cheapest_is_lost() -> None:
    mesh = square()
    sender, receiver = pair(mesh, "a", "d", 10)
    first = sender.send(b"one")
    mesh.run()
    assert mesh["b"].table.transit
    mesh.cut("b", "d")
    mesh.run()
    # nobody knows what became of what was under way
    assert isinstance(first.outcome, Modified)
    mesh.learn()
    mesh.settle()
    assert mesh["c"].table.transit
    assert not mesh["b"].table.transit
    second = sender.send(b"two")
    mesh.run()
    receiver.settle()
    mesh.run()
    assert receiver.received[-1].payload == b"two"
    assert isinstance(second.outcome, Accepted)


def test_what_is_under_way_is_settled_by_the_way_it_went_when_a_better_one_comes() -> None:
    mesh = Mesh("a", "b", "c", "d")
    mesh.join("a", "c", 2)
    mesh.join("c", "d", 2)
    mesh.learn()
    sender, receiver = pair(mesh, "a", "d", 10)
    first = sender.send(b"one")
    mesh.run()
    mesh.join("a", "b", 1)
    mesh.join("b", "d", 1)
    mesh.learn()
    mesh.run()
    second = sender.send(b"two")
    mesh.run()
    assert mesh["b"].table.transit
    assert mesh["c"].table.transit
    receiver.settle()
    mesh.settle()
    assert isinstance(first.outcome, Accepted)
    assert isinstance(second.outcome, Accepted)
    mesh.settle()
    assert not mesh["c"].table.transit


def test_routers_that_think_differently_form_no_circle() -> None:
    mesh = Mesh("a", "b", "c", "d")
    for one, other in ("ab", "bc", "ca", "cd"):
        mesh.join(one, other)
    mesh.learn()
    sender, receiver = pair(mesh, "b", "d", 10)
    mesh.run()
    mesh.cut("c", "d")
    mesh.join("a", "d", 5)
    # a does not know yet that there is a way from it, and c believes that there is
    mesh.learn("c")
    mesh.run()
    sendings: list[Any] = []
    while sender.can_send() and len(sendings) < 10:
        sendings.append(sender.send(b"x"))
        mesh.run()
    mesh.settle()
    passed = sum(
        address.counters.ingress
        for router in mesh.routers.values()
        for address in router.table.transit.values()
    )
    assert passed <= 2 * len(sendings) + 2
    mesh.learn()
    mesh.settle()
    receiver.settle()
    receiver.grant(10)
    mesh.settle()
    last = sender.send(b"last")
    mesh.settle()
    receiver.settle()
    mesh.settle()
    assert isinstance(last.outcome, Accepted)
    assert all(isinstance(each.outcome, Accepted | Released) for each in sendings)


def test_what_waits_is_released_when_there_is_no_way_any_more() -> None:
    mesh = line("a", "b", "c")
    sender, receiver = pair(mesh, "a", "c", 1)
    sent: list[Any] = []
    while sender.can_send():
        sent.append(sender.send(b"x"))
        mesh.run()
    mesh.cut("b", "c")
    mesh.learn()
    mesh.settle()
    assert [type(each.outcome) for each in sent] == [Modified] + [Released] * (len(sent) - 1)
    assert len(receiver.received) == 1
    assert is_clear(mesh)
    # and its credit is asked back
    assert sender.drain or sender.credit == 0


def test_links_do_not_chase_each_other_round_a_circle() -> None:
    mesh = Mesh("a", "b", "d")
    mesh.join("a", "b")
    mesh.learn()
    wires = {wire.router.forwarder.reach.me: wire.connection for wire in mesh.wires}
    # each believes that the way leads by the other
    for name, via, cost in (("a", "b", 14), ("b", "a", 17)):
        reach = mesh[name].forwarder.reach
        reach.set_paths(
            {via: wires[name]}, {"d": Path(via, cost), via: Path(via, 1)}, lambda _: None
        )
        reach.set_interest("d", "M0q", Interest(1))
    senders = [mesh[name].client().sender("q") for name in "ab"]
    mesh.run()
    said = _attaches(mesh)
    for _ in range(4):
        mesh.wait(0.1)
    assert _attaches(mesh) == said <= 4
    for sender in senders:
        sender.client.close()
    for _ in range(12):
        mesh.settle()
    assert is_clear(mesh)
    assert _attaches(mesh) == said


def beside(mesh: Mesh, count: int, *costs: int) -> list[SendingLink]:
    """So many links to `c` that a neighbour of `b` attaches, from routers that far from there."""
    peer = mesh["b"].client(container="a", role="inter-router")
    return [
        peer.sender("q", properties={DESTINATION: "c", COST: costs[number % len(costs)]})
        for number in range(count)
    ]


def test_a_link_that_comes_has_nobody_look_at_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    seen_to: list[Producer] = []
    update_one = Transit._update_one

    def count(way: Transit, producer: Producer) -> None:
        seen_to.append(producer)
        update_one(way, producer)

    monkeypatch.setattr(Transit, "_update_one", count)
    beside(line("a", "b", "c"), 50, 2)
    assert len(seen_to) == len(set(seen_to)) == 50


def test_very_many_links_lose_their_way_over_several_turns() -> None:
    mesh = line("a", "b", "c")
    pair(mesh, "a", "c", 1000)
    links = beside(mesh, 300, 2)
    assert all(link.credit > 0 for link in links)
    unserved = mesh["b"].forwarder.network.unserved

    def act() -> None:
        mesh.cut("b", "c")
        mesh.learn("b")

    assert 0 < most_in_a_turn(mesh["b"], lambda: len(unserved), act) <= CHANGES_AT_ONCE
    assert len(unserved) >= 300
    assert all(link.drain or link.credit == 0 for link in links)


def test_what_changes_again_before_all_have_been_seen_to_holds_for_all() -> None:
    mesh = line("a", "b", "c")
    pair(mesh, "a", "c", 1000)
    links = beside(mesh, 300, 2)
    mesh["b"].is_patient = True
    mesh.cut("b", "c")
    mesh.learn("b")
    unserved = mesh["b"].forwarder.network.unserved
    assert 0 < len(unserved) < 300
    mesh.join("b", "c")
    mesh.learn("b")
    mesh["b"].catch_up()
    mesh.run()
    assert not unserved
    assert all(link.credit > 0 for link in links)


def test_links_of_many_costs_get_credit_from_where_it_is_farther() -> None:
    mesh = line("a", "b", "c")
    pair(mesh, "a", "c", 1000)
    links = beside(mesh, 30, 1, 2, 3)
    mesh.run()
    assert [link.credit > 0 for link in links] == [False, True, True] * 10
    for link in links:
        link.detach()
    for _ in range(4):
        mesh.settle()
    (way,) = (each.transit for each in mesh["b"].table.transit.values())
    assert isinstance(way, Transit)
    assert way._costs.highest == 2
    assert not way._costs.has_any(2, 3)
    assert way._costs.has_any(1, 2)


def test_very_much_that_waits_is_released_over_several_turns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(unsent, "GIVEN_UP_AT_ONCE", 64)
    mesh = line("a", "b", "c")
    sender, _ = pair(mesh, "a", "c", 1000)
    mesh.hold("b", "c")
    for wire in mesh.wires:
        if wire.router is mesh["b"] and wire.peer is mesh["c"]:
            wire.connection.outbox.congested = True
    while sender.can_send():
        sender.send(b"x")
    mesh.run()
    (address,) = mesh["b"].table.transit.values()
    assert address.waiting.count == 1000
    way = address.transit
    assert way is not None

    def act() -> None:
        for consumer in list(address.consumers):
            address.remove_consumer(consumer)
        for producer in list(address.producers):
            way.remove(producer)
        mesh["b"].forwarder.reach.set_paths({}, {}, lambda _: None)

    most = most_in_a_turn(mesh["b"], lambda: address.waiting.count, act)
    assert 0 < most < 200
    assert address.waiting.count == 0
    assert is_clear(mesh)


def _attaches(mesh: Mesh) -> int:
    """How many links the routers have attached so far."""
    return sum(router.forwarder.network.links_made for router in mesh.routers.values())
