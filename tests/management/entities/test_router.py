"""The router's own entity."""

from __future__ import annotations

from router.management.entities.router import ROUTER

from support.blocking_proton import Peer
from support.entities import told
from support.loopback import running_node


async def test_the_router_counts_what_its_entities_are() -> None:
    async with running_node() as running, Peer(running.address[1]) as peer:
        await peer.receiver("q")
        await peer.sender("other")
        (values,) = told(running, ROUTER)
        assert (values["linkCount"], values["connectionCount"], values["addrCount"]) == (2, 1, 3)
        assert values["memoryUsage"] >= values["residentMemoryUsage"] > 1_000_000
        assert values["memoryOutput"] > 0
        for name in ("memoryWaiting", "memoryHeads", "memoryRedelivery", "memoryInput"):
            assert values[name] == 0
        assert values["id"] == running.node.container_id
        assert values["defaultDistribution"] == "balanced"
