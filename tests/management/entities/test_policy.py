"""The policy: what is configured of it, and what it has refused."""

from __future__ import annotations

import pytest

from router.client import ConnectFailed, connect, connect_management
from router.config.listeners import ListenerSettings
from router.config.model import Configuration
from router.config.vhosts import PolicySettings, VhostSettings

from support.loopback import running_node


async def test_without_vhosts_nothing_is_refused_and_connections_are_counted() -> None:
    async with running_node() as running:
        url = f"127.0.0.1:{running.address[1]}"
        async with connect_management(url) as management, connect(url):
            (policy,) = (await management.query("policy")).entities()
        assert policy["enableVhostPolicy"] is False
        assert (policy["maxConnections"], policy["defaultVhost"]) == (65535, "$default")
        assert policy["policyDir"] == ""
        assert (policy["connectionsProcessed"], policy["connectionsCurrent"]) == (2, 2)
        assert policy["connectionsDenied"] == policy["linksDenied"] == policy["totalDenials"] == 0
        async with connect_management(url) as management:
            (policy,) = (await management.query("policy")).entities()
        assert (policy["connectionsProcessed"], policy["connectionsCurrent"]) == (3, 1)


async def test_its_settings_can_be_changed_and_refusals_are_counted() -> None:
    configuration = Configuration(
        listeners=(ListenerSettings(port=0),),
        policy=PolicySettings(max_connections=1),
        vhosts=(VhostSettings(hostname="example.com"),),
    )
    async with running_node(configuration) as running:
        url = f"127.0.0.1:{running.address[1]}"
        async with connect_management(url) as management:
            with pytest.raises(ConnectFailed):
                async with connect(url):
                    pass
            changed = await management.update("policy", {"maxConnections": "10"}, name="policy")
            assert changed["maxConnections"] == 10
            async with connect(url):
                pass
            (policy,) = (await management.query("policy")).entities()
        assert running.node.configuration.policy == PolicySettings(max_connections=10)
        assert (policy["connectionsProcessed"], policy["connectionsDenied"]) == (3, 1)
        assert policy["totalDenials"] == 1
