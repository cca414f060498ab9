"""Fixtures for tests of the commands: Proton as the peer on the other side of a router."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from support.commands import OtherSide
from support.proton_peers import ProtonPeers
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
def other_side(
    peers: ProtonPeers, router_process: RouterProcess, request: pytest.FixtureRequest
) -> OtherSide:
    """Return the shared router with a Proton client at an address of this test alone."""
    proton = peers.connect(router_process.url())
    name = re.sub(r"\W+", "-", request.node.nodeid).strip("-")
    return OtherSide(peers, proton, router_process, f"cli/{name}")
