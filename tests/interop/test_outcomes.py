"""Every outcome that a receiver can name reaches the sender, with all that was said with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from proton import Condition, Delivery, Link, Message, symbol
from proton.reactor import LinkOption

from support.proton_peers import ProtonPeers, Received, Sent, modify, release
from support.rhea_peers import RheaPeer
from support.routers import RouterProcess

pytestmark = pytest.mark.both_builds


def accept(delivery: Any) -> None:
    """Answer a delivery with accepted."""
    delivery.update(Delivery.ACCEPTED)


def reject(delivery: Any) -> None:
    """Rejected, with an error that has everything an error can have."""
    delivery.local.condition = Condition("example:bad", "no good", {symbol("why"): "because"})
    delivery.update(Delivery.REJECTED)


def modify_nothing(delivery: Any) -> None:
    """Answer a delivery with a modified outcome that has no fields."""
    delivery.update(Delivery.MODIFIED)


def say_nothing(delivery: Any) -> None:
    """Settled without an outcome."""


def extend(delivery: Any) -> None:
    """Answer a delivery with an outcome that no specification defines."""
    delivery.local.data = ["some", 1]
    delivery.update(0x1234)


def is_extended(sent: Sent) -> bool:
    """Whether the sender learnt what `extend` says."""
    return int(sent.state) == 0x1234 and sent.data == ["some", 1]


SAYINGS: list[tuple[Callable[[Any], None], Callable[[Sent], bool]]] = [
    (accept, lambda sent: sent.outcome == "accepted"),
    (
        reject,
        lambda sent: (
            sent.outcome == "rejected"
            and sent.condition == Condition("example:bad", "no good", {symbol("why"): "because"})
        ),
    ),
    (release, lambda sent: sent.outcome == "released"),
    (
        modify,
        lambda sent: (
            sent.outcome == "modified"
            and sent.failed
            and sent.undeliverable
            and sent.annotations == {symbol("x-opt-why"): "because"}
        ),
    ),
    (
        modify_nothing,
        lambda sent: sent.outcome == "modified" and not sent.failed and not sent.undeliverable,
    ),
    (say_nothing, lambda sent: sent.state is None),
    (extend, is_extended),
]


@pytest.mark.parametrize(
    ("say", "is_understood"), SAYINGS, ids=[say.__name__ for say, _ in SAYINGS]
)
def test_what_a_proton_receiver_says_reaches_a_proton_sender(
    router: RouterProcess,
    proton: ProtonPeers,
    address: str,
    say: Callable[[Any], None],
    is_understood: Callable[[Sent], bool],
) -> None:
    receiver = proton.connect(router.url()).receiver(address, 10, accept=False)
    sender = proton.connect(router.url()).sender(address)
    sent = sender.send(Message("x"))
    (received,) = receiver.get()
    say(received.delivery)
    received.settle()
    assert is_understood(sender.settled(sent)), sent


@pytest.mark.parametrize("order", ["in order", "backwards"])
def test_many_different_outcomes_at_once(
    router: RouterProcess, proton: ProtonPeers, address: str, order: str
) -> None:
    receiver = proton.connect(router.url()).receiver(address, 1000, accept=False)
    sender = proton.connect(router.url()).sender(address)
    sent = [sender.send(Message(n)) for n in range(200)]
    received = receiver.get(200)
    assert receiver.bodies() == list(range(200))
    ways = list(zip(received, SAYINGS * 50, strict=False))
    for each, (say, _) in ways if order == "in order" else reversed(ways):
        say(each.delivery)
        each.settle()
    proton.until(sender.all_settled, "everything is settled")
    assert [n for n, each in enumerate(sent) if not SAYINGS[n % len(SAYINGS)][1](each)] == []


def test_what_a_rhea_receiver_says_reaches_a_proton_sender(
    router: RouterProcess, proton: ProtonPeers, rhea: RheaPeer, address: str
) -> None:
    rhea.connect(router.port, username="anonymous")
    rhea.receiver(address, autoaccept=False)
    sender = proton.connect(router.url()).sender(address)
    sent = [sender.send(Message(n)) for n in range(6)]
    rhea.messages(6)
    error = {"condition": "example:bad", "description": "no good"}
    says: list[dict[str, Any]] = [
        {"outcome": "accepted"},
        {"outcome": "rejected", "error": error},
        {"outcome": "released"},
        {"outcome": "modified", "fields": {"delivery_failed": True, "undeliverable_here": True}},
        {"outcome": "modified", "fields": {}},
        {"outcome": "example:outcome:list"},
    ]
    for number, said in enumerate(says):
        # One at a time: rhea gives two different outcomes at once the first's state for both.
        rhea.tell("settle", link="receiver", number=number, **said)
        sender.settled(sent[number])
    assert sender.outcomes[:5] == ["accepted", "rejected", "released", "modified", "modified"]
    assert sent[1].condition == Condition("example:bad", "no good")
    assert (sent[3].failed, sent[3].undeliverable) == (True, True)
    assert (sent[4].failed, sent[4].undeliverable) == (False, False)
    # proton has no words for a symbol; it knows at least that it is none of its own
    assert sent[5].outcome not in ("accepted", "rejected", "released", "modified")


def test_what_a_proton_receiver_says_reaches_a_rhea_sender(
    router: RouterProcess, proton: ProtonPeers, rhea: RheaPeer, address: str
) -> None:
    receiver = proton.connect(router.url()).receiver(address, 100, accept=False)
    rhea.connect(router.port, username="anonymous")
    rhea.sender(address, treat_modified_as_released=False)
    for number, (say, _) in enumerate(SAYINGS):
        rhea.send(bytes(Message(number).encode()))
        received: Received = receiver.get(number + 1)[number]
        say(received.delivery)
        received.settle()
    rhea.wait("settled", len(SAYINGS))
    assert [each["number"] for each in rhea.find("accepted")] == [0]
    (rejected,) = rhea.find("rejected")
    assert (rejected["error"]["condition"], rejected["error"]["description"]) == (
        "example:bad",
        "no good",
    )
    assert [each["number"] for each in rhea.find("released")] == [2]
    full, empty = rhea.find("modified")
    assert (full["failed"], full["undeliverable"]) == (True, True)
    assert full["annotations"] == {"x-opt-why": "because"}
    assert (empty["failed"], empty["undeliverable"]) == (False, False)


@pytest.mark.parametrize(
    ("said", "merged"),
    [
        ([accept, reject, release], "rejected"),
        ([accept, modify, release], "accepted"),
        ([release, modify, release], "modified"),
        ([release, release, release], "released"),
        ([accept, accept, accept], "accepted"),
    ],
)
def test_the_outcomes_of_a_multicast_are_merged(
    router: RouterProcess,
    proton: ProtonPeers,
    address: str,
    said: list[Callable[[Any], None]],
    merged: str,
) -> None:
    address = f"multicast/{address}"
    receivers = [proton.connect(router.url()).receiver(address, 10, accept=False) for _ in said]
    sender = proton.connect(router.url()).sender(address)
    sent = sender.send(Message("x"))
    for receiver, say in zip(receivers, said, strict=True):
        (received,) = receiver.get()
        assert not sent.is_settled
        say(received.delivery)
        received.settle()
    assert sender.settled(sent).outcome == merged


class Settle(LinkOption):
    """The receiver of the link settles first, or second."""

    def __init__(self, mode: int) -> None:
        self.mode = mode

    def apply(self, link: Any) -> None:
        """Set the mode."""
        link.rcv_settle_mode = self.mode


@pytest.mark.spec("2.7.3-5", "2.7.5-13", "2.7.5-14")
@pytest.mark.parametrize("receives", [Link.RCV_FIRST, Link.RCV_SECOND])
@pytest.mark.parametrize("settles", [True, False], ids=["settles", "waits"])
def test_a_sender_that_settles_before_its_receiver_does(
    router: RouterProcess, proton: ProtonPeers, address: str, receives: int, settles: bool
) -> None:
    """All three ways between two protons, whatever the receiver does by itself."""
    receiver = proton.connect(router.url()).receiver(
        address, 10, accept=False, options=[Settle(receives)]
    )
    assert receiver.link.remote_rcv_settle_mode == receives
    sender = proton.connect(router.url()).sender(address, options=[Settle(Link.RCV_SECOND)])
    proton.until(lambda: sender.link.credit > 0, "the sender has credit")
    assert sender.link.remote_rcv_settle_mode == Link.RCV_SECOND
    sent = sender.send(Message("x"))
    (received,) = receiver.get()
    received.delivery.update(Delivery.ACCEPTED)
    if settles:
        received.delivery.settle()
    proton.until(lambda: sent.outcome == "accepted", "the sender knows the outcome")
    assert not sent.is_settled
    if not settles:
        assert not received.delivery.settled
    sent.delivery.settle()
    if not settles:
        proton.until(lambda: received.delivery.settled, "the receiver knows that it is settled")
        received.delivery.settle()


@pytest.mark.spec("2.7.5-13", "2.8.3-1")
def test_a_receiver_that_waits_holds_up_no_sender_that_does_not(
    router: RouterProcess, proton: ProtonPeers, address: str
) -> None:
    receiver = proton.connect(router.url()).receiver(
        address, 10, accept=False, options=[Settle(Link.RCV_SECOND)]
    )
    sender = proton.connect(router.url()).sender(address)
    sent = sender.send(Message("x"))
    (received,) = receiver.get()
    received.delivery.update(Delivery.ACCEPTED)
    assert sender.settled(sent).outcome == "accepted"
    proton.until(lambda: received.delivery.settled, "the receiver is settled, too")


@pytest.mark.parametrize("receives", [0, 1])
def test_a_rhea_sender_that_settles_before_its_receiver_does(
    router: RouterProcess, proton: ProtonPeers, rhea: RheaPeer, address: str, receives: int
) -> None:
    receiver = proton.connect(router.url()).receiver(
        address, 10, accept=False, options=[Settle(receives)]
    )
    rhea.connect(router.port)
    rhea.sender(address, rcv_settle_mode=1)
    rhea.wait("sendable", link="sender")
    rhea.send(bytes(Message("x").encode()))
    (received,) = receiver.get()
    received.delivery.update(Delivery.ACCEPTED)
    rhea.wait("accepted", link="sender")
    assert rhea.find("settled", link="sender") == []
    assert not received.delivery.settled
    rhea.tell("settle_sent", link="sender", number=0)
    proton.until(lambda: received.delivery.settled, "the receiver knows that it is settled")


@pytest.mark.parametrize("sends", [Link.RCV_FIRST, Link.RCV_SECOND])
def test_a_rhea_receiver_that_settles_after_its_sender(
    router: RouterProcess, proton: ProtonPeers, rhea: RheaPeer, address: str, sends: int
) -> None:
    rhea.connect(router.port)
    rhea.receiver(address, rcv_settle_mode=1, autoaccept=False)
    sender = proton.connect(router.url()).sender(address, options=[Settle(sends)])
    sent = sender.send(Message("x"))
    rhea.messages(1)
    rhea.tell("settle", link="receiver", number=0, outcome="accepted")
    proton.until(lambda: sent.outcome == "accepted", "the sender knows the outcome")
    assert sent.is_settled is (sends == Link.RCV_FIRST)
    if sends == Link.RCV_SECOND:
        assert rhea.find("settled", link="receiver") == []
        sent.delivery.settle()
    rhea.wait("settled", link="receiver")


def test_a_receiver_that_goes_leaves_no_delivery_open(
    router: RouterProcess, proton: ProtonPeers, address: str
) -> None:
    connection = proton.connect(router.url())
    receiver = proton.connect(router.url()).receiver(address, 10)
    sender = connection.sender(address)
    assert sender.outcome(Message("x")).outcome == "accepted"
    # One is sent in the moment in which the receiver goes.
    receiver.link.close()
    sent = sender.send(Message("y"))
    assert sender.settled(sent).outcome in ("accepted", "released", "modified")


class AtMost(LinkOption):
    """The receiver takes messages of so many octets."""

    def __init__(self, size: int) -> None:
        self.size = size

    def apply(self, link: Any) -> None:
        """Set the limit."""
        link.max_message_size = self.size


@pytest.mark.spec("2.7.3-15")
@pytest.mark.parametrize("size", [2000, 200_000])
def test_a_receiver_gets_nothing_larger_than_it_takes(
    router: RouterProcess, proton: ProtonPeers, address: str, size: int
) -> None:
    """Be it one frame, or several: the sender learns how large it may be, and goes on."""
    small = proton.connect(router.url()).receiver(address, 10, options=[AtMost(1000)])
    sender = proton.connect(router.url()).sender(address)
    sent = sender.outcome(Message("." * size))
    assert sent.outcome == "rejected"
    assert sent.condition is not None
    assert sent.condition.name == "amqp:link:message-size-exceeded"
    assert "1000" in str(sent.condition.description)
    large = proton.connect(router.url()).receiver(address, 10)
    assert sender.outcome(Message("." * 2000)).outcome == "accepted"
    assert len(large.get()[0].body) == 2000
    assert not small.is_over
    assert sender.outcome(Message(".")).outcome == "accepted"
