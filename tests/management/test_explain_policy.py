"""EXPLAIN with a policy: what it decides about a user is what it does to the user."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from router.client import connect_management
from router.config.listeners import ListenerSettings
from router.config.model import Configuration
from router.config.redirects import RedirectSettings
from router.config.vhosts import PolicySettings, VhostGroupSettings, VhostSettings

from support.loopback import Running, running_node

ANN = VhostGroupSettings(
    users=("ann",), remote_hosts=("10.0.0.0/8",), targets=("orders",), sources=("news*",)
)
EVERYTHING = VhostGroupSettings(
    remote_hosts=("*",), target_pattern=("#",), source_pattern=("#",), allow_dynamic_source=True
)
ALL = VhostGroupSettings(remote_hosts=("*",), targets=("$management",), allow_dynamic_source=True)


def configured(**listener: Any) -> Configuration:
    vhost = VhostSettings(
        hostname="example.com",
        allow_unknown_user=True,
        groups={"clients": ANN, "$default": ALL},
    )
    default = VhostSettings(hostname="$default", allow_unknown_user=True, groups={"$default": ALL})
    return Configuration(
        listeners=(
            ListenerSettings(
                port=0, sasl_mechanisms=("PLAIN", "ANONYMOUS"), users_file=None, **listener
            ),
        ),
        policy=PolicySettings(enable_vhost_policy=True),
        vhosts=(vhost, default),
    )


async def explained(running: Running, address: str, direction: str, **more: Any) -> dict[str, Any]:
    url = f"127.0.0.1:{running.address[1]}"
    asked = {"address": address, "direction": direction, "vhost": "example.com", **more}
    async with connect_management(url) as management:
        told: dict[str, Any] = await management.request("EXPLAIN", asked)
    return told


async def test_what_the_policy_decides() -> None:
    async with running_node(configured()) as running:
        told = await explained(running, "orders", "send", user="ann", host="10.1.2.3")
        assert told["allowed"] is True
        assert told["policy"]["text"] == (
            "allowed: targets has orders (vhost example.com, group clients)"
        )
        decisions = told["policy"]["decisions"]
        assert {name: each["allowed"] for name, each in decisions.items()} == {
            "open": True,
            "send": True,
            "receive": False,
        }
        assert (decisions["send"]["attribute"], decisions["send"]["entry"]) == ("targets", "orders")
        told = await explained(running, "orders", "receive", user="ann", host="10.1.2.3")
        assert (told["allowed"], told["reasons"][0]["reason"]) == (False, "policy")
        assert "sources has no entry that allows orders" in told["reasons"][0]["text"]
        told = await explained(running, "orders", "send", user="ann", host="192.0.2.1")
        assert "remoteHosts" in told["reasons"][0]["text"]
        # whoever does not say from where is asked about any host
        told = await explained(running, "orders", "send", user="ann")
        assert told["allowed"] is True
        assert told["policy"]["text"].endswith("; from any host of its remoteHosts")
        told = await explained(running, "orders", "send", user="bob")
        assert told["policy"]["group"] == "$default"
        assert told["allowed"] is False
        # asking is no attempt
        assert running.node.gate.totals.total_denied == 0


async def test_the_address_of_a_tenant() -> None:
    configuration = configured(multi_tenant=True, policy_vhost="example.com", management="trusted")
    async with running_node(configuration) as running:
        told = await explained(running, "orders", "send", user="ann", vhost="another")
        assert (told["tenant"], told["address"]) == ("example.com", "example.com/orders")
        assert (told["policy"]["vhost"], told["allowed"]) == ("example.com", True)
        told = await explained(running, "$other", "send", user="ann")
        assert told["allowed"] is False


@pytest.mark.parametrize(("name", "redirected"), [("example.com", True), ("example", False)])
async def test_a_redirect_of_another_tenant_is_not_meant(name: str, redirected: bool) -> None:
    vhosts = tuple(
        VhostSettings(hostname=each, allow_unknown_user=True, groups={"$default": EVERYTHING})
        for each in ("example.com", "example")
    )
    configuration = attrs.evolve(
        configured(multi_tenant=True, policy_vhost=name, management="change"),
        vhosts=vhosts,
        redirects=(RedirectSettings(prefix="example.com/q", to_network_host="10.0.0.2"),),
    )
    async with running_node(configuration) as running:
        address = "q" if redirected else "com/q"
        told = await explained(running, address, "send", user="ann", vhost=name)
        reasons = [each["reason"] for each in told["reasons"]]
        assert ("link_redirected" in reasons) is redirected
