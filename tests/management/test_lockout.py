"""A change of the policy must not lock out those who request it, unless they insist."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from router.client import ConnectionLost, ManagementClient, RequestRefused, connect_management
from router.config.listeners import ListenerSettings
from router.config.model import Configuration
from router.config.vhosts import PolicySettings, VhostGroupSettings, VhostSettings
from router.config.write import format_configuration
from router.control.policy.policy import Peer
from router.management.lockout import lockout_reason

from support.loopback import Running, running_node

MANAGERS = VhostGroupSettings(
    remote_hosts=("*",), targets=("$management",), allow_dynamic_source=True
)
LISTENER = ListenerSettings(port=0)


def configured(group: VhostGroupSettings | None, *, hostname: str = "$default") -> Configuration:
    groups = {} if group is None else {"$default": group}
    vhost = VhostSettings(hostname=hostname, allow_unknown_user=bool(groups), groups=groups)
    return Configuration(
        listeners=(LISTENER,), policy=PolicySettings(enable_vhost_policy=True), vhosts=(vhost,)
    )


def url(running: Running) -> str:
    return f"127.0.0.1:{running.address[1]}"


async def apply(manage: ManagementClient, wanted: Configuration, **how: Any) -> Any:
    return await manage.request("APPLY", how, format_configuration(wanted))


@pytest.mark.parametrize("dry", [True, False], ids=["dry-run", "apply"])
async def test_an_apply_that_locks_out_is_refused_unless_forced(dry: bool) -> None:
    before = configured(MANAGERS)
    wanted = configured(VhostGroupSettings(remote_hosts=("10.0.0.0/8",)))
    async with running_node(before) as running, connect_management(url(running)) as manage:
        with pytest.raises(RequestRefused, match=r"lock you out: .* remoteHosts .*--force"):
            await apply(manage, wanted, dryRun=dry)
        assert running.node.configuration == before
        # what does not concern the requester is applied
        await apply(manage, configured(MANAGERS), dryRun=dry)
        if dry:
            await apply(manage, wanted, dryRun=True, force=True)
            return
        # its own connection is closed at once, perhaps before the answer
        with suppress(ConnectionLost):
            await apply(manage, wanted, force=True)
        assert running.node.configuration.vhosts == wanted.vhosts


async def test_single_changes_are_examined_too() -> None:
    before = configured(MANAGERS)
    orders = {"remoteHosts": "*", "targets": "orders"}
    async with running_node(before) as running, connect_management(url(running)) as manage:
        with pytest.raises(RequestRefused, match="no vhost has the host name"):
            await manage.delete("vhost", name="$default")
        with pytest.raises(RequestRefused, match=r"may not send to \$management"):
            await manage.update("vhost", {"groups": {"$default": orders}}, name="$default")
        with pytest.raises(RequestRefused, match="maxConnections is 0"):
            await manage.update("policy", {"maxConnections": 0}, name="policy")
        assert running.node.configuration == before
        await manage.create("vhost", {"hostname": "other"})


async def test_to_begin_with_a_policy_is_a_change_as_well() -> None:
    plain = Configuration(listeners=(LISTENER,))
    async with running_node(plain) as running, connect_management(url(running)) as manage:
        with pytest.raises(RequestRefused, match="lock you out"):
            await apply(manage, configured(None))
        await apply(manage, configured(MANAGERS))
        (stats,) = (await manage.query("vhostStats")).entities()
        assert stats["connectionsCurrent"] == 1


@pytest.mark.parametrize(
    ("group", "reason"),
    [
        ({"targets": ("$management",), "management": "read"}, "management of the group"),
        ({"targets": ("$management",)}, "could not receive answers"),
        ({"targets": ("$management",), "sources": ("answers",)}, ""),
        ({"target_pattern": ("#",), "source_pattern": ("#",)}, ""),
        ({}, "may not send"),
    ],
    ids=["read", "no-answers", "sources", "patterns", "nothing"],
)
def test_what_a_manager_needs(group: dict[str, Any], reason: str) -> None:
    wanted = configured(VhostGroupSettings(remote_hosts=("*",), **group))
    peer = Peer("any", "ann", "10.0.0.1")
    found = lockout_reason(Configuration(), wanted, peer)
    assert reason in found
    assert bool(found) == bool(reason)
    assert lockout_reason(wanted, wanted, peer) == ""
    # nobody is locked out who was out before
    assert lockout_reason(configured(None), wanted, peer) == ""
