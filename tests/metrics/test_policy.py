"""Metrics of policies: few labels, and sums that agree with the router's counts."""

from __future__ import annotations

import pytest

from router.config.vhosts import PolicySettings, VhostSettings
from router.control.policy.gate import Gate
from router.control.policy.policy import Policy
from router.control.policy.vhost_rule import Denial
from router.metrics import policy
from router.metrics.policy import PolicyReader, label_of

from support.readings import idle_hub


def gate(*hostnames: str) -> Gate:
    vhosts = [VhostSettings(hostname=each) for each in hostnames]
    return Gate(idle_hub().forwarder, Policy(PolicySettings(), vhosts), lambda: iter(()))


def refuse(of: Gate, hostname: str, what: str = "sender") -> None:
    denial = Denial(what, "")
    of.counts_of(of.policy.vhosts[hostname]).count(denial)
    of.totals.count(denial)


def test_without_vhosts_there_is_the_rest() -> None:
    of = gate()
    of.totals.count(Denial("connection", ""))
    (other,) = PolicyReader(of).read()
    assert (other.label, other.connections, other.denied["connection"]) == ("other", 0, 1)


def test_labels_are_limited_and_no_count_falls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "MOST_LABELS", 1)
    of = gate("a", "b")
    reader = PolicyReader(of)
    refuse(of, "a")
    first, other = reader.read()
    assert (first.label, first.denied["sender"], other.denied["sender"]) == ("a", 1, 0)
    refuse(of, "a")
    refuse(of, "b", "message size")
    first, other = reader.read()
    assert (first.denied["sender"], other.denied["sender"], other.denied["size"]) == (2, 0, 1)
    of.replace(Policy(PolicySettings(), [VhostSettings(hostname="b")]))
    first, other = reader.read()
    # what was counted as another before it had a label stays there
    assert (first.label, first.denied["size"]) == ("b", 0)
    assert (other.denied["sender"], other.denied["size"]) == (2, 1)


def test_a_vhost_may_have_the_name_of_the_rest() -> None:
    assert label_of("other") == "/other"
    assert len(label_of("x" * 1000)) <= 128
