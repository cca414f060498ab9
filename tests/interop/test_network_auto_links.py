"""Queues of a broker at one router, for clients at others: auto-links, waypoints and fallbacks."""

from __future__ import annotations

from proton import Message

from support.configuring import both_ways, entity
from support.proton_broker import ProtonBroker
from support.proton_peers import ProtonPeers
from support.router_lines import start_line
from support.routers import RouterProcess, StartRouter

BROKERS = entity("listener", name="brokers", host="127.0.0.1", port=0, role="route-container")


def brokers_at(line: list[RouterProcess]) -> str:
    """Where brokers connect to the last router of a line."""
    return line[-1].url(listener=2)


def bodies(broker: ProtonBroker, queue: str) -> list[str]:
    """Return the bodies of the messages in a queue."""
    found = []
    for octets in broker.queues[queue]:
        message = Message()
        message.decode(octets)
        found.append(str(message.body))
    return found


def test_what_is_sent_anywhere_gets_into_a_queue_and_out_of_one(
    routers: StartRouter, proton: ProtonPeers
) -> None:
    links = entity(
        "autoLink", address="orders", direction="out", connection="brokers", externalAddress="in/q"
    ) + entity(
        "autoLink",
        address="news",
        direction="in",
        phase=0,
        containerId="broker",
        externalAddress="out/q",
    )
    line = start_line(routers, "a", "b", "c", last=BROKERS + links)
    broker = ProtonBroker(proton)
    broker.queues["out/q"].append(bytes(Message("old").encode()))
    broker.connect(brokers_at(line), container_id="broker")
    client = proton.connect(line[0].url())
    sender = client.sender("orders")
    for number in range(30):
        assert sender.outcome(Message(str(number))).outcome == "accepted"
    assert bodies(broker, "in/q") == [str(number) for number in range(30)]
    receiver = client.receiver("news", 10)
    assert receiver.get()[0].body == "old"


def test_a_queue_between_clients_at_other_routers(
    routers: StartRouter, proton: ProtonPeers
) -> None:
    line = start_line(
        routers,
        "a",
        "b",
        "c",
        every=entity("address", prefix="orders", waypoint=True),
        last=BROKERS + both_ways("autoLink", address="orders", connection="brokers"),
    )
    broker = ProtonBroker(proton).connect(brokers_at(line), container_id="broker")
    sender = proton.connect(line[0].url()).sender("orders")
    for number in range(5):
        assert sender.outcome(Message(str(number))).outcome == "accepted"
    # nobody receives yet, so the broker keeps them
    assert bodies(broker, "orders") == [str(number) for number in range(5)]
    receiver = proton.connect(line[1].url()).receiver("orders", 10)
    assert [each.body for each in receiver.get(5)] == [str(number) for number in range(5)]
    there = proton.connect(line[0].url()).receiver("orders", 10)
    receiver.detach()
    assert sender.outcome(Message("last")).outcome == "accepted"
    assert there.get()[0].body == "last"


def test_a_fallback_at_another_router(routers: StartRouter, proton: ProtonPeers) -> None:
    line = start_line(
        routers,
        "a",
        "b",
        "c",
        every=entity("address", prefix="alarms", enableFallback=True),
        last=BROKERS
        + entity(
            "autoLink", address="alarms", direction="out", fallback=True, connection="brokers"
        ),
    )
    broker = ProtonBroker(proton).connect(brokers_at(line), container_id="broker")
    sender = proton.connect(line[0].url()).sender("alarms")
    assert sender.outcome(Message("nobody")).outcome == "accepted"
    assert bodies(broker, "alarms") == ["nobody"]
    receiver = proton.connect(line[1].url()).receiver("alarms", 10)
    count = 0
    # the first router may hear of the receiver a moment later
    while not receiver.received:
        assert sender.outcome(Message(f"somebody {count}")).outcome == "accepted"
        count += 1
    before = len(broker.queues["alarms"])
    assert sender.outcome(Message("there")).outcome == "accepted"
    proton.until(lambda: "there" in receiver.bodies(), "the receiver has it")
    assert len(broker.queues["alarms"]) == before
    receiver.detach()
    while len(broker.queues["alarms"]) == before:
        sent = sender.outcome(Message("gone"))
        assert sent.outcome in ("accepted", "released")
