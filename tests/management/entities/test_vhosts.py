"""Vhosts in management: created, read, changed and deleted, with their groups and counts."""

from __future__ import annotations

from typing import Any

import pytest

from router.amqp.performatives import Begin
from router.client import (
    LinkLost,
    ManagementClient,
    RequestRefused,
    connect,
    connect_management,
)
from router.config.listeners import ListenerSettings
from router.config.model import Configuration
from router.config.vhosts import PolicySettings, VhostGroupSettings, VhostSettings

from support.loopback import Running, dialled, running_node
from support.transcripts import On

P = "org.apache.qpid.dispatch."
OPEN_TO_ALL = VhostGroupSettings(
    remote_hosts=("*",),
    targets=("orders", "$management", "news*"),
    sources=("orders",),
    allow_dynamic_source=True,
)
CONFIGURATION = Configuration(
    listeners=(ListenerSettings(port=0),),
    policy=PolicySettings(enable_vhost_policy=True),
    vhosts=(
        VhostSettings(
            hostname="$default", allow_unknown_user=True, groups={"$default": OPEN_TO_ALL}
        ),
    ),
)
GROUPS = {
    "users": {
        "users": "ann, bob",
        "remoteHosts": "10.0.0.0/8, localhost",
        "sources": ["a b", "c"],
        "targets": "orders",
        "maxSenders": "5",
        "allowDynamicSource": "yes",
    }
}


def url(running: Running) -> str:
    return f"127.0.0.1:{running.address[1]}"


async def test_a_vhost_comes_changes_and_goes() -> None:
    async with running_node(CONFIGURATION) as running, connect_management(url(running)) as manage:
        attributes: dict[str, Any] = {"hostname": "example.com", "groups": GROUPS}
        made = await manage.create("vhost", {**attributes, "aliases": "www.example.com"})
        assert made["name"] == made["identity"] == "vhost/example.com"
        assert (made["id"], made["type"]) == ("example.com", f"{P}vhost")
        users = made["groups"]["users"]
        assert (users["users"], users["sources"]) == ("ann, bob", "a b, c")
        assert (users["maxSenders"], users["allowDynamicSource"]) == (5, True)
        assert "maxReceivers" not in users
        configured = running.node.configuration.vhosts[1]
        assert configured.aliases == ("www.example.com",)
        assert configured.groups["users"].remote_hosts == ("10.0.0.0/8", "localhost")
        # what was read can be written again
        changed = {"groups": made["groups"], "maxConnections": 7, "aliases": made["aliases"]}
        updated = await manage.update("vhost", changed, name="vhost/example.com")
        assert (updated["maxConnections"], updated["groups"]) == (7, made["groups"])
        with pytest.raises(RequestRefused, match="hostname cannot be changed"):
            await manage.update("vhost", {"hostname": "other"}, name="example.com")
        assert (await manage.read("vhost", name="example.com"))["maxConnections"] == 7
        groups = [each async for each in _groups(manage)]
        assert [each["name"] for each in groups] == ["$default::$default", "example.com::users"]
        assert (groups[1]["vhost"], groups[1]["group"]) == ("example.com", "users")
        assert groups[1]["targets"] == "orders"
        await manage.delete("vhost", identity="vhost/example.com")
        assert running.node.configuration == CONFIGURATION


async def _groups(manage: ManagementClient) -> Any:
    for each in (await manage.query("vhostUserGroupSettings")).entities():
        yield each


@pytest.mark.parametrize("name", ["example.com", "vhost/example.com"])
async def test_its_name_may_be_given(name: str) -> None:
    async with running_node(CONFIGURATION) as running, connect_management(url(running)) as manage:
        made = await manage.create("vhost", {"hostname": "example.com"}, name=name)
        assert made["name"] == "vhost/example.com"


@pytest.mark.parametrize(
    ("attributes", "refusal"),
    [
        ({}, "is missing"),
        ({"hostname": "h", "groups": {"g": {"userz": "x"}}}, "groups"),
        ({"hostname": "h", "groups": {"g": {"maxSenders": "many"}}}, "groups"),
        ({"hostname": "h", "groups": "g"}, "groups"),
        ({"hostname": "h", "groups": {"g": 5}}, "groups"),
        ({"hostname": "$default"}, "Name conflicts"),
    ],
    ids=["no-host", "unknown", "number", "text", "group", "taken"],
)
async def test_what_is_wrong_is_refused(attributes: dict[str, Any], refusal: str) -> None:
    async with running_node(CONFIGURATION) as running, connect_management(url(running)) as manage:
        with pytest.raises(RequestRefused, match=refusal):
            await manage.create("vhost", attributes)
        assert running.node.configuration == CONFIGURATION


async def test_connections_and_refusals_are_counted() -> None:
    async with running_node(CONFIGURATION) as running, connect_management(url(running)) as manage:
        async with connect(url(running)) as client:
            for address in ("secret", None):
                with pytest.raises(LinkLost):
                    await client.open_sender(address)
            with pytest.raises(LinkLost):
                await client.open_receiver("secret")
            (stats,) = (await manage.query("vhostStats")).entities()
        assert (stats["name"], stats["hostname"]) == ("vhostStats/$default", "$default")
        assert stats["connectionsApproved"] == stats["connectionsCurrent"] == 2
        assert (stats["senderDenied"], stats["receiverDenied"]) == (2, 1)
        assert (stats["linkTargetDenied"], stats["linkSourceDenied"]) == (1, 1)
        assert (stats["anonymousSenderDenied"], stats["dynamicSrcDenied"]) == (1, 0)
        assert list(stats["perUserState"]) == ["anonymous"]
        assert len(stats["perHostState"]["127.0.0.1"]) == 2
        assert (await manage.read("vhostStats", name="$default"))["senderDenied"] == 2


async def test_the_sessions_links_and_state_of_a_vhost_are_shown() -> None:
    async with running_node(CONFIGURATION) as running, connect_management(url(running)) as manage:

        async def shown() -> tuple[int, int, int]:
            (stats,) = (await manage.query("vhostStats")).entities()
            return stats["sessionsCurrent"], stats["linksCurrent"], stats["stateBytesCurrent"]

        sessions, links, octets = await shown()
        async with connect(url(running)) as client:
            await client.open_receiver("orders")
            after = await shown()
            assert after[:2] == (sessions + 1, links + 1)
            assert after[2] > octets
        await running.until(lambda: len(running.pumps) == 1)
        assert await shown() == (sessions, links, octets)


async def test_sessions_and_large_messages_are_counted() -> None:
    group = VhostGroupSettings(
        remote_hosts=("*",),
        targets=("orders",),
        sources=("orders",),
        max_sessions=1,
        max_message_size=10,
    )
    default = VhostSettings(
        hostname="$default", allow_unknown_user=True, groups={"$default": group}
    )
    configuration = Configuration(
        listeners=(ListenerSettings(port=0),),
        policy=PolicySettings(enable_vhost_policy=True),
        vhosts=(default,),
    )
    async with running_node(configuration) as running:
        counts = running.node.gate.counts_of(running.node.gate.policy.vhosts["$default"])
        async with dialled(running.address) as peer:
            await peer.begin()
            await peer.attach_receiver("orders", credit=1)
            await peer.attach_sender("orders")
            await peer.transfer(0, b"x" * 11)
            await running.until(lambda: counts.large_messages_denied)
        assert (counts.approved, counts.large_messages_denied) == (1, 1)
        async with dialled(running.address) as peer:
            await peer.begin()
            begin = Begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1)
            await peer.say(On(1, begin))
            await running.until(lambda: counts.sessions_denied)
        assert running.node.gate.totals.total_denied == 2
