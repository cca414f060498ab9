"""Which routers what is sent here goes to: the nearest, several, or none."""

from __future__ import annotations

from typing import Any

import pytest

from router.amqp.constants import Condition
from router.amqp.performatives import Source, Target
from router.amqp.types import Symbol
from router.core.addresses.rules import AddressRule, Rules
from router.core.model.address import BALANCED
from router.core.network.idle_links import GRACE_S
from router.core.network.lanes import IDLE_S
from router.core.network.network import MOST_AT_ONCE, WORK_OF_LINK
from router.core.network.out_links import OutLink
from router.core.network.outbound_links import MAX_DESTINATIONS, RETRY_S
from router.core.routers.routing_state import Interest
from router.engine.deferred import ITEMS_PER_STEP

from support.far_routers import Mesh
from support.in_memory import SendingLink
from support.turns import most_in_a_turn
from support.waypoints import message, texts

MANY = 100
NAMES = [f"q{number}" for number in range(MANY)]


def star(*far: tuple[str, int], **fields: Any) -> Mesh:
    """Return a router `a` with neighbours at these costs."""
    mesh = Mesh("a", *(name for name, _ in far), **fields)
    for name, cost in far:
        mesh.join("a", name, cost)
    mesh.learn()
    return mesh


def links_of(mesh: Mesh, name: str) -> list[OutLink]:
    address = mesh["a"].table.in_use(name)
    return [] if address is None else mesh["a"].forwarder.network.outward.links(address)


def destinations(mesh: Mesh, name: str = "q") -> list[str]:
    return sorted(link.destination for link in links_of(mesh, name))


def test_closest_goes_to_the_nearest_and_stays_here_where_somebody_is() -> None:
    mesh = star(("b", 2), ("c", 2), ("d", 3), default="closest")
    for name in "bcd":
        mesh[name].client().receiver("q", credit=5)
    mesh["a"].client().sender("q")
    mesh.run()
    assert destinations(mesh) == ["b", "c"]
    here = mesh["a"].client().receiver("q", credit=5)
    mesh.settle()
    assert destinations(mesh) == []
    here.detach()
    mesh.settle()
    assert destinations(mesh) == ["b", "c"]


def test_balanced_goes_to_the_nearest_ones_and_weighs_the_way() -> None:
    mesh = star(("b", 1), ("c", 5))
    near = mesh["b"].client().receiver("q", credit=100)
    far = mesh["c"].client().receiver("q", credit=100)
    here = mesh["a"].client().receiver("q", credit=100)
    sender = mesh["a"].client().sender("q")
    mesh.run()
    assert destinations(mesh) == ["b", "c"]
    for _ in range(18):
        sender.send(b"x")
        mesh.run()
    # what is unsettled, and the cost, come out even
    counts = [len(each.received) for each in (here, near, far)]
    assert counts == [8, 7, 3]


def test_not_more_routers_than_some_share_what_is_balanced() -> None:
    mesh = star(*((f"r{number}", 1) for number in range(MAX_DESTINATIONS + 3)))
    for name in list(mesh.routers)[1:]:
        mesh[name].client().receiver("q", credit=1)
    mesh["a"].client().sender("q")
    mesh.run()
    assert len(destinations(mesh)) == MAX_DESTINATIONS


def many_aims(mesh: Mesh) -> list[SendingLink]:
    """So many addresses, each with a sender here and a receiver at a neighbour."""
    there, here = mesh["b"].client(), mesh["a"].client()
    for name in NAMES:
        there.receiver(name, credit=1)
    mesh.run()
    senders = [here.sender(name) for name in NAMES]
    mesh.run()
    assert [destinations(mesh, name) for name in NAMES] == [["b"]] * MANY
    return senders


def test_links_by_which_nobody_sends_are_given_up_over_several_turns() -> None:
    mesh = star(("b", 1))
    for sender in many_aims(mesh):
        sender.detach()
    mesh.run()
    mesh.wait(1)
    router = mesh["a"]
    outward = router.forwarder.network.outward
    assert len(outward.addresses()) == MANY
    most = most_in_a_turn(router, lambda: len(outward.addresses()), lambda: router.wait(IDLE_S))
    assert 0 < most <= ITEMS_PER_STEP
    assert outward.addresses() == []
    mesh.run()
    assert len(router.table) == 0


def test_who_sends_again_before_a_link_is_given_up_keeps_it() -> None:
    mesh = star(("b", 1))
    for sender in many_aims(mesh):
        sender.detach()
    mesh.run()
    mesh.wait(1)
    router = mesh["a"]
    links = {name: links_of(mesh, name) for name in NAMES}
    router.is_patient = True
    router.wait(IDLE_S)
    left = [name for name in NAMES if destinations(mesh, name)]
    assert 0 < len(left) < MANY
    router.client().sender(left[-1])
    router.catch_up()
    assert [name for name in NAMES if destinations(mesh, name)] == [left[-1]]
    assert links_of(mesh, left[-1]) == links[left[-1]]
    mesh.run()


def refused(mesh: Mesh) -> None:
    """So many links have been attached to a neighbour where nobody receives, and detached."""
    router = mesh["a"]
    client = router.client()
    for name in NAMES:
        router.forwarder.reach.set_interest("b", f"M0{name}", Interest(BALANCED))
        client.sender(name)
    mesh.run()
    mesh["b"].wait(GRACE_S)
    mesh.run()
    assert [destinations(mesh, name) for name in NAMES] == [[]] * MANY


def test_links_that_failed_are_tried_again_over_several_turns() -> None:
    mesh = star(("b", 1))
    refused(mesh)
    router = mesh["a"]
    network = router.forwarder.network
    made = network.links_made
    most = most_in_a_turn(router, lambda: network.links_made, lambda: router.wait(RETRY_S))
    assert 0 < most <= MOST_AT_ONCE // WORK_OF_LINK
    assert network.links_made == made + MANY
    mesh.run()
    assert [destinations(mesh, name) for name in NAMES] == [["b"]] * MANY


def test_one_that_has_been_tried_again_meanwhile_is_not_tried_twice() -> None:
    mesh = star(("b", 1))
    refused(mesh)
    router = mesh["a"]
    network = router.forwarder.network
    router.is_patient = True
    router.wait(RETRY_S)
    late = next(name for name in NAMES if not destinations(mesh, name))
    made = network.links_made
    router.client().sender(late)
    router.catch_up()
    router.wait(0)
    missing = [name for name in NAMES if not destinations(mesh, name)]
    assert missing == []
    assert network.links_made <= made + MANY
    mesh.run()


def test_other_ways_make_what_failed_be_tried_at_once() -> None:
    mesh = star(("b", 1))
    refused(mesh)
    network = mesh["a"].forwarder.network
    made = network.links_made
    mesh["a"].forwarder.network.paths_changed()
    mesh["a"].finish_turn()
    assert network.links_made == made + MANY
    assert not network.outward._retries
    mesh.run()


def test_without_senders_there_are_no_links() -> None:
    mesh = star(("b", 1))
    receiver = mesh["b"].client().receiver("q", credit=5)
    mesh["a"].client().receiver("q", credit=5)
    mesh.run()
    assert destinations(mesh) == []
    sender = mesh["a"].client().sender("q")
    mesh.run()
    assert destinations(mesh) == ["b"]
    sender.detach()
    mesh.wait(1)
    assert destinations(mesh) == ["b"]
    for _ in range(int(IDLE_S) + 2):
        mesh.wait(1)
    assert destinations(mesh) == []
    del receiver


def test_links_end_when_nobody_receives_there_any_more() -> None:
    mesh = star(("b", 1))
    receiver = mesh["b"].client().receiver("q", credit=5)
    sender = mesh["a"].client().sender("q")
    mesh.run()
    receiver.detach()
    mesh.settle()
    assert destinations(mesh) == []
    assert sender.drain or sender.credit == 0
    again = mesh["b"].client().receiver("q", credit=5)
    mesh.settle()
    assert destinations(mesh) == ["b"]
    sender.give_back()
    mesh.run()
    # all of it at once
    assert sender.credit == 5
    assert again.received == []


def test_a_link_that_lasts_for_a_moment_only_is_tried_again_ever_more_seldom() -> None:
    mesh = star(("b", 1))
    mesh.run()
    # whoever it was for has gone: b takes the link, and half a second later detaches it
    sender = mesh["a"].client().sender("_topo/0/b/temp.gone")
    outward = mesh["a"].forwarder.network.outward
    counts = []
    for _ in range(4):
        before = outward.retries
        for _ in range(40):
            mesh.wait(0.25)
        counts.append(outward.retries - before)
    assert counts[0] <= 5
    assert all(1 <= count <= 3 for count in counts[1:]), counts
    # that is forgotten once one has lasted
    sender.detach()
    for _ in range(40):
        mesh.wait(0.25)
    assert not outward._retries


def test_a_single_message_finds_its_way_and_the_link_is_given_up() -> None:
    mesh = star(("b", 1))
    receiver = mesh["b"].client().receiver("q", credit=5)
    mesh.run()
    sender = mesh["a"].client().sender(None)
    sending = sender.send(message("hello", "q"))
    mesh.run()
    assert texts(receiver) == ["hello"]
    receiver.settle()
    mesh.run()
    assert sending.outcome is not None
    for _ in range(int(IDLE_S) + 2):
        mesh.wait(1)
    assert destinations(mesh) == []
    assert len(mesh["a"].table) == 0


def test_replies_go_to_dynamic_nodes_at_other_routers() -> None:
    mesh = Mesh("a", "b", "c")
    mesh.join("a", "b")
    mesh.join("b", "c")
    mesh.learn()
    for name, router in mesh.routers.items():
        router.table._new_name = f"amqp:/_topo/0/{name}/temp.{{}}".format
    client = mesh["a"].client()
    inbox = client.receiver(None, source=Source(dynamic=True))
    inbox.grant(10)
    service = mesh["c"].client()
    requests = service.receiver("service", credit=10)
    mesh.run()
    asking = client.sender("service")
    mesh.run()
    asking.send(message("request"))
    mesh.run()
    assert texts(requests) == ["request"]
    assert inbox.address is not None
    service.sender(None).send(message("reply", inbox.address))
    mesh.run()
    assert texts(inbox) == ["reply"]
    named = service.sender(inbox.address)
    mesh.run()
    named.send(message("another"))
    mesh.run()
    assert texts(inbox) == ["reply", "another"]


def test_a_node_that_was_made_for_a_sender_is_received_from_at_other_routers() -> None:
    mesh = Mesh("a", "b", "c")
    mesh.join("a", "b")
    mesh.join("b", "c")
    mesh.learn()
    mesh["a"].table._new_name = "amqp:/_topo/0/a/temp.{}".format
    sender = mesh["a"].client().sender(None, target=Target(dynamic=True))
    mesh.run()
    assert sender.attach is not None
    assert isinstance(sender.attach.target, Target)
    receiver = mesh["c"].client().receiver(sender.attach.target.address, credit=5)
    mesh.run()
    assert sender.credit == 5
    sender.send(message("news"))
    mesh.run()
    assert texts(receiver) == ["news"]


def topic_at(mesh: Mesh, router: str) -> tuple[Any, str]:
    """Attach a sender whose node at a router is a topic; return it with the topic's address."""
    mesh[router].table._new_name = f"amqp:/_topo/0/{router}/temp.{{}}".format
    target = Target(dynamic=True, capabilities=(Symbol("temporary-topic"),))
    sender = mesh[router].client().sender(None, target=target)
    mesh.run()
    assert sender.attach is not None
    assert isinstance(sender.attach.target, Target)
    assert sender.attach.target.address is not None
    return sender, sender.attach.target.address


@pytest.mark.parametrize("are_first", [True, False], ids=["receivers first", "senders first"])
@pytest.mark.parametrize("where", ["aa", "ac", "cc", "bc"])
def test_who_receives_from_a_topic_gets_what_is_sent_at_any_router(
    where: str, are_first: bool
) -> None:
    mesh = Mesh("a", "b", "c")
    mesh.join("a", "b")
    mesh.join("b", "c")
    mesh.learn()
    maker, topic = topic_at(mesh, "a")
    senders = [maker]
    receivers = []

    def receive() -> None:
        for router in where:
            receivers.append(mesh[router].client().receiver(topic))
            receivers[-1].grant(20)
            mesh.settle()

    if are_first:
        receive()
    senders += [mesh[router].client().sender(topic) for router in "abc"]
    mesh.settle()
    if not are_first:
        receive()
    senders += [mesh[router].client().sender(None) for router in "abc"]
    mesh.settle()
    bodies = [f"message {number}" for number in range(len(senders))]
    for sender, body in zip(senders, bodies, strict=True):
        sender.send(message(body, topic))
        mesh.settle()
    for receiver in receivers:
        assert sorted(texts(receiver)) == bodies
    # and nobody is told of it any more once it is over
    maker.detach()
    mesh.settle()
    assert mesh["a"].forwarder.reach.own_interests == {}


def test_nobody_receives_what_is_for_the_management_of_another_router() -> None:
    mesh = Mesh("a", "b")
    mesh.join("a", "b")
    mesh.learn()
    thief = mesh["a"].client().receiver("_topo/0/b/$management")
    assert thief.detached is not None
    assert thief.detached.error is not None
    assert thief.detached.error.condition == Condition.NOT_ALLOWED


def test_what_is_not_known_here_is_treated_as_it_is_there() -> None:
    mesh = Mesh("a", "b")
    mesh.join("a", "b")
    mesh.learn()
    mesh["b"].table.rules = Rules([AddressRule(False, "q", "closest")], "balanced")
    sender = mesh["a"].client().sender("q")
    mesh.run()
    mesh["b"].client().receiver("q", credit=5)
    mesh.run()
    assert mesh["a"].table.treatment("q") == mesh["b"].table.treatment("q")
    assert sender.credit == 5


def test_what_nobody_takes_goes_to_a_fallback_elsewhere() -> None:
    rules = [(False, "q", "balanced", True, None, 0, 0, True)]
    mesh = star(("b", 1), ("c", 1), rules=rules)
    fallback = Source(address="q", capabilities=(Symbol("qd.fallback"),))
    rest = mesh["b"].client().receiver("q", source=fallback, credit=5)
    sender = mesh["a"].client().sender("q")
    mesh.settle()
    assert sender.credit == 5
    sender.send(message("one"))
    mesh.run()
    assert texts(rest) == ["one"]
    primary = mesh["c"].client().receiver("q", credit=5)
    mesh.settle()
    sender.send(message("two"))
    mesh.settle()
    assert texts(primary) == ["two"]
    primary.detach()
    mesh.settle()
    if not sender.can_send():
        sender.give_back()
        mesh.settle()
    sender.send(message("three"))
    mesh.settle()
    assert texts(rest) == ["one", "three"]


def test_phases_cross_the_network() -> None:
    rules = [(False, "q", "balanced", True, None, 0, 1)]
    mesh = star(("b", 1), ("c", 1), rules=rules)
    broker = mesh["b"].client()
    taking = broker.receiver(
        "q", source=Source(address="q", capabilities=(Symbol("qd.waypoint"),)), credit=5
    )
    consumer = mesh["c"].client().receiver("q", credit=5)
    sender = mesh["a"].client().sender("q")
    mesh.run()
    sender.send(message("in"))
    mesh.run()
    assert texts(taking) == ["in"]
    assert texts(consumer) == []
