"""Claims of a connection's tokens: paths, rights, limits and expiry."""

from __future__ import annotations

import sys

import pytest

from router.core.addresses.access import Access, LinkRequest
from router.core.addresses.claims import (
    LISTEN,
    LONGEST_ADDRESS,
    MANAGE,
    MOST_PATHS,
    MOST_TOKENS,
    SEND,
    Claims,
    Grant,
    TokenRefused,
    VerifiedToken,
    covering_paths,
    path_in,
)

from support.tokens import Verifier


def token(path: str, rights: int = SEND, lifetime_s: float = 60.0) -> VerifiedToken:
    """Return a token with one path."""
    return VerifiedToken((Grant(path, rights),), lifetime_s)


def claims(*tokens: VerifiedToken) -> Claims:
    """Return claims with these tokens, at the time 0."""
    made = Claims(Verifier(), 0.0)
    for number, each in enumerate(tokens):
        made.put(str(number), each, 0.0)
    return made


@pytest.mark.parametrize(
    ("path", "name", "is_covered"),
    [
        ("orders", "orders", True),
        ("orders", "orders/eu", True),
        ("orders", "orders/eu/north", True),
        ("orders/eu", "orders/eu", True),
        ("orders/eu", "orders", False),
        ("orders", "orders2", False),
        ("orders", "order", False),
        ("orders", "orders.eu", False),
        ("orders", "Orders", False),
        ("orders", "secret", False),
        ("orders", "orders/../secret", False),
        ("orders", "orders/./x", False),
        ("orders", "orders//x", False),
        ("orders", "orders/%2e%2e/secret", True),
        ("orders", "orders%2feu", False),
        ("caf\u00e9", "cafe\u0301", False),
        ("caf\u00e9", "caf\u00e9", True),
        ("hub/consumergroups/a", "hub/ConsumerGroups/a/Partitions/0", True),
        ("hub/consumergroups/a", "hub/consumergroups/A", False),
        ("", "orders/../secret", True),
        ("", "anything", True),
    ],
)
def test_a_path_covers_whole_parts_of_addresses(path: str, name: str, is_covered: bool) -> None:
    # what is written as %2e is an address of its own: the router decodes nothing
    assert claims(token(path_in(path))).covers(name, SEND) is is_covered


@pytest.mark.parametrize(
    ("audience", "path"),
    [
        ("sb://host:5671/orders", "orders"),
        ("https://host/orders/", "orders"),
        ("amqps://host/Topic/Subscriptions/S", "Topic/subscriptions/S"),
        ("sb://host", ""),
        ("sb://host/", ""),
        ("orders", "orders"),
        ("/orders", "orders"),
        ("host/orders", "host/orders"),
        ("x sb://host/orders", "x sb://host/orders"),
        ("sb:///orders", "orders"),
    ],
)
def test_the_path_of_an_audience(audience: str, path: str) -> None:
    assert path_in(audience) == path


def test_an_overlong_address_is_covered_by_the_empty_path_alone() -> None:
    assert list(covering_paths("a" * (LONGEST_ADDRESS + 1))) == [""]
    assert list(covering_paths("a/" * 5000)) == [""]
    assert list(covering_paths("a/b")) == ["a/b", "a", ""]


def test_rights_are_separate() -> None:
    made = claims(token("in", SEND), token("out", LISTEN), token("", MANAGE))
    access = Access()
    assert made.link_refusal(access, LinkRequest(True, "in")) is None
    assert made.link_refusal(access, LinkRequest(False, "out")) is None
    refusal = made.link_refusal(access, LinkRequest(False, "in"))
    assert refusal is not None
    assert refusal.condition == "amqp:unauthorized-access"
    assert "Listen at 'in'" in refusal.description
    assert made.message_refusal(access, "in") is None
    assert made.message_refusal(access, "out") is not None
    assert made.may_manage()
    assert not claims(token("", SEND)).may_manage()
    assert not claims(token("orders", MANAGE)).may_manage()


@pytest.mark.parametrize(
    ("rights", "request_", "is_allowed"),
    [
        (SEND, LinkRequest(True, None), True),
        (LISTEN, LinkRequest(True, None), False),
        (SEND, LinkRequest(True, None, is_coordinator=True), True),
        (SEND, LinkRequest(False, None, is_dynamic=True), True),
        (SEND, LinkRequest(True, "_topo/0/R/temp.abc"), True),
        (LISTEN, LinkRequest(True, "_topo/0/R/temp.abc"), False),
        (SEND, LinkRequest(True, "_topo/0/R/orders"), False),
        (SEND, LinkRequest(True, "$management"), True),
        (MANAGE, LinkRequest(True, "_topo/0/R/$management"), False),
        (SEND, LinkRequest(True, "orders/$management"), True),
        (SEND, LinkRequest(True, "secret/$management"), False),
    ],
    ids=str,
)
def test_nodes_without_a_path(rights: int, request_: LinkRequest, is_allowed: bool) -> None:
    refusal = claims(token("orders", rights)).link_refusal(Access(), request_)
    assert (refusal is None) is is_allowed


def test_without_a_token_nothing_is_allowed_unless_none_is_required() -> None:
    made = Claims(Verifier(), 0.0)
    for request in (
        LinkRequest(True, None),
        LinkRequest(False, None, is_dynamic=True),
        LinkRequest(True, "_topo/0/R/$management"),
        LinkRequest(True, "orders/$management"),
        LinkRequest(False, "orders"),
    ):
        assert made.link_refusal(Access(), request) is not None
    # there each request is checked
    assert made.link_refusal(Access(), LinkRequest(True, "$management")) is None
    made.is_required = False
    assert made.link_refusal(Access(), LinkRequest(False, "orders")) is None
    assert made.message_refusal(Access(), "orders") is None
    assert made.may_manage()


def test_tokens_expire_and_are_replaced_and_deleted() -> None:
    made = claims(token("a", lifetime_s=10.0), token("b", lifetime_s=20.0))
    assert made.due == 10.0
    assert made.expire(9.9) == 0
    assert made.put("0", token("c", lifetime_s=30.0), 5.0)
    assert made.due == 20.0
    assert not made.covers("a", SEND)
    assert made.expire(20.0) == token("b").octets + len("1")
    assert not made.covers("b", SEND)
    assert made.covers("c", SEND)
    assert made.delete("0", 21.0)
    assert not made.delete("0", 21.0)
    # 20 seconds without a token
    assert made.due == 41.0
    assert len(made) == made.clear() == 0


def test_two_tokens_at_one_path_end_one_by_one() -> None:
    made = claims(token("a", SEND), token("a", SEND | LISTEN))
    made.delete("1", 0.0)
    assert made.covers("a", SEND)
    assert not made.covers("a", LISTEN)
    made.delete("0", 0.0)
    assert not made.covers("a", SEND)


def test_tokens_and_paths_are_limited() -> None:
    made = Claims(Verifier(), 0.0)
    for number in range(MOST_TOKENS):
        made.put(str(number), token("a"), 0.0)
    with pytest.raises(TokenRefused, match="1000 tokens"):
        made.put("more", token("a"), 0.0)
    made.put("0", token("b"), 0.0)
    made.clear()
    wide = VerifiedToken(tuple(Grant(str(n), SEND) for n in range(MOST_PATHS)), 1.0)
    made.put("wide", wide, 0.0)
    with pytest.raises(TokenRefused, match="4096 paths"):
        made.put("more", token("a"), 0.0)
    made.put("wide", wide, 0.0)


def test_entities_may_be_read_by_who_uses_them() -> None:
    made = claims(token("hub", LISTEN), token("other/$management", SEND))
    assert made.may_read_entity("hub")
    assert made.may_read_entity("other")
    assert not made.may_read_entity("third")


def test_long_and_wide_texts_are_charged() -> None:
    wide = VerifiedToken((Grant("\u20ac" * 1000, SEND, "h" * 500),), 1.0, "\u20ac" * 1000)
    assert wide.octets >= 2 * sys.getsizeof("\u20ac" * 1000) + 500


def test_nothing_shows_tokens() -> None:
    assert "secret" not in repr(claims(VerifiedToken((Grant("a", SEND),), 1.0, "secret")))
