"""The policy: what tools ask of it has an answer, and the answer is that there is none."""

from __future__ import annotations

from router.client import connect, connect_management

from support.loopback import running_node


async def test_nothing_is_limited_and_connections_are_counted() -> None:
    async with running_node() as running:
        url = f"127.0.0.1:{running.address[1]}"
        async with connect_management(url) as management, connect(url):
            (policy,) = (await management.query("policy")).entities()
        assert policy["enableVhostPolicy"] is False
        assert "maxConnections" not in policy
        assert (policy["connectionsProcessed"], policy["connectionsCurrent"]) == (2, 2)
        assert policy["connectionsDenied"] == policy["linksDenied"] == policy["totalDenials"] == 0
        async with connect_management(url) as management:
            (policy,) = (await management.query("policy")).entities()
        assert (policy["connectionsProcessed"], policy["connectionsCurrent"]) == (3, 1)
