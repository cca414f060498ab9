"""Real brokers, started when the first test wants one, for all tests of this folder.

A test may kill one: the next test finds it running again. Each uses queues of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from support.artemis import Artemis
from support.brokers import Broker, ExampleBroker, until_connected
from support.configuring import LISTENER, both_ways
from support.proton_peers import ProtonConnection, ProtonPeers
from support.rabbitmq import RabbitMQ
from support.routers import StartRouter


@contextmanager
def _kept(broker: Broker) -> Iterator[Broker]:
    try:
        broker.start()
        yield broker
    finally:
        broker.stop()


@pytest.fixture(scope="session")
def _rabbitmq(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with _kept(RabbitMQ(tmp_path_factory.mktemp("rabbitmq"))) as broker:
        yield broker


@pytest.fixture(scope="session")
def _artemis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with _kept(Artemis(tmp_path_factory.mktemp("artemis"))) as broker:
        yield broker


@pytest.fixture(scope="session")
def _example(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with _kept(ExampleBroker(tmp_path_factory.mktemp("example"))) as broker:
        yield broker


@pytest.fixture
def rabbitmq(_rabbitmq: Broker) -> Broker:
    """RabbitMQ, running."""
    _rabbitmq.start()
    return _rabbitmq


@pytest.fixture
def artemis(_artemis: Broker) -> Broker:
    """ActiveMQ Artemis, running."""
    _artemis.start()
    return _artemis


@pytest.fixture
def example(_example: Broker) -> Broker:
    """Proton's example broker, running."""
    _example.start()
    return _example


@pytest.fixture(params=["rabbitmq", "artemis", "example"])
def broker(request: pytest.FixtureRequest) -> Broker:
    """Each of them in turn."""
    found: Broker = request.getfixturevalue(request.param)
    return found


@pytest.fixture(params=["rabbitmq", "artemis"])
def durable_broker(request: pytest.FixtureRequest) -> Broker:
    """Each of those that keep what they have accepted."""
    found: Broker = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def client(
    routers: StartRouter, proton: ProtonPeers, artemis: Broker, address: str
) -> ProtonConnection:
    """A client of a router that has the test's address, and all transactions, at Artemis."""
    router = routers(
        LISTENER
        + artemis.connector()
        + both_ways("linkRoute", prefix=address, connection="artemis")
        + both_ways("linkRoute", prefix="$coordinator", connection="artemis")
    )
    until_connected(proton, router)
    return proton.connect(router.url())
