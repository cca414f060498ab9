"""Brokers of different makes behind one router: no client knows which of them holds its queue."""

from __future__ import annotations

from collections import Counter

import pytest
from proton import Message

from support.broker_loads import Consumer, Ledger, Producer, Traffic
from support.brokers import Broker, until_active, until_connected
from support.configuring import LISTENER, both_ways, entity
from support.proton_peers import ProtonPeers
from support.routers import StartRouter


@pytest.fixture
def connectors(rabbitmq: Broker, artemis: Broker, example: Broker) -> str:
    """Return the configuration of a listener, and of a connector to each broker."""
    return "".join([LISTENER, *(each.connector() for each in (rabbitmq, artemis, example))])


def test_a_queue_here_and_a_queue_there_through_one_connection_by_auto_links(
    routers: StartRouter,
    proton: ProtonPeers,
    address: str,
    connectors: str,
    rabbitmq: Broker,
    artemis: Broker,
) -> None:
    orders = rabbitmq.make_queue(proton, f"{address}-orders")
    billing = artemis.make_queue(proton, f"{address}-billing")
    router = routers(
        connectors
        + entity("address", prefix="orders", waypoint=True)
        + entity("address", prefix="billing", waypoint=True)
        + both_ways("autoLink", address="orders", connection="rabbitmq", externalAddress=orders)
        + both_ways("autoLink", address="billing", connection="artemis", externalAddress=billing)
    )
    client = proton.connect(router.url())
    for name, broker, queue in (("orders", rabbitmq, orders), ("billing", artemis, billing)):
        assert client.sender(name).outcome(Message(name, durable=True)).outcome == "accepted"
        # it waits at the broker, where others find it as well
        there = proton.connect(broker.url())
        looking = there.receiver(queue, 1, accept=False).get()[0]
        assert looking.body == name
        there.close()
        assert client.receiver(name, 10).get()[0].body == name


def test_a_queue_here_and_a_queue_there_through_one_connection_by_link_routes(
    routers: StartRouter,
    proton: ProtonPeers,
    address: str,
    connectors: str,
    artemis: Broker,
) -> None:
    router = routers(
        connectors
        + both_ways("linkRoute", prefix="orders", connection="example")
        + both_ways("linkRoute", prefix="billing", connection="artemis")
    )
    until_connected(proton, router, 3)
    client = proton.connect(router.url())
    for name in (f"orders.{address}", f"billing.{address}"):
        assert client.sender(name).outcome(Message(name, durable=True)).outcome == "accepted"
        assert client.receiver(name, 1).get()[0].body == name
    # one of them is at the broker that it should be at
    assert client.sender(f"billing.{address}").outcome(Message("x")).outcome == "accepted"
    there = proton.connect(artemis.url())
    assert there.receiver(f"billing.{address}", 1).get()[0].body == "x"


def test_a_queue_is_spread_over_brokers_of_different_makes(
    routers: StartRouter,
    proton: ProtonPeers,
    address: str,
    connectors: str,
    rabbitmq: Broker,
    artemis: Broker,
) -> None:
    queues = {each.name: each.make_queue(proton, address) for each in (rabbitmq, artemis)}
    router = routers(
        connectors
        + entity("address", prefix=address, waypoint=True)
        + "".join(
            both_ways("autoLink", address=address, connection=name, externalAddress=queue)
            for name, queue in queues.items()
        )
    )
    # one that is first would take all
    until_active(proton, router, 4)
    ledger = Ledger()
    client = proton.connect(router.url())
    producer = Producer(ledger, client, address, 1000)
    proton.until(producer.step, "all was accepted")
    # both have their share
    shares = Counter(
        {each.name: _some(proton, each, queues[each.name], 10) for each in (rabbitmq, artemis)}
    )
    assert shares == {"rabbitmq": 10, "artemis": 10}
    traffic = Traffic(ledger, [producer], [Consumer(ledger, client, address)])
    proton.until(traffic.step, "all has arrived")
    ledger.check(["accepted"])
    assert len(ledger.order) == 1000


def _some(proton: ProtonPeers, broker: Broker, queue: str, count: int) -> int:
    """How many of so many messages there are in a queue; they are given back."""
    client = proton.connect(broker.url())
    found = len(client.receiver(queue, count, accept=False).get(count))
    client.close()
    return found
