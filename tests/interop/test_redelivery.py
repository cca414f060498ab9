"""What one client gives back another one gets, changed as the first one said."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from proton import Delivery, Message, symbol

from support.proton_peers import ProtonPeers
from support.rhea_peers import RheaPeer
from support.routers import RouterProcess


def release(delivery: Any) -> None:
    """Released."""
    delivery.update(Delivery.RELEASED)


def modify(delivery: Any) -> None:
    """Modified, with everything that modified can have."""
    delivery.local.failed = True
    delivery.local.undeliverable = True
    delivery.local.annotations = {symbol("x-opt-why"): "because"}
    delivery.update(Delivery.MODIFIED)


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
    sender = proton.connect(router.url()).sender(address)
    first = sender.send(Message("first"))
    rhea.messages(1)
    # the fewest unsettled: the next one is proton's, and rhea gets the one after it
    receiver = proton.connect(router.url()).receiver(address, 10, accept=False)
    rhea.tell("settle", link="receiver", number=0, outcome="accepted")
    sender.settled(first)
    sent = [sender.send(Message(n)) for n in range(2)]
    rhea.messages(2)
    receiver.get()
    rhea.tell("settle", link="receiver", number=1, **said)
    received = receiver.get(2)
    for each in received:
        each.accept()
    assert [sender.settled(each).outcome for each in sent] == ["accepted", "accepted"]
    assert sorted(receiver.bodies()) == [0, 1]


def test_what_proton_gives_back_rhea_gets(
    router: RouterProcess, proton: ProtonPeers, rhea: RheaPeer, address: str
) -> None:
    receiver = proton.connect(router.url()).receiver(address, 10, accept=False)
    rhea.connect(router.port, username="anonymous")
    sender = proton.connect(router.url()).sender(address)
    first = sender.send(Message("first"))
    (received,) = receiver.get()
    rhea.receiver(address)
    received.accept()
    sender.settled(first)
    sent = [sender.send(Message(n)) for n in range(2)]
    held = receiver.get(2)[1]
    modify(held.delivery)
    held.settle()
    octets = rhea.messages(2)
    assert [sender.settled(each).outcome for each in sent] == ["accepted", "accepted"]
    messages = [Message() for _ in octets]
    for each, found in zip(octets, messages, strict=True):
        found.decode(each)
    assert {str(found.body) for found in messages} == {"0", "1"}
    again = next(found for found in messages if found.body == held.body)
    assert again.delivery_count == 1
    assert again.annotations == {symbol("x-opt-why"): "because"}
