"""Transactions of a container, which addresses of the router's own take no part in."""

from __future__ import annotations

import pytest
from proton import Message

from support.configuring import both_ways, entity
from support.proton_broker import ProtonBroker
from support.proton_peers import ProtonConnection, ProtonPeers
from support.routers import RouterProcess, StartRouter
from support.transacting import Transacting

CONFIGURATION = (
    entity("listener", name="clients", host="127.0.0.1", port=0)
    + entity("listener", name="brokers", host="127.0.0.1", port=0, role="route-container")
    + both_ways("linkRoute", prefix="queue", connection="brokers")
    + both_ways("linkRoute", prefix="$coordinator", connection="brokers")
)
NOT_IMPLEMENTED = "amqp:not-implemented"


@pytest.fixture
def transacting(routers: StartRouter) -> RouterProcess:
    """Start a router with link routes to a broker that coordinates transactions."""
    return routers(CONFIGURATION)


@pytest.fixture
def broker(transacting: RouterProcess, proton: ProtonPeers) -> ProtonBroker:
    """Connect the broker to the router."""
    return ProtonBroker(proton).connect(transacting.url(listener=1), container_id="broker")


@pytest.fixture
def client(
    broker: ProtonBroker, transacting: RouterProcess, proton: ProtonPeers
) -> ProtonConnection:
    """Connect a client to the router, after the broker."""
    return proton.connect(transacting.url(), container_id="client")


def test_what_is_sent_in_a_transaction_to_the_router_is_sent_to_nobody(
    client: ProtonConnection, broker: ProtonBroker, proton: ProtonPeers, address: str
) -> None:
    receiver = client.receiver(address, 10)
    routed, own = client.sender("queue/a"), client.sender(address)
    transaction = Transacting(client).begin()
    transaction.send(routed, Message("in the transaction"))
    transaction.send(own, Message("outside"))
    own.until_over()
    assert own.condition is not None
    assert own.condition.name == NOT_IMPLEMENTED
    # the rest of it goes on, and so does the address
    transaction.commit()
    assert (broker.committed, len(broker.queues["queue/a"])) == (1, 1)
    other = client.sender(address)
    assert other.outcome(Message("without one")).outcome == "accepted"
    assert receiver.bodies() == ["without one"]


def test_what_is_accepted_in_a_transaction_is_not_accepted(
    client: ProtonConnection, proton: ProtonPeers, address: str
) -> None:
    receiver = client.receiver(address, 10, accept=False)
    sender = client.sender(address)
    sent = sender.send(Message("x"))
    (received,) = receiver.get(1)
    transaction = Transacting(client).begin()
    transaction.accept(received.delivery)
    receiver.until_over()
    assert receiver.condition is not None
    assert receiver.condition.name == NOT_IMPLEMENTED
    assert sender.settled(sent).outcome == "modified"
    transaction.abort()
