"""The report for people about each kind of vhost and group."""

from __future__ import annotations

from router.cli.policy_report import format_report
from router.config.model import Configuration
from router.config.vhosts import PolicySettings, VhostGroupSettings, VhostSettings
from router.control.policy.review import Caution


def test_what_is_said_of_each_group() -> None:
    groups = {
        "$connector": VhostGroupSettings(targets=("*",)),
        "$default": VhostGroupSettings(users=("ann",), remote_hosts=("*",), management="read"),
        "empty": VhostGroupSettings(max_senders=3, connection_buffer_bytes=65536),
    }
    vhost = VhostSettings(hostname="h", allow_unknown_user=True, groups=groups)
    configuration = Configuration(policy=PolicySettings(), vhosts=(vhost,))
    lines = list(format_report(configuration, [Caution("here", "is odd")], None))
    assert lines[0].startswith("The policy is not enforced")
    assert "are refused (no vhost $default)" in lines[0]
    for said in (
        "    users         the peers that this router connects to",
        "    users         ann, and all that are in no other group",
        "    users         nobody is listed",
        "    management    read",
        "    limits        connectionBufferBytes 65536, maxSenders 3",
    ):
        assert said in lines
    # hosts do not matter to those whom the router connects to
    assert sum(line.startswith("    hosts") for line in lines) == 2
    assert lines[-2:] == ["1 warning", "  here: is odd"]


def test_nothing_is_configured() -> None:
    assert len(list(format_report(Configuration(), [], 40))) == 1
