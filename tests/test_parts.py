"""The parts of a router work without sockets, and with any clock."""

from __future__ import annotations

from router.config.load import parse_configuration
from router.parts import Parts

CONFIGURATION = """
[router]
id = "a"
memoryLimitBytes = 2097152

[[address]]
prefix = "news"
distribution = "multicast"
"""


def test_the_parts_are_as_configured_and_go_by_the_clock_that_they_are_given() -> None:
    now = 5.0
    configuration = parse_configuration(CONFIGURATION, source="a test")

    parts = Parts(configuration, lambda: "token", lambda: now)

    assert parts.container_id == "a"
    assert parts.hub.turn.now == 5.0
    now = 7.5
    parts.hub.check_timers()
    assert parts.hub.turn.now == 7.5
    assert parts.hub.forwarder.backlog.limit_bytes == 2097152
    assert parts.control.forwarder is parts.hub.forwarder


def test_dynamic_names_are_made_of_tokens() -> None:
    parts = Parts(parse_configuration('[router]\nid = "a"', source="a test"), lambda: "xyz")

    assert parts.table.create_dynamic("peer", "link")[0] == "amqp:/_topo/0/a/temp.xyz.peer.link"
