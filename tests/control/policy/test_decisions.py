"""Decisions about users without a connection, with their reasons."""

from __future__ import annotations

from typing import Any

import pytest

from router.config.vhosts import PolicySettings, VhostGroupSettings, VhostSettings
from router.control.policy.decisions import DISABLED, Decision, Question, decide
from router.control.policy.policy import Peer, Policy

CLIENTS = VhostGroupSettings(
    users=("ann",),
    remote_hosts=("10.0.0.0/8",),
    targets=("orders", "$management"),
    sources=("news*", "inbox.${user}"),
)
PATTERNS = VhostGroupSettings(
    remote_hosts=("*",),
    target_pattern=("a/#",),
    source_pattern=("b/*",),
    allow_anonymous_sender=True,
    allow_dynamic_source=True,
)
VHOST = VhostSettings(hostname="example.com", groups={"clients": CLIENTS, "patterns": PATTERNS})
ANN = Peer("example.com", "ann", "10.0.0.1")
BOB = Peer("example.com", "bob", "192.0.2.1", frozenset({"patterns"}))


def decided(peer: Peer, text: str, vhost: VhostSettings = VHOST, **settings: Any) -> Decision:
    action, _, address = text.partition(" ")
    policy = Policy(PolicySettings(**{"enable_vhost_policy": True, **settings}), [vhost])
    return decide(policy, peer, Question(action, address))


@pytest.mark.parametrize(
    ("peer", "question", "is_allowed", "attribute", "entry"),
    [
        (ANN, "open", True, "users", "ann"),
        (ANN, "send orders", True, "targets", "orders"),
        (ANN, "send /orders", True, "targets", "orders"),
        (ANN, "send amqp://host/orders", True, "targets", "orders"),
        (ANN, "send other", False, "targets", ""),
        (ANN, "send /", False, "targets", ""),
        (ANN, "receive news.today", True, "sources", "news*"),
        (ANN, "receive inbox.ann", True, "sources", "inbox.${user}"),
        (ANN, "receive inbox.bob", False, "sources", ""),
        (ANN, "anonymous", False, "allowAnonymousSender", ""),
        (ANN, "dynamic", False, "allowDynamicSource", ""),
        (ANN, "transaction", False, "targets", ""),
        (BOB, "open", True, "groups", "patterns"),
        (BOB, "send a/x/y", True, "targetPattern", "a/#"),
        (BOB, "receive b/x/y", False, "sourcePattern", ""),
        (BOB, "anonymous", True, "allowAnonymousSender", ""),
        (BOB, "dynamic", True, "allowDynamicSource", ""),
        (BOB, "transaction", True, "allowAnonymousSender", ""),
    ],
)
def test_what_decides(
    peer: Peer, question: str, is_allowed: bool, attribute: str, entry: str
) -> None:
    decision = decided(peer, question)
    assert decision.is_allowed == is_allowed
    assert (decision.attribute, decision.entry) == (attribute, entry)
    assert decision.vhost == "example.com"
    assert decision.reason


@pytest.mark.parametrize(
    ("peer", "attribute"),
    [
        (Peer("other.org", "ann", "10.0.0.1"), "hostname"),
        (Peer("example.com", "eve", "10.0.0.1"), "users"),
        (Peer("example.com", "ann", "192.0.2.1"), "remoteHosts"),
    ],
    ids=["hostname", "users", "remoteHosts"],
)
def test_whoever_may_not_connect_may_do_nothing(peer: Peer, attribute: str) -> None:
    for question in ("open", "send orders"):
        decision = decided(peer, question)
        assert (decision.is_allowed, decision.attribute) == (False, attribute)


def test_a_host_that_is_not_given_is_not_examined() -> None:
    assert decided(Peer("example.com", "ann", ""), "send orders").is_allowed
    assert not decided(Peer("example.com", "eve", ""), "send orders").is_allowed


def test_without_the_policy_everything_is_allowed() -> None:
    assert decided(ANN, "send other", enable_vhost_policy=False).reason == DISABLED


@pytest.mark.parametrize(
    "limit", ["max_connections", "max_connections_per_user", "max_connections_per_host"]
)
def test_a_limit_of_none(limit: str) -> None:
    vhost = VhostSettings(hostname="example.com", groups={"clients": CLIENTS}, **{limit: 0})  # type: ignore[arg-type]
    decision = decided(ANN, "open", vhost)
    assert (decision.is_allowed, decision.reason) == (False, f"{decision.attribute} is 0")
    if limit == "max_connections":
        assert not decided(ANN, "open", max_connections=0).is_allowed


def test_a_limit_of_links() -> None:
    group = VhostGroupSettings(remote_hosts=("*",), users=("ann",), max_senders=0, targets=("*",))
    vhost = VhostSettings(hostname="example.com", groups={"g": group})
    decision = decided(ANN, "send orders", vhost)
    assert (decision.is_allowed, decision.attribute) == (False, "maxSenders")


def test_unknown_users_and_senders_without_an_address() -> None:
    group = VhostGroupSettings(remote_hosts=("*",), allow_anonymous_sender=True)
    vhost = VhostSettings(
        hostname="example.com", allow_unknown_user=True, groups={"$default": group}
    )
    decision = decided(Peer("example.com", "eve", "::1"), "open", vhost)
    assert (decision.is_allowed, decision.attribute) == (True, "allowUnknownUser")
    decision = decided(Peer("example.com", "eve", "::1"), "anonymous", vhost)
    assert decision.reason.endswith("every message is rejected")
