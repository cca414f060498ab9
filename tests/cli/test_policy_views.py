"""The views of policies, of a router that has one."""

from __future__ import annotations

import json

import pytest

from router.cli.policy_views import VHOST_GROUPS, VHOST_STATS

from support.commands import invoke
from support.routers import RouterProcess, StartRouter

CONFIGURATION = """\
[[listener]]
host = "127.0.0.1"
port = 0

[policy]
enableVhostPolicy = true

[[vhost]]
hostname = "$default"
allowUnknownUser = true

[vhost.groups."$default"]
remoteHosts = "*"
targets = "$management"
allowDynamicSource = true

[vhost.groups.clients]
users = "ann, bob"
remoteHosts = "10.0.0.0/8"
targetPattern = "orders/#"
sources = "news*"
maxSenders = 5
"""


@pytest.fixture
def router(start_router: StartRouter) -> RouterProcess:
    return start_router(CONFIGURATION)


def stat(router: RouterProcess, *arguments: str) -> list[str]:
    ended = invoke("stat", "-b", router.url(), *arguments)
    assert (ended.code, ended.errors) == (0, "")
    return ended.lines


def test_vhosts_groups_and_counts(router: RouterProcess) -> None:
    title, heads, row = stat(router, "--vhosts")
    assert title == "Vhosts"
    assert "unknown users" in heads
    assert row.split()[0] == "$default"
    assert row.endswith("$default, clients")
    title, _, default, clients = stat(router, "--vhostgroups")
    assert title == VHOST_GROUPS.title
    assert default.split()[:3] == ["$default", "$default", "*"] or "$management" in default
    assert "ann, bob" in clients
    assert "orders/#" in clients
    assert "maxSenders" not in clients
    title, _, row = stat(router, "--vhoststats")
    assert title == VHOST_STATS.title
    assert row.split()[0] == "$default"
    assert row.endswith("anonymous (1)")


def test_the_policy_and_json(router: RouterProcess) -> None:
    lines = stat(router, "--policy")
    assert lines[0] == "Policy"
    assert any(line.split()[:3] == ["vhost", "policy", "yes"] for line in lines)
    told = json.loads("\n".join(stat(router, "--vhostgroups", "--json")))
    assert [each["group"] for each in told["vhostgroups"]] == ["$default", "clients"]
    assert told["vhostgroups"][1]["maxSenders"] == 5
