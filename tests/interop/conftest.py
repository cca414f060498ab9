"""Fixtures of the interop tests: a router as a process, and independent clients.

A router that logs a traceback, or does not end with 0, fails the test that it ran for.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from support.certificates import Authority
from support.proton_peers import ProtonPeers
from support.rhea_peers import RheaPeer
from support.router_networks import ADDRESSES, Line, RouterNetwork, StartNetwork
from support.routers import PLAIN, RouterProcess, StartRouter, running_router


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder talks to another implementation."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.interop)


# the routers of a test, and how much of their logs is shown where it fails
ROUTERS = pytest.StashKey[list[RouterProcess]]()
LAST_LINES = 30


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show what its routers have logged where a test fails."""
    report = yield
    if report.failed:
        for router in item.stash.get(ROUTERS, []):
            lines = router.log_text().splitlines()[-LAST_LINES:]
            report.sections.append((f"router {router.pid}: end of log", "\n".join(lines)))
    return report


def check(router: RouterProcess) -> None:
    """Stop a router if it runs, and fail if it did anything but its duty."""
    is_asked = router.begin_stop()
    code = router.stop()
    text = router.log_text()
    assert "Traceback" not in text, text
    if is_asked:
        assert code == 0, text


@pytest.fixture(scope="module")
def router(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RouterProcess]:
    """Run a router that the tests of a module share; each uses addresses of its own."""
    with running_router(tmp_path_factory.mktemp("router")) as started:
        yield started
        check(started)


@pytest.fixture(autouse=True)
def _no_traceback(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "router" in request.fixturenames:
        shared: RouterProcess = request.getfixturevalue("router")
        assert "Traceback" not in shared.log_text(), shared.log_text()


@pytest.fixture
def routers(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[StartRouter]:
    """Start routers with configurations of their own."""
    with ExitStack() as stack:
        count = itertools.count(1)
        started = request.node.stash.setdefault(ROUTERS, [])

        def start(configuration: str = PLAIN) -> RouterProcess:
            folder = tmp_path / f"router-{next(count)}"
            router = stack.enter_context(running_router(folder, configuration))
            started.append(router)
            return router

        yield start
        # all at once: each waits a while for clients that do not answer any more
        for router in started:
            router.begin_stop()
        for router in started:
            check(router)


@pytest.fixture
def networks(routers: StartRouter) -> Iterator[StartNetwork]:
    """Start networks of routers, which end with the test."""
    started: list[RouterNetwork] = []

    def start(
        lines: list[Line],
        *,
        edges: Mapping[str, Iterable[str]] | None = None,
        active_uplinks: int = 1,
        more: str = "",
    ) -> RouterNetwork:
        network = RouterNetwork(
            routers, lines, edges=edges, active_uplinks=active_uplinks, more=ADDRESSES + more
        )
        started.append(network)
        network.start()
        return network

    yield start
    for network in started:
        network.close()


@pytest.fixture
def proton() -> Iterator[ProtonPeers]:
    """Proton connections, none yet."""
    peers = ProtonPeers()
    yield peers
    peers.close()


@pytest.fixture
def rhea(proton: ProtonPeers) -> Iterator[RheaPeer]:
    """Start a Node process with rhea."""
    peer = RheaPeer(proton)
    yield peer
    peer.close()


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    """Return the authority that signs the certificates of a test."""
    return Authority(tmp_path)


@pytest.fixture
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Return an authority that routers know nothing of."""
    return Authority(tmp_path_factory.mktemp("stranger"))


@pytest.fixture
def address(request: pytest.FixtureRequest) -> str:
    """Return an address of this test alone."""
    return re.sub(r"\W+", "-", request.node.name).strip("-")
