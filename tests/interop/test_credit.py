"""Credit: as little or as much as a receiver gives, drained on demand, and never made up."""

from __future__ import annotations

import pytest
from proton import Message

from support.go_peers import said_by_go
from support.proton_peers import ProtonConnection, ProtonPeers
from support.rhea_peers import RheaPeer
from support.routers import RouterProcess

pytestmark = pytest.mark.both_builds


def round_trip(connection: ProtonConnection) -> None:
    """Whatever the router had to say to a connection so far has arrived when this returns."""
    connection.receiver("round-trip").detach()


def test_nobody_receives_so_nobody_may_send(
    router: RouterProcess, proton: ProtonPeers, address: str
) -> None:
    connection = proton.connect(router.url())
    sender = connection.sender(address)
    round_trip(connection)
    assert sender.link.credit == 0


def test_credit_0_first_and_more_later(
    router: RouterProcess, proton: ProtonPeers, address: str
) -> None:
    receiving, sending = proton.connect(router.url()), proton.connect(router.url())
    receiver = receiving.receiver(address, 0)
    sender = sending.sender(address)
    for n in range(3):
        sender.send(Message(n), wait=False)
    round_trip(sending)
    round_trip(receiving)
    assert receiver.received == []
    receiver.link.flow(1)
    receiver.get(1)
    round_trip(receiving)
    assert receiver.bodies() == [0]
    receiver.link.flow(5)
    assert [each.body for each in receiver.get(3)] == [0, 1, 2]
    proton.until(sender.all_settled, "everything is settled")
    assert sender.outcomes == ["accepted"] * 3


@pytest.mark.parametrize("credit", [1, 1000])
@pytest.mark.spec("2.6.7-7", "B2.3.9-3")
def test_a_receiver_gets_no_more_than_its_credit(
    router: RouterProcess, proton: ProtonPeers, address: str, credit: int
) -> None:
    receiving, sending = proton.connect(router.url()), proton.connect(router.url())
    receiver = receiving.receiver(address, credit)
    sender = sending.sender(address)
    for n in range(credit + 5):
        sender.send(Message(n), wait=False)
    receiver.get(credit)
    round_trip(sending)
    round_trip(receiving)
    assert len(receiver.received) == credit
    receiver.link.flow(5)
    receiver.get(credit + 5)
    assert receiver.bodies() == list(range(credit + 5))
    proton.until(sender.all_settled, "everything is settled")


def test_credit_1_all_the_way(router: RouterProcess, proton: ProtonPeers, address: str) -> None:
    receiver = proton.connect(router.url()).receiver(address, 1)
    receiver.renews = True
    sender = proton.connect(router.url()).sender(address)
    for n in range(200):
        sender.send(Message(n))
    receiver.get(200)
    assert receiver.bodies() == list(range(200))
    proton.until(sender.all_settled, "everything is settled")


@pytest.mark.spec("B2.2.2-1")
def test_credit_of_one_receiver_backs_several_senders(
    router: RouterProcess, proton: ProtonPeers, address: str
) -> None:
    receiver = proton.connect(router.url()).receiver(address, 20)
    receiver.renews = True
    senders = [proton.connect(router.url()).sender(address) for _ in range(5)]
    for n in range(40):
        for number, sender in enumerate(senders):
            sender.send(Message(100 * number + n))
    receiver.get(200)
    for number in range(5):
        mine = [body for body in receiver.bodies() if body // 100 == number]
        assert mine == [100 * number + n for n in range(40)]


@pytest.mark.spec("2.6.7-9")
def test_a_drain_without_messages_ends_at_once(
    router: RouterProcess, proton: ProtonPeers, address: str
) -> None:
    receiver = proton.connect(router.url()).receiver(address, 10)
    receiver.link.drain(0)
    proton.until(lambda: receiver.is_drained, "the receiver is drained")
    assert receiver.link.credit == 0
    sender = proton.connect(router.url()).sender(address)
    sent = sender.send(Message("x"), wait=False)
    receiver.link.flow(1)
    receiver.get()
    assert sender.settled(sent).outcome == "accepted"


@pytest.mark.spec("2.6.7-6")
def test_a_drain_brings_what_waits_first(
    router: RouterProcess, proton: ProtonPeers, address: str
) -> None:
    sending = proton.connect(router.url())
    receiver = proton.connect(router.url()).receiver(address, 1)
    # Each of two idle senders may send one message ahead, and only one is taken.
    senders = [sending.sender(address), sending.sender(address)]
    for sender in senders:
        sender.wait_for_credit()
    for n, sender in enumerate(senders):
        sender.send(Message(n))
    receiver.get(1)
    round_trip(sending)
    assert len(receiver.received) == 1
    receiver.link.drain(5)
    proton.until(lambda: receiver.is_drained, "the receiver is drained")
    assert sorted(receiver.bodies()) == [0, 1]


def test_a_receiver_that_only_polls_gets_messages(
    router: RouterProcess, proton: ProtonPeers, address: str
) -> None:
    receiver = proton.connect(router.url()).receiver(address)
    sender = proton.connect(router.url()).sender(address)
    for n in range(3):
        sender.send(Message(n), wait=False)
    for n in range(3):
        receiver.link.drain(1)
        receiver.get(n + 1)
        assert receiver.bodies() == list(range(n + 1))
    receiver.link.drain(1)
    proton.until(lambda: receiver.is_drained, "the receiver is drained")
    assert receiver.bodies() == [0, 1, 2]


def test_rhea_drains(router: RouterProcess, rhea: RheaPeer, address: str) -> None:
    rhea.connect(router.port, username="anonymous")
    rhea.receiver(address, credit_window=0)
    rhea.tell("credit", link="receiver", credit=7)
    rhea.tell("drain", link="receiver")
    rhea.wait("receiver_drained")


def test_credit_is_taken_back_when_the_last_receiver_goes(
    router: RouterProcess, proton: ProtonPeers, rhea: RheaPeer, address: str
) -> None:
    receiver = proton.connect(router.url()).receiver(address, 50)
    sender = proton.connect(router.url()).sender(address)
    sender.gives_back = True
    rhea.connect(router.port, username="anonymous")
    rhea.sender(address)
    proton.until(lambda: sender.link.credit > 0, "the sender has credit")
    rhea.wait("sendable")
    receiver.detach()
    proton.until(lambda: sender.link.credit == 0, "the credit is back")
    assert sender.drains == 1
    rhea.wait("sender_draining")
    again = proton.connect(router.url()).receiver(address, 50)
    assert sender.outcome(Message("x")).outcome == "accepted"
    rhea.send(bytes(Message("y").encode()))
    again.get(2)
    rhea.wait("accepted")


def test_a_slow_receiver_slows_its_senders_and_nobody_else(
    router: RouterProcess, proton: ProtonPeers, address: str
) -> None:
    connection = proton.connect(router.url())
    slow = proton.connect(router.url()).receiver(f"{address}/slow", 1)
    quick = proton.connect(router.url()).receiver(f"{address}/quick", 10)
    quick.renews = True
    # both senders share a session
    to_slow = connection.sender(f"{address}/slow")
    to_quick = connection.sender(f"{address}/quick")
    for n in range(20):
        to_slow.send(Message(n), wait=False)
    for n in range(300):
        to_quick.send(Message(n))
    quick.get(300)
    assert len(slow.received) == 1
    slow.link.flow(19)
    slow.get(20)
    assert slow.bodies() == list(range(20))


@pytest.mark.spec("2.6.7-9")
def test_go_amqp_drains_with_credit_and_without(router: RouterProcess, address: str) -> None:
    assert said_by_go(router.url(), address) == [
        "drained: without credit",
        "drained: without credit again",
        "drained: credit that nobody uses",
        "received: hello",
        "drained: credit that is used up",
    ]
