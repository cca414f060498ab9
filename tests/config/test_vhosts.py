"""Virtual hosts as a file has them."""

from __future__ import annotations

import pytest

from router.config.load import parse_configuration
from router.config.mistakes import InvalidConfiguration
from router.config.vhosts import (
    MOST_CONNECTIONS,
    PolicySettings,
    VhostGroupSettings,
    VhostSettings,
)

SMALL = """
[[vhost]]
hostname = "a.com"

[vhost.groups."$default"]
remoteHosts = "*"
"""

WHOLE = """
[policy]
enableVhostPolicy = true
maxConnections = 9
maxMessageSize = 1000
defaultVhost = "b.com"
enableVhostNamePatterns = true

[[vhost]]
hostname = "b.com"

[[vhost]]
hostname = "a.com"
aliases = ["www.a.com", "*.a.com"]
maxConnections = 8
maxConnectionsPerUser = 7
maxConnectionsPerHost = 6
maxMessageSize = 500
allowUnknownUser = true

[vhost.groups."$default"]
remoteHosts = "localhost, 10.0.0.0/8"
sources = "q, p*"
targets = ["q", "${user}/*"]

[vhost.groups.staff]
users = "ada, bob"
remoteHosts = ["*"]
maxConnectionsPerUser = 5
maxConnectionsPerHost = 4
maxFrameSize = 2048
maxSessions = 3
maxSessionWindow = 4096
connectionBufferBytes = 65536
maxMessageSize = 0
maxSenders = 2
maxReceivers = 1
allowDynamicSource = true
allowAnonymousSender = true
allowUserIdProxy = true
allowWaypointLinks = false
allowFallbackLinks = false
allowDynamicLinkRoutes = false
allowAdminStatusUpdate = false
management = "none"
sourcePattern = "${user}/#"
targetPattern = ["a/*/b", "#/${user}"]
"""


def test_what_is_not_allowed_is_refused_by_default() -> None:
    configuration = parse_configuration(SMALL, source="f")
    assert configuration.policy == PolicySettings()
    assert not configuration.policy.enable_vhost_policy
    (vhost,) = configuration.vhosts
    assert vhost == VhostSettings(
        hostname="a.com", groups={"$default": VhostGroupSettings(remote_hosts=("*",))}
    )
    assert vhost.name == "a.com"
    assert not vhost.allow_unknown_user
    assert vhost.max_connections == MOST_CONNECTIONS
    group = vhost.groups["$default"]
    assert (group.sources, group.targets, group.users) == ((), (), ())
    for name in ("dynamic_source", "anonymous_sender", "user_id_proxy"):
        assert getattr(group, f"allow_{name}") is False
    assert (group.max_senders, group.max_receivers, group.management) == (None, None, None)


def test_all_that_can_be_said() -> None:
    configuration = parse_configuration(WHOLE, source="f")
    assert configuration.policy == PolicySettings(
        enable_vhost_policy=True,
        max_connections=9,
        max_message_size=1000,
        default_vhost="b.com",
        enable_vhost_name_patterns=True,
    )
    vhost = configuration.vhosts[1]
    assert vhost.aliases == ("www.a.com", "*.a.com")
    assert (vhost.max_connections, vhost.max_connections_per_user) == (8, 7)
    assert (vhost.max_connections_per_host, vhost.max_message_size) == (6, 500)
    default = vhost.groups["$default"]
    assert default.remote_hosts == ("localhost", "10.0.0.0/8")
    assert (default.sources, default.targets) == (("q", "p*"), ("q", "${user}/*"))
    assert vhost.groups["staff"] == VhostGroupSettings(
        users=("ada", "bob"),
        remote_hosts=("*",),
        max_connections_per_user=5,
        max_connections_per_host=4,
        max_frame_size=2048,
        max_sessions=3,
        max_session_window=4096,
        connection_buffer_bytes=65536,
        max_message_size=0,
        max_senders=2,
        max_receivers=1,
        allow_dynamic_source=True,
        allow_anonymous_sender=True,
        allow_user_id_proxy=True,
        allow_waypoint_links=False,
        allow_fallback_links=False,
        allow_dynamic_link_routes=False,
        allow_admin_status_update=False,
        management="none",
        source_pattern=("${user}/#",),
        target_pattern=("a/*/b", "#/${user}"),
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("maxSenders = -1", ["maxSenders"]),
        ("maxSender = 1", ["maxSender", "maxSenders"]),
        ("users = 3", ["users"]),
        ('sources = "${user}/${user}"', ["sources"]),
        ('sourcePattern = "a${user}/q"', ["sourcePattern"]),
        ('management = "all"', ["management"]),
        ('maxSenders = 1\nmaxReceivers = "x"\nremoteHosts = "there"',
         ["maxReceivers", "remoteHosts"]),
    ],
)  # fmt: skip
def test_mistakes_within_groups_are_told_with_their_place(text: str, said: list[str]) -> None:
    with pytest.raises(InvalidConfiguration) as caught:
        parse_configuration(f'[[vhost]]\nhostname = "a"\n[vhost.groups.g]\n{text}\n', source="f")
    lines = "\n".join(str(mistake) for mistake in caught.value.mistakes)
    for word in said:
        assert f"vhost[0].groups.g.{word}:" in lines or word in lines
    assert "f:" in lines


@pytest.mark.parametrize("text", ["groups = 3", "groups = [1]", "groups = {g = 3}"])
def test_groups_are_tables(text: str) -> None:
    with pytest.raises(InvalidConfiguration, match="table of"):
        parse_configuration(f'[[vhost]]\nhostname = "a"\n{text}\n', source="f")
