"""Links and messages that a group allows, and the refusals that are counted."""

from __future__ import annotations

from typing import Any

import pytest

from router.amqp.types import Symbol
from router.control.policy.vhost_rule import (
    LINK_DISALLOWED,
    MESSAGE_DISALLOWED,
    Denial,
    VhostRule,
)
from router.core.addresses.access import Access, LinkRequest

from support.policed import policy, vhost

UNAUTHORIZED = "amqp:unauthorized-access"
ANY = {"sources": ("*",), "targets": ("*",)}


def rule(user: str = "ada", **settings: Any) -> tuple[VhostRule, list[Denial]]:
    """Return the rule of a user in a group with these settings, and what it will refuse."""
    (some,) = policy(vhost("a.com", default=settings)).vhosts.values()
    denials: list[Denial] = []
    return VhostRule(some.groups["$default"], user, denials.append), denials


def receiver(address: str | None = "q", **fields: Any) -> LinkRequest:
    return LinkRequest(False, address, **fields)


def sender(address: str | None = "q", **fields: Any) -> LinkRequest:
    return LinkRequest(True, address, **fields)


CAPABILITIES = {
    "waypoint": (Symbol("qd.waypoint"),),
    "second": (Symbol("qd.waypoint.2"),),
    "fallback": (Symbol("qd.fallback"),),
}


@pytest.mark.parametrize(
    ("settings", "request_", "reason"),
    [
        ({}, sender(), "targets does not contain 'q'"),
        ({}, receiver(), "sources does not contain 'q'"),
        ({"sources": ("q",)}, sender(), "targets does not contain 'q'"),
        ({"targets": ("q",)}, sender(), None),
        ({"sources": ("q",)}, receiver(), None),
        ({"source_pattern": ("q/#",)}, receiver("q/x"), None),
        (ANY, receiver(""), "sources does not contain ''"),
        (ANY, sender(None), "allowAnonymousSender is false"),
        ({"allow_anonymous_sender": True}, sender(None), None),
        (ANY, receiver(None, is_dynamic=True), "allowDynamicSource is false"),
        ({"allow_dynamic_source": True}, receiver(None, is_dynamic=True), None),
        (ANY, receiver("q", is_dynamic=True), "allowDynamicSource is false"),
        ({"allow_dynamic_source": True}, receiver("q", is_dynamic=True),
         "sources does not contain 'q'"),
        (ANY, sender(None, is_coordinator=True), None),
        ({"targets": ("q",)}, sender(None, is_coordinator=True),
         "targets does not contain '$coordinator'"),
        ({"targets": ("$coordinator",)}, sender(None, is_coordinator=True), None),
        ({"allow_anonymous_sender": True}, sender(None, is_coordinator=True), None),
        (ANY, sender(capabilities=CAPABILITIES["waypoint"]), None),
        ({**ANY, "allow_waypoint_links": False}, sender(capabilities=CAPABILITIES["waypoint"]),
         "allowWaypointLinks is false"),
        ({**ANY, "allow_waypoint_links": False}, receiver(capabilities=CAPABILITIES["second"]),
         "allowWaypointLinks is false"),
        ({**ANY, "allow_waypoint_links": False}, receiver(capabilities=CAPABILITIES["fallback"]),
         None),
        ({**ANY, "allow_fallback_links": False}, receiver(capabilities=CAPABILITIES["fallback"]),
         "allowFallbackLinks is false"),
        ({**ANY, "max_senders": 0}, sender(),
         "the connection has 0 links of this kind; maxSenders is 0"),
        ({**ANY, "max_senders": 0}, receiver(), None),
        ({**ANY, "max_receivers": 0}, receiver(),
         "the connection has 0 links of this kind; maxReceivers is 0"),
        ({**ANY, "max_receivers": 0}, sender(None, is_coordinator=True), None),
    ],
)  # fmt: skip
def test_requests(settings: dict[str, Any], request_: LinkRequest, reason: str | None) -> None:
    some, denials = rule(**settings)
    refusal = some.link_refusal(Access(), request_)
    assert [each.reason for each in denials] == ([] if reason is None else [reason])
    if reason is None:
        assert refusal is None
        return
    assert refusal is not None
    is_limit = "links of this kind" in reason
    assert refusal.condition == ("amqp:resource-limit-exceeded" if is_limit else UNAUTHORIZED)
    # what it may not do is not explained to the peer
    assert refusal.description == LINK_DISALLOWED
    assert denials[0].what == ("sender" if request_.is_sender else "receiver")


def test_judging_refuses_nothing() -> None:
    some, denials = rule()
    assert some.judge(Access(), sender()) == Denial(
        "sender", "targets does not contain 'q'", attribute="targets"
    )
    assert denials == []


def test_messages() -> None:
    some, denials = rule(target_pattern=("${user}/#",))
    assert some.message_refusal(Access(), "ada/q") is None
    refusal = some.message_refusal(Access(), "bob/q")
    assert refusal is not None
    assert (refusal.condition, refusal.description) == (UNAUTHORIZED, MESSAGE_DISALLOWED)
    assert denials == [Denial("message", "targets does not contain 'bob/q'", attribute="targets")]


def test_a_very_long_address_is_not_quoted_whole() -> None:
    some, denials = rule()
    for refusal in (
        some.link_refusal(Access(), sender("x" * 10_000)),
        some.message_refusal(Access(), "x" * 10_000),
    ):
        assert len(str(refusal)) < 200
    assert [len(each.reason) < 200 for each in denials] == [True, True]
