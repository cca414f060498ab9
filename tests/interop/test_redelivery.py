"""Messages that one client releases or modifies are delivered to another, with the changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from proton import Message, symbol

from support.proton_peers import ProtonPeers, ProtonReceiver, ProtonSender, Sent, modify, release
from support.rhea_peers import RheaPeer
from support.routers import RouterProcess


@pytest.mark.parametrize(
    ("say", "count", "annotations"),
    [(release, 0, None), (modify, 1, {symbol("x-opt-why"): "because"})],
)
def test_what_proton_gives_back_another_proton_gets(
    router: RouterProcess,
    proton: ProtonPeers,
    address: str,
    say: Callable[[Any], None],
    count: int,
    annotations: Any,
) -> None:
    receivers = [proton.connect(router.url()).receiver(address, 10, accept=False) for _ in range(2)]
    sender = proton.connect(router.url()).sender(address)
    sent = sender.send(Message("x", id="1", first_acquirer=True))
    proton.until(lambda: any(each.received for each in receivers), "one has it")
    giver, taker = receivers if receivers[0].received else receivers[::-1]
    (received,) = giver.get()
    assert received.message.first_acquirer
    say(received.delivery)
    received.settle()
    (again,) = taker.get()
    assert (again.message.id, again.body) == ("1", "x")
    assert not again.message.first_acquirer
    assert again.message.delivery_count == count
    assert (again.message.annotations or None) == annotations
    assert not sent.is_settled
    again.accept()
    assert sender.settled(sent).outcome == "accepted"
    assert len(giver.received) == 1


def until_both_take(
    proton: ProtonPeers, rhea: RheaPeer, receiver: ProtonReceiver, sender: ProtonSender
) -> list[Sent]:
    """Send until each of the two receivers has something: then both have credit."""
    sent: list[Sent] = []

    def came() -> int:
        return len(receiver.received) + len(rhea.find("message"))

    while not (receiver.received and rhea.find("message")):
        sent.append(sender.send(Message(len(sent))))
        proton.until(lambda: came() == len(sent), "one of them has it")
    return sent


def test_what_nobody_wants_is_its_sender_s(
    router: RouterProcess, proton: ProtonPeers, address: str
) -> None:
    receivers = [proton.connect(router.url()).receiver(address, 10, accept=False) for _ in range(2)]
    sender = proton.connect(router.url()).sender(address)
    sent = sender.send(Message("x"))
    proton.until(lambda: any(each.received for each in receivers), "one has it")
    ordered = receivers if receivers[0].received else receivers[::-1]
    for receiver, say in zip(ordered, (release, modify), strict=True):
        (held,) = receiver.get()
        assert not sent.is_settled
        say(held.delivery)
        held.settle()
    outcome = sender.settled(sent)
    assert (outcome.outcome, outcome.failed, outcome.undeliverable) == ("modified", True, True)
    assert [len(each.received) for each in receivers] == [1, 1]


@pytest.mark.parametrize(
    "said",
    [
        {"outcome": "released"},
        {"outcome": "modified", "fields": {"delivery_failed": True, "undeliverable_here": True}},
    ],
)
def test_what_rhea_gives_back_proton_gets(
    router: RouterProcess, proton: ProtonPeers, rhea: RheaPeer, address: str, said: dict[str, Any]
) -> None:
    rhea.connect(router.port, username="anonymous")
    rhea.receiver(address, autoaccept=False)
    receiver = proton.connect(router.url()).receiver(address, 10, accept=False)
    sender = proton.connect(router.url()).sender(address)
    sent = until_both_take(proton, rhea, receiver, sender)
    has, taken = len(receiver.received), len(rhea.find("message"))
    rhea.tell("settle", link="receiver", number=taken - 1, **said)
    for each in receiver.get(has + 1):
        each.accept()
    for number in range(taken - 1):
        rhea.tell("settle", link="receiver", number=number, outcome="accepted")
    assert {sender.settled(each).outcome for each in sent} == {"accepted"}


def test_what_proton_gives_back_rhea_gets(
    router: RouterProcess, proton: ProtonPeers, rhea: RheaPeer, address: str
) -> None:
    receiver = proton.connect(router.url()).receiver(address, 10, accept=False)
    rhea.connect(router.port, username="anonymous")
    rhea.receiver(address)
    sender = proton.connect(router.url()).sender(address)
    sent = until_both_take(proton, rhea, receiver, sender)
    *others, held = receiver.received
    taken = len(rhea.find("message"))
    modify(held.delivery)
    held.settle()
    again = Message()
    again.decode(rhea.messages(taken + 1)[-1])
    for each in others:
        each.accept()
    assert {sender.settled(each).outcome for each in sent} == {"accepted"}
    assert again.body == held.body
    assert again.delivery_count == 1
    assert again.annotations == {symbol("x-opt-why"): "because"}
