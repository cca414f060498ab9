"""Brokers that are killed under load and restarted.

No accepted message is lost, and clients observe only what the contract allows.
"""

from __future__ import annotations

from functools import partial

from proton import Message

from support.broker_loads import Consumer, Ledger, Producer, Traffic
from support.brokers import Broker, until_connected
from support.configuring import LISTENER, both_ways, entity
from support.proton_peers import ProtonPeers
from support.routers import StartRouter

COUNT = 1500


def killed_under_load(proton: ProtonPeers, broker: Broker, traffic: Traffic) -> None:
    """Let traffic run, kill the broker in the midst of it, start it again, and let all arrive."""
    proton.until(partial(traffic.has_accepted, COUNT // 6), "some are accepted")
    broker.kill()
    heard = sum(traffic.ledger.outcomes.values())
    # what was under way is not left in the dark
    proton.until(partial(traffic.has_heard, heard + 1), "senders hear of it")
    broker.begin_start()
    proton.until(lambda: traffic.step() or broker.is_ready(), "the broker is back")
    broker.wait_ready()
    proton.until(traffic.step, "all is accepted and has arrived")


def test_a_broker_behind_auto_links_is_killed_under_load(
    routers: StartRouter, proton: ProtonPeers, address: str, durable_broker: Broker
) -> None:
    queue = durable_broker.make_queue(proton, address)
    router = routers(
        LISTENER
        + durable_broker.connector()
        + entity("address", prefix="orders", waypoint=True)
        + both_ways(
            "autoLink", address="orders", connection=durable_broker.name, externalAddress=queue
        )
    )
    ledger = Ledger()
    sending, receiving = proton.connect(router.url()), proton.connect(router.url())
    producer = Producer(ledger, sending, "orders", COUNT)
    consumer = Consumer(ledger, receiving, "orders")
    killed_under_load(proton, durable_broker, Traffic(ledger, [producer], [consumer]))
    ledger.check(["accepted", "released", "modified"])
    # the clients' own links are there all the time
    assert (producer.attached, consumer.attached) == (1, 1)


def test_a_broker_behind_a_link_route_is_killed_under_load(
    routers: StartRouter, proton: ProtonPeers, address: str, artemis: Broker
) -> None:
    artemis.make_queue(proton, address)
    router = routers(
        LISTENER
        + artemis.connector()
        + both_ways("linkRoute", prefix=address, connection=artemis.name)
    )
    until_connected(proton, router)
    ledger = Ledger()
    sending, receiving = proton.connect(router.url()), proton.connect(router.url())
    producer = Producer(ledger, sending, address, COUNT)
    consumer = Consumer(ledger, receiving, address)
    killed_under_load(proton, artemis, Traffic(ledger, [producer], [consumer]))
    ledger.check(["accepted", "released", "modified", ""])
    assert producer.attached > 1
    assert consumer.attached > 1


def test_the_other_broker_of_a_spread_queue_goes_on(
    routers: StartRouter,
    proton: ProtonPeers,
    address: str,
    example: Broker,
    artemis: Broker,
) -> None:
    router = routers(
        LISTENER
        + "".join(
            broker.connector()
            + both_ways(
                "autoLink", address="orders", connection=broker.name, externalAddress=address
            )
            for broker in (example, artemis)
        )
        + entity("address", prefix="orders", waypoint=True)
    )
    client = proton.connect(router.url())
    sender = client.sender("orders")
    assert sender.outcome(Message("before", durable=True)).outcome == "accepted"
    example.kill()
    ledger = Ledger()
    producer = Producer(ledger, client, "orders", 100)
    proton.until(producer.step, "all are accepted")
    there = Consumer(ledger, client, "orders")
    proton.until(lambda: there.step() >= 100, "all are at the other broker")
