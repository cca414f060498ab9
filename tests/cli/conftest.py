"""What the tests of the commands share: Proton as the peer on the other side of a router."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.proton_peers import ProtonConnection, ProtonPeers
from support.routers import RouterProcess


@pytest.fixture
def peers() -> Iterator[ProtonPeers]:
    """Proton's connections, closed when the test ends."""
    made = ProtonPeers()
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def proton(peers: ProtonPeers, router_process: RouterProcess) -> ProtonConnection:
    """A connection of Proton's to the shared router."""
    return peers.connect(router_process.url())
