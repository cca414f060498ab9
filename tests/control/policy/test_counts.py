"""Counts of refusals: each counts once in total, and links by the attribute that refuses, too."""

from __future__ import annotations

import pytest

from router.control.policy.counts import PolicyCounts, VhostCounts
from router.control.policy.vhost_rule import Denial


@pytest.mark.parametrize(
    ("what", "attribute", "counted"),
    [
        ("connection", "", {"denied"}),
        ("session", "maxSessions", {"sessions_denied"}),
        ("sender", "targets", {"senders_denied", "targets_denied"}),
        ("sender", "maxSenders", {"senders_denied"}),
        ("sender", "allowAnonymousSender", {"senders_denied", "anonymous_senders_denied"}),
        ("receiver", "sources", {"receivers_denied", "sources_denied"}),
        ("receiver", "allowDynamicSource", {"receivers_denied", "dynamic_sources_denied"}),
        ("message", "targets", {"messages_denied"}),
        ("message size", "maxMessageSize", {"large_messages_denied"}),
        ("something else", "", {"messages_denied"}),
    ],
)
def test_a_refusal_counts_once(what: str, attribute: str, counted: set[str]) -> None:
    counts = PolicyCounts()
    counts.count(Denial(what, "", attribute=attribute))
    names = [name for name in dir(counts) if name.endswith("denied") and name != "total_denied"]
    found = {name for name in names if getattr(counts, name) == 1}
    assert found - {"links_denied"} == counted
    assert counts.total_denied == 1
    assert counts.links_denied == (what in ("sender", "receiver"))


def test_connections_come_and_go() -> None:
    counts = VhostCounts()
    counts.enter("ann", "10.0.0.1")
    counts.enter("ann", "10.0.0.2")
    assert (counts.current, counts.by_user, len(counts.by_host)) == (2, {"ann": 2}, 2)
    for host in ("10.0.0.1", "10.0.0.2"):
        counts.leave("ann", host)
    # whoever has gone takes no room
    assert (counts.current, counts.by_user, counts.by_host) == (0, {}, {})
    assert counts.approved == 0
