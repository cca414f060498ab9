"""Large messages hold up no others between an edge and its interior, either way."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from router.amqp.constants import ReceiverSettleMode
from router.amqp.message import Header
from router.amqp.performatives import Accepted
from router.core.addresses.rules import AddressRule
from router.core.forwarding.rule_updates import RuleUpdater
from router.core.network.lane_numbers import lane_of, priority_of
from router.core.network.lanes import IDLE_S
from router.core.network.uplink_lanes import UplinkLane

from support.in_memory import ReceivingLink, SendingLink
from support.mesh import Mesh
from support.waypoints import message, texts

SECOND = ReceiverSettleMode.SECOND
# the edges e and f, and the interiors a and b
PLACES = ["e", "a", "b", "f"]
PAIRS = [(one, other) for one in PLACES for other in PLACES if {one, other} & {"e", "f"}]


def network(**fields: Any) -> Mesh:
    """Return a network of two interiors with an edge at each."""
    mesh = Mesh("a", "b", "e", "f", **fields)
    for name in ("a", "b"):
        mesh[name].forwarder.network.turn_on()
    mesh.join("a", "b")
    mesh.uplink("e", "a")
    mesh.uplink("f", "b")
    return mesh


def urgent(text: str, priority: int, to: str | None = None) -> bytes:
    return message(text, to, header=Header(priority=priority))


def uplink_lanes(mesh: Mesh) -> Iterator[tuple[str, int]]:
    """Yield the router and the number of each open lane between edges and interiors."""
    for name in PLACES:
        for end in mesh[name].ends.values():
            for session in end.connection.local_sessions.values():
                if isinstance(session.owner, UplinkLane) and not session.owner.is_over:
                    yield name, session.owner.lane.number


def wait(mesh: Mesh, seconds: int) -> None:
    """Let time pass everywhere, a second at a time."""
    for _ in range(seconds):
        for router in mesh.routers.values():
            router.turn.now += 1
            for side in (router.edge, router.edges):
                if side is not None:
                    side.tick(router.turn.now)
            router.forwarder.network.tick(router.turn.now)
        mesh.settle()


def ends(
    mesh: Mesh, sends: str, receives: str, *, credit: int = 10, count: int = 2
) -> tuple[list[SendingLink], list[ReceivingLink]]:
    """Senders at one router and receivers at another."""
    receivers = [mesh[receives].client().receiver("q", credit) for _ in range(count)]
    senders = [mesh[sends].client().sender("q") for _ in range(count)]
    mesh.settle()
    return senders, receivers


@pytest.mark.parametrize(("sends", "receives"), PAIRS)
def test_a_small_message_goes_beside_an_endless_one(sends: str, receives: str) -> None:
    mesh = network()
    senders, receivers = ends(mesh, sends, receives)
    endless = senders[0].send(message("endless")[:-2], more=True)
    mesh.settle()
    senders[1].send(message("small"))
    mesh.settle()
    assert sorted(len(each.received) for each in receivers) == [1, 1]
    assert [text for each in receivers for text in texts(each)] == ["small"]
    senders[0].go_on(message("endless")[-2:])
    mesh.settle()
    assert sorted(text for each in receivers for text in texts(each)) == ["endless", "small"]
    for each in receivers:
        each.settle(Accepted())
    mesh.settle()
    assert endless.outcome == Accepted()


@pytest.mark.parametrize(("sends", "receives"), PAIRS)
def test_an_urgent_message_goes_beside_a_large_one(sends: str, receives: str) -> None:
    mesh = network()
    senders, receivers = ends(mesh, sends, receives)
    senders[0].send(urgent("endless", 1)[:-2], more=True)
    senders[1].send(urgent("urgent", 8))
    mesh.settle()
    assert [text for each in receivers for text in texts(each)] == ["urgent"]


@pytest.mark.parametrize(("sends", "receives"), PAIRS)
def test_who_settles_second_does_so_from_edge_to_edge(sends: str, receives: str) -> None:
    mesh = network()
    receiver = mesh[receives].client().receiver("q", 10, rcv_settle_mode=SECOND)
    sender = mesh[sends].client().sender("q", rcv_settle_mode=SECOND)
    mesh.settle()
    sending = sender.send(message("hello"))
    mesh.settle()
    receiver.settle(Accepted(), settled=False)
    mesh.settle()
    assert sending.states == [Accepted()]
    (received,) = receiver.received
    assert list(receiver.unsettled.values()) == [received]
    sender.settle(sending)
    mesh.settle()
    assert received.sender_settled is not None
    assert receiver.unsettled == {}


def test_the_nearest_receiver_gets_a_message_although_an_endless_one_goes_farther() -> None:
    mesh = network(default="closest")
    far = mesh["f"].client().receiver("q", 10)
    senders = [mesh["e"].client().sender("q") for _ in range(2)]
    mesh.settle()
    senders[0].send(message("endless")[:-2], more=True)
    mesh.settle()
    near = mesh["a"].client().receiver("q", 10)
    mesh.settle()
    senders[1].send(message("small"))
    mesh.settle()
    assert texts(near) == ["small"]
    assert len(far.received) == 1


def test_what_most_messages_need_is_one_link_and_others_go_when_idle() -> None:
    mesh = network()
    senders, receivers = ends(mesh, "e", "f", count=1)
    senders[0].send(message("usual"))
    mesh.settle()
    assert list(uplink_lanes(mesh)) == []
    senders[0].send(urgent("urgent", 8))
    mesh.settle()
    assert list(uplink_lanes(mesh)) == [("e", lane_of(8, 0)), ("b", lane_of(8, 0))]
    address = mesh["f"].table.in_use("q")
    assert address is not None
    assert [priority_of(each.link) for each in address.producers] == [4, 8]
    receivers[0].settle(Accepted())
    mesh.settle()
    wait(mesh, int(IDLE_S) + 3)
    assert list(uplink_lanes(mesh)) == []
    assert not any(each.forwarder.network.outward.lanes._laned for each in mesh.routers.values())
    senders[0].send(urgent("again", 8))
    mesh.settle()
    assert texts(receivers[0]) == ["usual", "urgent", "again"]


def test_nothing_is_left_when_the_last_client_has_gone() -> None:
    mesh = network()
    senders, receivers = ends(mesh, "e", "f", count=1)
    for priority in (8, 1):
        senders[0].send(urgent("x", priority))
    mesh.settle()
    receivers[0].settle(Accepted())
    mesh.settle()
    senders[0].detach()
    receivers[0].detach()
    mesh.settle()
    wait(mesh, 30)
    for name in PLACES:
        assert mesh[name].table.in_use("q") is None
        for end in mesh[name].ends.values():
            for session in end.connection.local_sessions.values():
                assert not session.local_links
        lanes = mesh[name].forwarder.network.outward.lanes
        assert not lanes._uplinks
        assert not lanes._laned
        assert not lanes._lost


@pytest.mark.parametrize("loses", [True, False])
def test_lanes_go_with_the_uplink_and_come_with_the_next(loses: bool) -> None:
    mesh = network()
    senders, receivers = ends(mesh, "e", "a", count=1)
    senders[0].send(urgent("before", 8))
    mesh.settle()
    if loses:
        mesh.cut("e", "a")
        mesh.uplink("e", "a")
    else:
        receivers[0].settle(Accepted())
        mesh.uplink("e", "b")
        mesh.cut("e", "a")
    mesh.settle()
    wait(mesh, 2)
    senders[0].send(urgent("after", 8))
    mesh.settle()
    assert texts(receivers[0]) == ["before", "after"]
    assert [each for each in uplink_lanes(mesh) if each[0] == "e"] == [("e", lane_of(8, 0))]


def test_to_whom_does_not_know_lanes_all_goes_by_one_link() -> None:
    mesh = Mesh("a", "e", "f")
    mesh.uplink("e", "a", features=())
    mesh.uplink("f", "a", features=())
    senders, receivers = ends(mesh, "e", "f", count=1)
    for priority in range(10):
        senders[0].send(urgent(str(priority), priority))
    mesh.settle()
    assert texts(receivers[0]) == [str(priority) for priority in range(10)]
    assert not any(
        isinstance(session.owner, UplinkLane)
        for router in mesh.routers.values()
        for end in router.ends.values()
        for session in end.connection.local_sessions.values()
    )


def test_an_edge_takes_from_its_interior_only_what_it_receives_by_it() -> None:
    mesh = network()
    edge = mesh["e"].edge
    assert edge is not None
    mesh["e"].client().receiver("q", 10)
    mesh.settle()
    connection = mesh["e"].ends["a"].connection
    assert edge.takes(connection, "q", is_sender=True)
    assert not edge.takes(connection, "q", is_sender=False)
    assert not edge.takes(connection, "r", is_sender=True)


def test_a_multicast_has_no_lanes_there_and_comes_once() -> None:
    mesh = network(default="multicast")
    senders, receivers = ends(mesh, "e", "a")
    for priority in (1, 8):
        senders[0].send(urgent(str(priority), priority))
    mesh.settle()
    assert [texts(each) for each in receivers] == [["1", "8"]] * 2
    assert list(uplink_lanes(mesh)) == []


# the trees between interiors are not of interest here
@pytest.mark.parametrize(("sends", "receives"), [("e", "a"), ("a", "e"), ("f", "b")])
def test_an_address_that_turns_multicast_gives_each_receiver_one_copy(
    sends: str, receives: str
) -> None:
    mesh = network(default="balanced")
    senders, receivers = ends(mesh, sends, receives)
    senders[0].send(urgent("before", 8))
    mesh.settle()
    assert list(uplink_lanes(mesh))
    for each in receivers:
        each.settle(Accepted())
    rule = AddressRule(True, "q", "multicast")
    for name in PLACES:
        RuleUpdater(mesh[name].forwarder).change_rules([], [rule], "balanced")
    mesh.settle()
    assert list(uplink_lanes(mesh)) == []
    senders[0].send(urgent("after", 8))
    mesh.settle()
    assert [texts(each).count("after") for each in receivers] == [1, 1]
    for name in PLACES:
        RuleUpdater(mesh[name].forwarder).change_rules([rule], [], "balanced")
    mesh.settle()
    senders[0].send(urgent("again", 8))
    mesh.settle()
    assert sum(texts(each).count("again") for each in receivers) == 1


@pytest.mark.parametrize("seed", range(15))
def test_order_is_kept_and_everything_comes_once(seed: int) -> None:
    """Of each sender and priority, with anonymous senders and messages of several frames."""
    random = Random(seed)
    mesh = network()
    receives = random.choice(PLACES)
    receiver = mesh[receives].client().receiver("q", 3)
    senders: list[SendingLink] = []
    for name in PLACES:
        mode: dict[str, Any] = {"rcv_settle_mode": SECOND} if random.random() < 0.3 else {}
        target = None if random.random() < 0.3 else "q"
        senders.append(mesh[name].client().sender(target, **mode))
    mesh.settle()
    count = 0
    for _ in range(300):
        number = random.randrange(len(senders))
        sender = senders[number]
        what = random.random()
        if what < 0.6:
            if sender.current is not None:
                sender.go_on(b"", more=random.random() < 0.5)
            elif sender.can_send():
                count += 1
                priority = random.choice((1, 4, 4, 8))
                to = "q" if sender.address is None else None
                text = f"{number}.{priority}.{count:06d}"
                sender.send(urgent(text, priority, to), more=random.random() < 0.3)
        elif what < 0.8:
            receiver.settle(Accepted())
        elif what < 0.97:
            receiver.grant(receiver.credit + random.randrange(4))
        else:
            wait(mesh, random.choice((1, 6)))
    for _ in range(60):
        for sender in senders:
            if sender.current is not None:
                sender.go_on(b"")
        mesh.settle()
        receiver.settle(Accepted())
        receiver.grant(10)
        mesh.settle()
    order = [text.split(".") for text in texts(receiver)]
    assert len(order) == count
    for number in range(len(senders)):
        for level in "148":
            own = [text for who, priority, text in order if (who, priority) == (str(number), level)]
            assert own == sorted(own)


@pytest.mark.parametrize("seed", range(12))
def test_nothing_is_stuck_when_uplinks_are_lost_and_come_back(seed: int) -> None:
    """Whatever was under way then: every sender hears of each message, and all goes on."""
    random = Random(seed)
    mesh = network()
    uplinks = {"e": "a", "f": "b"}
    receivers = [mesh[name].client().receiver("q", 3) for name in random.sample(PLACES, 2)]
    senders = [mesh[name].client().sender("q") for name in PLACES]
    mesh.settle()
    sent: list[Any] = []
    for _ in range(200):
        sender = random.choice(senders)
        what = random.random()
        if what < 0.6:
            if sender.current is not None:
                sender.go_on(b"", more=random.random() < 0.5)
            elif sender.can_send():
                octets = urgent(str(len(sent)), random.choice((1, 4, 8)))
                sent.append(sender.send(octets, more=random.random() < 0.3))
        elif what < 0.9:
            receiver = random.choice(receivers)
            receiver.settle(Accepted())
            receiver.grant(receiver.credit + random.randrange(3))
        elif what < 0.95:
            wait(mesh, random.choice((1, 6)))
        else:
            edge = random.choice("ef")
            mesh.cut(edge, uplinks[edge])
            if random.random() < 0.5:
                wait(mesh, 1)
            uplinks[edge] = random.choice("ab")
            mesh.uplink(edge, uplinks[edge])
    for _ in range(60):
        for sender in senders:
            if sender.current is not None:
                sender.go_on(b"")
        mesh.settle()
        for receiver in receivers:
            receiver.settle(Accepted())
            receiver.grant(10)
        wait(mesh, 1)
    assert all(each.is_over for each in sent)
    last = [sender.send(urgent("last", 8)) for sender in senders]
    mesh.settle()
    for receiver in receivers:
        receiver.settle(Accepted())
    mesh.settle()
    assert [each.outcome for each in last] == [Accepted()] * len(senders)
