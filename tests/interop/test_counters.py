"""The counters in `$management` agree with what the clients have counted themselves."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import pytest
from proton import Delivery, Message
from proton.reactor import AtMostOnce

from support.management_tool import Tool
from support.proton_peers import ProtonPeers, ProtonReceiver, ProtonSender, modify, release
from support.rhea_peers import RheaPeer
from support.routers import PLAIN, RouterProcess, StartRouter

OUTCOMES = ("accepted", "rejected", "released", "modified")
SAYINGS = {
    "accepted": lambda delivery: delivery.update(Delivery.ACCEPTED),
    "rejected": lambda delivery: delivery.update(Delivery.REJECTED),
    "released": release,
    "modified": modify,
}


@pytest.fixture
def counting(start_router: StartRouter) -> RouterProcess:
    """Start a router for this test alone."""
    return start_router(PLAIN)


def links_of(tool: Tool, address: str) -> dict[str, dict[str, Any]]:
    """Return the links of an address, by name."""
    links = tool.query("router.link")
    return {each["linkName"]: each for each in links if each["owningAddr"] == f"M0{address}"}


def outcomes_of(link: dict[str, Any]) -> dict[str, int]:
    """Return the outcomes that a link has counted."""
    counts = {outcome: link[f"{outcome}Count"] for outcome in OUTCOMES}
    return {outcome: count for outcome, count in counts.items() if count}


def settle(receiver: ProtonReceiver, said: Counter[str]) -> None:
    """Settle all that has come since, with one outcome after the other."""
    mine = [each for each in receiver.received if not each.is_settled_by_sender]
    for received in mine[said.total() :]:
        outcome = OUTCOMES[said.total() % len(OUTCOMES)]
        SAYINGS[outcome](received.delivery)
        received.delivery.settle()
        said[outcome] += 1


def has_news(sender: ProtonSender, receivers: list[ProtonReceiver], come: int) -> bool:
    """Whether more has come than `come`, or nothing will."""
    return sender.all_settled() or sum(len(each.received) for each in receivers) > come


def told(sender: ProtonSender) -> Counter[str]:
    """Count the outcomes that a sender was told."""
    return Counter(outcome for outcome in sender.outcomes if outcome)


@pytest.mark.parametrize("address", ["closest/c", "balanced", "multicast/m"])
def test_links_count_what_proton_counts(
    counting: RouterProcess, proton: ProtonPeers, address: str
) -> None:
    tool = Tool(counting)
    (before,) = tool.query("router")
    peer = proton.connect(counting.url())
    receivers = [peer.receiver(address, 50, accept=False, name=f"receiver-{n}") for n in range(2)]
    sender = peer.sender(address, name="unsettled")
    settled = peer.sender(address, name="settled", options=AtMostOnce())
    for number in range(20):
        sender.send(Message(number))
    for number in range(7):
        settled.send(Message(number))
    copies = 2 if address.startswith("multicast") else 1
    proton.until(
        lambda: sum(len(each.received) for each in receivers) == 27 * copies, "all has come"
    )
    said = [Counter[str]() for _ in receivers]
    while not sender.all_settled():
        # what one gives back the other may get
        come = sum(len(each.received) for each in receivers)
        for receiver, words in zip(receivers, said, strict=True):
            settle(receiver, words)
        proton.until(
            partial(has_news, sender, receivers, come), "all is settled, or comes once more"
        )
    links = links_of(tool, address)
    assert links["unsettled"]["deliveryCount"] == len(sender.sent) == 20
    assert outcomes_of(links["unsettled"]) == dict(told(sender))
    assert (links["settled"]["deliveryCount"], links["settled"]["presettledCount"]) == (7, 7)
    for number, receiver in enumerate(receivers):
        link = links[f"receiver-{number}"]
        assert link["deliveryCount"] == len(receiver.received)
        assert link["presettledCount"] == sum(r.is_settled_by_sender for r in receiver.received)
        assert outcomes_of(link) == dict(said[number])
        assert (link["unsettledCount"], link["deliveriesStuck"]) == (0, 0)
        assert link["ingressHistogram"] == [len(receiver.received)]
    (after,) = tool.query("router")
    for outcome in OUTCOMES[1:]:
        name = f"{outcome}Deliveries"
        assert after[name] - before[name] == told(sender)[outcome]
    assert after["presettledDeliveries"] - before["presettledDeliveries"] == 7
    # two requests between, and three answers to none of which anything was said
    assert after["deliveriesIngress"] - before["deliveriesIngress"] == 27 + 2


def test_drained_credit_is_no_delivery(counting: RouterProcess, proton: ProtonPeers) -> None:
    tool = Tool(counting)
    peer = proton.connect(counting.url())
    receiver = peer.receiver("q", 0, name="receiver")
    sender = peer.sender("q", name="sender")
    sender.gives_back = True
    receiver.link.flow(3)
    sender.outcome(Message("x"))
    receiver.link.drain(10)
    proton.until(lambda: receiver.is_drained, "the credit is used up")
    links = links_of(tool, "q")
    assert links["receiver"]["deliveryCount"] == links["sender"]["deliveryCount"] == 1
    assert links["receiver"]["creditAvailable"] == 0


def test_what_nobody_receives_is_dropped_or_released(
    counting: RouterProcess, proton: ProtonPeers
) -> None:
    tool = Tool(counting)
    (before,) = tool.query("router")
    peer = proton.connect(counting.url())
    receiver = peer.receiver("q", 10, name="receiver")
    sender = peer.sender("q", name="sender")
    settled = peer.sender("q", name="settled", options=AtMostOnce())
    # credit that they got while there was a receiver
    sender.wait_for_credit()
    settled.wait_for_credit()
    receiver.detach()
    for number in range(3):
        sender.send(Message(number), wait=False)
    # of credit that is asked back Proton uses no more than once
    settled.send(Message("x"), wait=False)
    proton.until(sender.all_settled, "all is released")
    proton.until(
        lambda: links_of(tool, "q")["settled"]["deliveryCount"] == 1, "the settled one has come"
    )
    links = links_of(tool, "q")
    assert outcomes_of(links["sender"]) == dict(told(sender)) == {"released": 3}
    assert links["settled"]["droppedPresettledCount"] == 1
    (after,) = tool.query("router")
    assert after["releasedDeliveries"] - before["releasedDeliveries"] == 3
    assert after["droppedPresettledDeliveries"] - before["droppedPresettledDeliveries"] == 1


def test_links_count_what_rhea_counts(
    counting: RouterProcess, proton: ProtonPeers, rhea: RheaPeer
) -> None:
    tool = Tool(counting)
    rhea.connect(counting.port)
    rhea.receiver("q", "receiver", credit_window=0, autoaccept=False)
    rhea.tell("credit", link="receiver", credit=20)
    rhea.sender("q", "sender")
    rhea.wait("sendable", link="sender")
    octets = bytes(Message("x").encode())
    for _ in range(8):
        rhea.send(octets)
    rhea.messages(8)
    for number in range(8):
        fields = {"delivery_failed": True}
        outcome = OUTCOMES[number % len(OUTCOMES)]
        rhea.tell("settle", link="receiver", number=number, outcome=outcome, fields=fields)
        # one by one: what rhea settles at once may get its neighbour's outcome
        rhea.wait("settled", number + 1, link="sender")
    links = links_of(tool, "q")
    heard = {word: len(rhea.find(word, link="sender")) for word in OUTCOMES}
    # which rhea tells of what is modified as well
    heard["released"] -= heard["modified"]
    for name in ("sender", "receiver"):
        assert links[name]["deliveryCount"] == 8
        assert outcomes_of(links[name]) == heard
    assert heard == dict.fromkeys(OUTCOMES, 2)


def test_a_blocked_link_tells_for_how_long(counting: RouterProcess, proton: ProtonPeers) -> None:
    tool = Tool(counting)
    peer = proton.connect(counting.url())
    peer.sender("q", name="sender")
    proton.until(lambda: links_of(tool, "q")["sender"]["zeroCreditSeconds"] >= 1, "a second")
    receiver = peer.receiver("q", 5)
    proton.until(lambda: links_of(tool, "q")["sender"]["zeroCreditSeconds"] == 0, "credit")
    assert receiver.received == []
