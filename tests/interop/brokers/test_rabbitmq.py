"""RabbitMQ, which ends the whole session for anything that is wrong with one link of it."""

from __future__ import annotations

import pytest
from proton import Message

from support.broker_loads import Consumer, Ledger, Producer, Traffic
from support.brokers import Broker, until_connected
from support.configuring import LISTENER, both_ways, entity
from support.proton_peers import ProtonPeers, modify
from support.routers import RouterProcess, StartRouter


@pytest.fixture
def rabbit_router(routers: StartRouter, proton: ProtonPeers, rabbitmq: Broker) -> RouterProcess:
    """Start a router that maps all of RabbitMQ under the prefix `rabbit`."""
    started = routers(
        LISTENER
        + rabbitmq.connector()
        + both_ways(
            "linkRoute", prefix="rabbit", connection=rabbitmq.name, delExternalPrefix="rabbit"
        )
    )
    until_connected(proton, started)
    return started


def test_a_link_route_leads_to_a_queue(
    rabbit_router: RouterProcess, proton: ProtonPeers, rabbitmq: Broker, address: str
) -> None:
    queue = f"rabbit{rabbitmq.make_queue(proton, address)}"
    client = proton.connect(rabbit_router.url())
    assert client.sender(queue).outcome(Message("x", durable=True)).outcome == "accepted"
    assert client.receiver(queue, 1).get()[0].body == "x"


def test_a_refused_link_takes_no_other_with_it(
    rabbit_router: RouterProcess, proton: ProtonPeers, rabbitmq: Broker, address: str
) -> None:
    queue = f"rabbit{rabbitmq.make_queue(proton, address)}"
    client, other = proton.connect(rabbit_router.url()), proton.connect(rabbit_router.url())
    links = [each.sender(queue) for each in (client, other)]
    refused = client.begin_receiver("rabbit/amq/queue/there-is-none")
    refused.until_over()
    assert refused.condition is not None
    assert refused.condition.name == "amqp:not-found"
    for sender in links:
        assert sender.outcome(Message("x", durable=True)).outcome == "accepted"


def test_an_outcome_that_the_broker_does_not_know_costs_no_message(
    routers: StartRouter, proton: ProtonPeers, rabbitmq: Broker, address: str
) -> None:
    queue = rabbitmq.make_queue(proton, address)
    router = routers(
        LISTENER
        + rabbitmq.connector()
        + entity("address", prefix="orders", waypoint=True)
        + both_ways("autoLink", address="orders", connection="rabbitmq", externalAddress=queue)
    )
    client = proton.connect(router.url())
    assert client.sender("orders").outcome(Message("x", durable=True)).outcome == "accepted"
    receiver = client.receiver("orders", 10, accept=False)
    first = receiver.get()[0]
    # for RabbitMQ 3.10 modified is an error: the session is ended, and the message goes back
    modify(first.delivery)
    first.delivery.settle()
    again = receiver.get(2)[1]
    assert again.body == "x"
    again.accept()
    assert client.sender("orders").outcome(Message("y", durable=True)).outcome == "accepted"
    assert receiver.get(3)[2].body == "y"


@pytest.mark.parametrize("credit", [10, 100])
def test_what_it_sends_beyond_its_credit_costs_no_link(
    rabbit_router: RouterProcess, proton: ProtonPeers, rabbitmq: Broker, address: str, credit: int
) -> None:
    # its queue sends more than was granted when credit is renewed while deliveries are under way
    queue = f"rabbit{rabbitmq.make_queue(proton, address)}"
    ledger = Ledger()
    client = proton.connect(rabbit_router.url())
    producer = Producer(ledger, client, queue, 2000)
    proton.until(producer.step, "all was accepted")
    consumer = Consumer(ledger, client, queue, credit)
    proton.until(Traffic(ledger, [producer], [consumer]).step, "all has arrived")
    ledger.check(["accepted"])
    # one link all the time, and each message once
    assert consumer.attached == 1
    assert len(ledger.order) == consumer.count == 2000
