"""The access of a connection: its rules, its counts, and what it remembers."""

from __future__ import annotations

import attrs

from router.core.addresses.access import (
    LONGEST_REMEMBERED,
    MOST_REMEMBERED,
    Access,
    LinkRequest,
    tenant_name,
)
from router.core.addresses.tenants import Tenant
from router.errors import AmqpError, Scope

from support.in_memory import Router


@attrs.define
class OnlySends:
    """Rule that lets a peer send to `q` alone, and counts the questions."""

    asked: int = 0

    def link_refusal(self, access: Access, request: LinkRequest) -> AmqpError | None:
        if request.is_sender and request.address in ("q", None):
            return None
        return AmqpError("amqp:unauthorized-access", "only q", Scope.LINK)

    def message_refusal(self, access: Access, name: str) -> AmqpError | None:
        self.asked += 1
        return None if name == "q" else AmqpError("amqp:unauthorized-access", name, Scope.LINK)


def test_every_rule_must_allow_a_link() -> None:
    request = LinkRequest(True, "p")
    assert Access().link_refusal(request) is None
    refusal = Access((OnlySends(), OnlySends())).link_refusal(request)
    assert refusal is not None
    assert refusal.condition == "amqp:unauthorized-access"
    assert Access((OnlySends(),)).link_refusal(LinkRequest(True, "q")) is None


def test_decisions_about_messages_are_remembered_until_rules_change() -> None:
    rule = OnlySends()
    access = Access((rule,))
    for _ in range(3):
        assert access.message_refusal("q") is None
        assert access.message_refusal("p") is not None
    assert rule.asked == 2
    access.rules_changed()
    access.message_refusal("q")
    assert rule.asked == 3


def test_few_decisions_are_remembered() -> None:
    rule = OnlySends()
    access = Access((rule,))
    for number in range(10 * MOST_REMEMBERED):
        access.message_refusal(f"p{number}")
    assert len(access._messages) <= MOST_REMEMBERED


def test_decisions_about_long_names_are_not_remembered() -> None:
    rule = OnlySends()
    access = Access((rule,))
    for _ in range(2):
        access.message_refusal("p" * (LONGEST_REMEMBERED + 1))
        access.message_refusal("p" * LONGEST_REMEMBERED)
    assert rule.asked == 3
    assert len(access._messages) == 1


def test_links_are_counted_from_attach_to_end() -> None:
    router = Router()
    client = router.client()
    access = Access((OnlySends(),))
    connection = client.connection
    assert tenant_name(connection) == ""
    connection.access = access
    client.sender("q", name="a")
    client.sender("q", name="b")
    refused = client.receiver("q")
    assert refused.detached is not None
    assert (access.senders, access.receivers) == (2, 0)
    connection.access = None
    connection.access = Access((), Tenant("t"))
    assert tenant_name(connection) == "t"
