"""Multicasts and exchanges in a network of real routers, some of which are lost."""

from __future__ import annotations

import signal

import pytest
from proton import Message

from support.configuring import entity
from support.proton_peers import ProtonPeers
from support.router_lines import interior, start_line, until_known
from support.routers import RouterProcess, StartRouter

NEWS = entity("address", prefix="news", distribution="multicast")
EXCHANGE = entity("exchange", name="e", address="topics", matchMethod="mqtt") + "".join(
    entity("binding", name=hop, exchangeName="e", bindingKey=key, nextHopAddress=hop)
    for hop, key in (("news", "a/b"), ("orders", "a/+"), ("nobody", "a/#"))
)


@pytest.fixture
def ring(routers: StartRouter) -> dict[str, RouterProcess]:
    """Three routers: from `a` to `c` it is cheaper by `b`, and dearer without it."""
    c = routers(interior("c", more=NEWS))
    b = routers(interior("b", c, more=NEWS))
    a = routers(interior("a", b, c, costs=(1, 5), more=NEWS))
    return {"a": a, "b": b, "c": c}


def test_each_receiver_anywhere_gets_each_message_once(
    ring: dict[str, RouterProcess], proton: ProtonPeers
) -> None:
    receivers = [proton.connect(router.url()).receiver("news", 10) for router in ring.values()]
    for router in ring.values():
        until_known(router, "M0news")
    for number, router in enumerate(ring.values()):
        sender = proton.connect(router.url()).sender("news")
        # one that comes before the tree has all its links would be for fewer
        assert sender.outcome(Message(f"message {number}")).outcome == "accepted"
    for receiver in receivers:
        assert sorted(each.body for each in receiver.get(3)) == [
            "message 0",
            "message 1",
            "message 2",
        ]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "paused"])
def test_what_was_accepted_has_come_to_all_when_a_router_on_the_way_is_lost(
    ring: dict[str, RouterProcess], proton: ProtonPeers, how: signal.Signals
) -> None:
    near = proton.connect(ring["a"].url()).receiver("news", 10000)
    far = proton.connect(ring["c"].url()).receiver("news", 10000)
    until_known(ring["a"], "M0news")
    sender = proton.connect(ring["a"].url()).sender("news")
    # both ends of the network are there
    while not far.received:
        sender.outcome(Message("first"))
    begun = len(sender.sent)
    try:
        for number in range(600):
            if number == 200:
                ring["b"].process.send_signal(how)
            sender.send(Message(f"{number}"))
        proton.until(sender.all_settled, "everything is settled", 30)
    finally:
        if how == signal.SIGSTOP:
            ring["b"].process.send_signal(signal.SIGCONT)
    outcomes = sender.outcomes[begun:]
    accepted = {f"{number}" for number, each in enumerate(outcomes) if each == "accepted"}
    assert set(outcomes) <= {"accepted", "modified"}
    # it goes on by the other way, once both ends have seen that the router is lost
    last = (f"last {number}" for number in range(100))
    accepted.add(next(body for body in last if sender.outcome(Message(body)).outcome == "accepted"))
    for receiver in (near, far):
        bodies = [each.body for each in receiver.received if each.body != "first"]
        assert len(bodies) == len(set(bodies))
        assert accepted <= set(bodies)


def test_an_exchange_leads_to_receivers_at_other_routers(
    routers: StartRouter, proton: ProtonPeers
) -> None:
    line = start_line(routers, "a", "b", "c", every=NEWS, last=EXCHANGE)
    client = proton.connect(line[0].url())
    news = [client.receiver("news", 5) for _ in range(2)]
    orders = client.receiver("orders", 5)
    until_known(line[0], "M0topics")
    until_known(line[2], "M0news", "M0orders")
    sender = client.sender("topics")
    assert sender.outcome(Message("both", subject="a/b")).outcome == "accepted"
    assert sender.outcome(Message("one", subject="a/c")).outcome == "accepted"
    assert [each.get()[0].body for each in news] == ["both", "both"]
    assert sorted(each.body for each in orders.get(2)) == ["both", "one"]
