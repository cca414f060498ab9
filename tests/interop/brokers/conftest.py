"""Real brokers, started when the first test wants one, for all tests of this folder.

A test may kill one: the next test finds it running again. Each uses queues of its own.

Brokers take seconds of a processor to start, and some milliseconds of a disk for a message that is
durable. So these tests have more patience than others, and where one fails, the ends of the logs
are shown.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.artemis import Artemis
from support.brokers import PATIENCE_S, Broker, ExampleBroker, last_lines, until_connected
from support.configuring import LISTENER, both_ways
from support.proton_peers import ProtonConnection, ProtonPeers
from support.rabbitmq import RabbitMQ
from support.router_lines import start_between_edges, start_line, until_known
from support.routers import StartRouter

# For one test, which may have to start three brokers first. The longest takes half a minute where
# nothing else runs.
TIMEOUT_S = 4 * PATIENCE_S
# those that this worker has
_BROKERS: list[Broker] = []


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give each test of this folder its time."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.timeout(TIMEOUT_S))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show what the brokers have said where a test fails."""
    report = yield
    if report.failed:
        for broker in _BROKERS:
            state = "runs" if broker.is_running else "does not run"
            report.sections.append((f"{broker.name}, which {state}", last_lines(broker.log)))
    return report


@pytest.fixture
def proton() -> Iterator[ProtonPeers]:
    """Proton connections, none yet, that have the patience that brokers want."""
    peers = ProtonPeers(PATIENCE_S)
    yield peers
    peers.close()


@contextmanager
def _kept(broker: Broker) -> Iterator[Broker]:
    try:
        broker.start()
        _BROKERS.append(broker)
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


@pytest.fixture(params=[1, 3, 4], ids=["one router", "three routers", "edges at both ends"])
def client(
    request: pytest.FixtureRequest,
    routers: StartRouter,
    proton: ProtonPeers,
    artemis: Broker,
    address: str,
) -> ProtonConnection:
    """Connect a client to a router that links to Artemis the test's address and all transactions.

    Or to the first router of a line, of which the last one is connected to Artemis; both may be
    edges.
    """
    configuration = (
        artemis.connector()
        + both_ways("linkRoute", prefix=address, connection="artemis")
        + both_ways("linkRoute", prefix="$coordinator", connection="artemis")
    )
    if request.param == 1:
        router = routers(LISTENER + configuration)
        until_connected(proton, router)
    else:
        if request.param == 3:
            router = start_line(routers, "a", "b", "c", last=configuration)[0]
        else:
            router = start_between_edges(routers, last=configuration)[0]
        until_known(router, f"C{address}", f"D{address}", "C$coordinator")
    return proton.connect(router.url())
