"""Multicast along one tree of routers: a copy for each receiver, and an outcome for the sender."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from router.amqp.message import Header
from router.amqp.performatives import Accepted, Modified, Rejected, Released
from router.core.addresses.rules import AddressRule, Rules
from router.core.model.address import MULTICAST

from support.far_routers import Mesh
from support.in_memory import ReceivingLink
from support.turns import most_in_a_turn
from support.waypoints import message, texts

TO_ALL = [AddressRule(True, "q", "multicast")]


def line(*names: str, **fields: Any) -> Mesh:
    """Routers in a line."""
    mesh = Mesh(*names, rules=TO_ALL, **fields)
    for one, other in itertools.pairwise(names):
        mesh.join(one, other)
    mesh.learn()
    return mesh


def triangle() -> Mesh:
    """Three routers, of which each is connected to the others."""
    mesh = Mesh("a", "b", "c", rules=TO_ALL)
    for one, other in itertools.combinations("abc", 2):
        mesh.join(one, other)
    mesh.learn()
    return mesh


def receivers(mesh: Mesh, *names: str, credit: int = 10) -> list[ReceivingLink]:
    found = [mesh[name].client().receiver("q", credit=credit) for name in names]
    mesh.settle()
    return found


def links_out(mesh: Mesh, name: str) -> list[tuple[str, int]]:
    """Return the routers to which a router has tree links, with the trees' numbers."""
    address = mesh[name].table.in_use("q")
    if address is None:
        return []
    return sorted(
        (each.link.session.connection.remote_open.container_id, each.tree)
        for each in address.consumers
        if each.side
    )


def test_each_receiver_gets_one_copy_wherever_it_is() -> None:
    mesh = line("a", "b", "c")
    links = receivers(mesh, "a", "b", "c", "c")
    sender = mesh["a"].client().sender("q")
    mesh.settle()
    assert sender.credit == 10
    sending = sender.send(message("m"))
    mesh.run()
    assert [texts(each) for each in links] == [["m"]] * 4
    for link in links[:3]:
        link.settle()
    mesh.run()
    assert sending.outcome is None
    links[3].settle()
    mesh.run()
    assert sending.outcome == Accepted()


def test_what_is_sent_in_the_middle_goes_both_ways_and_not_back() -> None:
    mesh = line("a", "b", "c")
    links = receivers(mesh, "a", "c")
    senders = [mesh[name].client().sender("q") for name in "abc"]
    mesh.settle()
    for number, sender in enumerate(senders):
        sender.send(message(str(number)))
        mesh.run()
    assert [texts(each) for each in links] == [["0", "1", "2"]] * 2


def test_there_are_links_where_somebody_receives_and_nowhere_else() -> None:
    mesh = line("a", "b", "c", "d")
    sender = mesh["b"].client().sender("q")
    mesh.settle()
    assert links_out(mesh, "b") == []
    (link,) = receivers(mesh, "d")
    assert links_out(mesh, "b") == [("c", 0)]
    assert links_out(mesh, "c") == [("d", 1)]
    assert links_out(mesh, "a") == []
    sender.send(message("m"))
    mesh.run()
    link.settle()
    mesh.run()
    link.detach()
    mesh.settle()
    assert [links_out(mesh, name) for name in "abcd"] == [[], [], [], []]
    assert mesh["c"].table.in_use("q") is None


def test_the_links_of_a_tree_are_given_up_when_nobody_has_sent_by_it_for_a_while() -> None:
    mesh = line("a", "b")
    receivers(mesh, "b")
    client = mesh["a"].client()
    client.sender("q").detach()
    mesh.settle()
    sender = client.sender("q")
    mesh.settle()
    assert links_out(mesh, "a") == [("b", 0)]
    sender.detach()
    mesh.wait(5)
    assert links_out(mesh, "a") == [("b", 0)]
    mesh.wait(6)
    mesh.settle()
    assert links_out(mesh, "a") == []
    assert mesh["a"].table.in_use("q") is None


def test_links_that_pass_through_a_router_stay_while_nothing_comes_by_them() -> None:
    mesh = line("a", "b", "c")
    receivers(mesh, "c")
    mesh["a"].client().sender("q")
    mesh.settle()
    address = mesh["b"].table.in_use("q")
    assert address is not None
    before = [*address.producers, *address.consumers]
    assert len(before) == 2
    for _ in range(20):
        mesh.wait(1)
    assert [*address.producers, *address.consumers] == before


def test_in_a_circle_nobody_gets_anything_twice() -> None:
    mesh = triangle()
    links = receivers(mesh, *"abc")
    senders = [mesh[name].client().sender("q") for name in "abc"]
    mesh.settle()
    for number, sender in enumerate(senders):
        sender.send(message(str(number)))
    mesh.run()
    assert [sorted(texts(each)) for each in links] == [["0", "1", "2"]] * 3


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ([Accepted(), Rejected(), Released()], Rejected()),
        ([Modified(), Accepted(), Released()], Accepted()),
        ([Modified(), Released(), Released()], Modified()),
        ([Released(), Released(), Released()], Released()),
    ],
)
def test_what_is_told_of_all_copies_is_what_one_router_would_tell(
    states: list[Any], expected: Any
) -> None:
    mesh = line("a", "b", "c")
    links = receivers(mesh, "a", "b", "c")
    sender = mesh["a"].client().sender("q")
    mesh.settle()
    sending = sender.send(message("m"))
    mesh.run()
    for link, state in zip(links, states, strict=True):
        link.settle(state)
    mesh.run()
    assert sending.outcome == expected


def test_a_copy_that_is_lost_between_routers_is_not_passed_off_as_received() -> None:
    mesh = line("a", "b", "c")
    links = receivers(mesh, "a", "b", "c")
    sender = mesh["a"].client().sender("q")
    mesh.settle()
    mesh.hold("b", "c")
    sending = sender.send(message("m"))
    mesh.run()
    for link in links[:2]:
        link.settle()
    mesh.run()
    mesh.cut("b", "c")
    mesh.learn()
    mesh.settle()
    assert sending.outcome == Modified(delivery_failed=True)
    # from now on it is not waited for
    after = sender.send(message("n"))
    mesh.run()
    for link in links[:2]:
        link.settle()
    mesh.run()
    assert after.outcome == Accepted()


def test_a_slow_receiver_two_routers_away_slows_its_sender() -> None:
    mesh = line("a", "b", "c")
    near, far = receivers(mesh, "a", "c", credit=2)
    sender = mesh["a"].client().sender("q")
    mesh.settle()
    near.grant(100)
    mesh.settle()
    sent = 0
    while sender.can_send():
        sender.send(message(str(sent)))
        sent += 1
        mesh.settle()
    # what is granted, and one message ahead for each router at the most
    assert 2 <= sent <= 5
    assert len(far.received) == 2
    far.grant(100)
    mesh.settle()
    assert len(far.received) == sent


def test_settled_copies_are_dropped_only_for_the_branch_without_room() -> None:
    mesh = line("a", "b")
    near, far = receivers(mesh, "a", "b", credit=100)
    sender = mesh["a"].client().sender("q")
    mesh.settle()
    mesh.hold("a", "b")
    sent = 0
    while sender.can_send() and sent < 150:
        sender.send(message(str(sent)), settled=True)
        near.grant(100)
        mesh.run()
        sent += 1
    mesh.hold("a", "b", held=False)
    mesh.settle()
    assert len(near.received) == sent
    assert texts(far) == [str(number) for number in range(len(far.received))]
    assert len(far.received) <= 100


def test_what_is_too_much_to_wait_for_a_branch_is_not_passed_off_as_received() -> None:
    mesh = line("a", "b", limit_bytes=60_000)
    near, far = receivers(mesh, "a", "b", credit=1)
    # each may send one ahead
    senders = [mesh["a"].client().sender("q") for _ in range(6)]
    near.grant(100)
    mesh.settle()
    sendings = [sender.send(message("x" * 20_000)) for sender in senders]
    mesh.settle()
    near.settle()
    far.settle()
    mesh.settle()
    outcomes = [sending.outcome for sending in sendings if sending.outcome is not None]
    assert len(near.received) == 6
    assert outcomes.count(Accepted()) == 1
    assert outcomes.count(Modified(delivery_failed=True)) >= 2


def test_a_large_message_goes_on_as_it_comes() -> None:
    mesh = line("a", "b", "c")
    near, far = receivers(mesh, "a", "c")
    sender = mesh["a"].client().sender("q")
    mesh.settle()
    whole = message("x" * 100_000)
    sending = sender.send(whole[:50_000], more=True)
    mesh.run()
    assert [len(each.received[0].payload) > 40_000 for each in (near, far)] == [True, True]
    sender.go_on(whole[50_000:])
    mesh.run()
    for link in (near, far):
        assert link.received[0].payload == whole
        link.settle()
    mesh.run()
    assert sending.outcome == Accepted()


def test_a_message_without_a_link_of_its_own_reaches_all() -> None:
    mesh = line("a", "b")
    links = receivers(mesh, "a", "b")
    sender = mesh["a"].client().sender(None)
    sending = sender.send(message("m", to="q"))
    mesh.settle()
    assert [texts(each) for each in links] == [["m"], ["m"]]
    for link in links:
        link.settle()
    mesh.run()
    assert sending.outcome == Accepted()


def test_where_nothing_is_said_of_an_address_it_is_as_it_is_for_who_receives() -> None:
    mesh = Mesh("a", "b", "c")
    mesh.join("a", "b")
    mesh.join("b", "c")
    mesh["c"].table.rules = Rules(TO_ALL, "balanced")
    mesh.learn()
    links = receivers(mesh, "c", "c")
    sender = mesh["a"].client().sender("q")
    mesh.settle()
    sender.send(message("m"))
    mesh.run()
    assert [texts(each) for each in links] == [["m"], ["m"]]
    address = mesh["b"].table.in_use("q")
    assert address is not None
    assert address.treatment == MULTICAST


def test_an_address_is_left_when_the_place_of_a_lost_link_is_given_up() -> None:
    mesh = line("a", "b")
    receivers(mesh, "b")
    client = mesh["a"].client()
    client.sender("q")
    mesh.settle()
    # the place is kept, for the paths are the same still
    mesh.cut("a", "b")
    client.lose()
    assert mesh["a"].table.in_use("q") is not None
    mesh.learn()
    mesh.settle()
    assert mesh["a"].table.in_use("q") is None


def test_what_waits_behind_a_large_message_goes_on_by_priority() -> None:
    mesh = line("a", "b", "c")
    (link,) = receivers(mesh, "c")
    senders = [mesh["a"].client().sender("q") for _ in range(4)]
    mesh.settle()
    octets = message("large")
    senders[0].send(octets[:-2], more=True)
    mesh.settle()
    for sender, priority in zip(senders[1:], (1, 4, 8), strict=True):
        sender.send(message(str(priority), header=Header(priority=priority)))
        mesh.settle()
    assert texts(link) == []
    senders[0].go_on(octets[-2:])
    mesh.settle()
    assert texts(link) == ["large", "8", "4", "1"]


def many(mesh: Mesh, count: int) -> dict[Any, Any]:
    """So many addresses are received from at `b` and sent to at `a`; returns the trees there."""
    client, sending = mesh["b"].client(), mesh["a"].client()
    for number in range(count):
        client.receiver(f"q/{number}", credit=1)
    mesh.settle()
    for number in range(count):
        sending.sender(f"q/{number}")
    mesh.settle()
    own: dict[Any, Any] = mesh["a"].forwarder.network.multicast._own
    assert len(own) == count
    return own


def test_very_many_go_by_another_tree_over_several_turns() -> None:
    mesh = Mesh("a", "b", "c", rules=TO_ALL)
    mesh.join("a", "b")
    mesh.learn()
    own = many(mesh, 100)
    mesh.join("b", "c")
    old = next(iter(own.values())).tree.digest

    def moved() -> int:
        return sum(each.tree.digest != old for each in own.values())

    assert 0 < most_in_a_turn(mesh["a"], moved, mesh.learn) < 60
    assert moved() == 100
    mesh.settle()
    address = mesh["a"].table.in_use("q/7")
    assert address is not None
    assert [each.tree for each in address.consumers] == [0]


def test_very_many_that_nobody_sends_to_are_given_up_over_several_turns() -> None:
    mesh = line("a", "b")
    own = many(mesh, 200)
    for client in mesh["a"].clients:
        client.close()
    mesh.run()
    assert len(own) == 200
    at = mesh["a"]
    at.turn.now += 11

    def look() -> None:
        at.forwarder.network.tick(at.turn.now)

    assert 0 < most_in_a_turn(at, lambda: len(own), look) < 200
    assert not own
