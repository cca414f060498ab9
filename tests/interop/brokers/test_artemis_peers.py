"""Artemis connects to the router by itself, and offers its queues by `<peer>`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from proton import Message

from support.artemis import Artemis
from support.configuring import entity
from support.ports import free_port
from support.proton_peers import ProtonPeers
from support.routers import RouterProcess, StartRouter

CONNECTION = """
    <broker-connections>
      <amqp-connection uri="tcp://127.0.0.1:{port}" name="router" retry-interval="100">
        <peer address-match="shared.#"/>
      </amqp-connection>
    </broker-connections>
"""
QUEUE = "shared.queue"


@pytest.fixture
def listening(routers: StartRouter) -> RouterProcess:
    """Start a router with a listener for clients, and one for brokers."""
    port = free_port()
    return routers(
        entity("listener", host="127.0.0.1", port=0)
        + entity("listener", host="127.0.0.1", port=port, role="route-container")
        + entity("address", prefix="shared", waypoint=True)
    )


@pytest.fixture
def peer(listening: RouterProcess, tmp_path: Path) -> Iterator[Artemis]:
    """Start an Artemis that connects to the router."""
    connection = CONNECTION.format(port=listening.addresses[1][1])
    broker = Artemis(tmp_path / "artemis", connections=connection, queues=[QUEUE])
    try:
        broker.start()
        yield broker
    finally:
        broker.stop()


def test_a_queue_of_a_broker_that_connects_to_the_router_is_an_address_of_it(
    listening: RouterProcess, peer: Artemis, proton: ProtonPeers
) -> None:
    client = proton.connect(listening.url())
    sender = client.sender(QUEUE)
    for number in range(10):
        assert sender.outcome(Message(number, durable=True)).outcome == "accepted"
    # nobody receives at the router: it is the broker that has accepted them
    receiver = client.receiver(QUEUE, 10)
    receiver.get(10)
    assert sorted(receiver.bodies()) == list(range(10))
