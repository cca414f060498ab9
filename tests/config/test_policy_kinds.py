"""Lists of users, hosts and addresses in policies."""

from __future__ import annotations

import ipaddress
from typing import Any

import pytest
from hypothesis import given, strategies as st

from router.config import policy_kinds
from router.config.kinds import Kind, ValueNotAllowed
from router.config.policy_kinds import (
    NotAllowedWithin,
    Part,
    host_range,
    is_host_range,
    normal_hostname,
)

KINDS = {
    "users": policy_kinds.user_names(),
    "addresses": policy_kinds.address_names(),
    "patterns": policy_kinds.address_patterns(),
    "host names": policy_kinds.host_names(),
    "hosts": policy_kinds.remote_hosts(),
}


def allows(kind: Kind, value: object) -> bool:
    """Return whether a kind allows a value."""
    try:
        kind.read(value)
    except ValueNotAllowed:
        return False
    return True


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@given(value=st.one_of(st.text(), st.lists(st.text(max_size=9)), st.integers(), st.none()))
def test_what_was_read_can_be_read_again(kind: Kind, value: Any) -> None:
    if allows(kind, value):
        read = kind.read(value)
        assert isinstance(read, tuple)
        assert kind.read(read) == read
        assert kind.read(list(read)) == read
        assert not read or kind.read(", ".join(read)) == read


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize(
    "value",
    ["a,,b", [""], [1], [["a"]], {"a": 1}, True, "a\nb", "a\0b", ["a,b"], [" a"], "x" * 513,
     ["a"] * 10_001],
    ids=lambda value: str(value)[:20].encode("unicode_escape").decode(),
)  # fmt: skip
def test_what_no_list_contains(kind: Kind, value: object) -> None:
    with pytest.raises(ValueNotAllowed) as refused:
        kind.read(value)
    assert refused.value.allowed == kind.words


def test_entries_are_listed_once_and_in_order() -> None:
    kind = KINDS["users"]
    assert kind.read("b, a , b") == ("b", "a")
    assert kind.read("") == kind.read([]) == ()


@pytest.mark.parametrize(
    ("kind", "value", "is_allowed"),
    [
        ("users", "a b", True),
        ("host names", "a b", False),
        ("host names", "*.a.com, $default", True),
        ("addresses", "*, q*, ${user}, ${user}/*, a/${user}.b", True),
        ("addresses", "${user}/${user}", False),
        ("patterns", "#, a/*/b, ${user}, ${user}/#, ${user}.q, q/${user}", True),
        ("patterns", "a${user}", False),
        ("patterns", "${user}a/q", False),
        ("patterns", "a/${user}/b", False),
        ("patterns", "${user}/${user}", False),
        ("hosts", "*, localhost, 10.0.0.1, 10.0.0.0/8, ::1, 2001:db8::/32", True),
        ("hosts", "10.0.0.1-10.0.0.9, 10.0.0.1 - 10.0.0.1", True),
        ("hosts", "10.0.0.9-10.0.0.1", False),
        ("hosts", "10.0.0.1-::1", False),
        ("hosts", "10.0.0.1-10.0.0.2-10.0.0.3", False),
        ("hosts", "10.0.0.0/33", False),
        ("hosts", "example.com", False),
        ("hosts", "10.0.0.*", False),
        ("hosts", "Localhost", False),
    ],
)
def test_entries(kind: str, value: str, is_allowed: bool) -> None:
    assert allows(KINDS[kind], value) is is_allowed


@given(st.text(alphabet="0123456789abcdef.:/- %*", max_size=20))
def test_a_range_of_hosts_is_read_or_refused(text: str) -> None:
    if text in ("*", "localhost") or not is_host_range(text):
        return
    version, low, high = host_range(text)
    assert version in (4, 6)
    assert 0 <= low <= high < 2 ** (32 if version == 4 else 128)


@given(st.ip_addresses(network="::/0"), st.integers(0, 128))
def test_a_network_has_a_first_and_a_last_address(host: Any, bits: int) -> None:
    network = ipaddress.ip_network(f"{host}/{bits}", strict=False)
    assert host_range(f"{host}/{bits}") == (6, int(network[0]), int(network[-1]))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("a.com", "a.com"),
        ("A.com.", "a.com"),
        ("a.com:1", "a.com"),
        ("a.com.:1", "a.com"),
        (":1", ""),
        (" a ", "a"),
        ("::1", "::1"),
        ("fe80::a:1", "fe80::a:1"),
        ("[fe80::a:1]", "[fe80::a:1]"),
        ("[fe80::a:1]:5671", "[fe80::a:1]"),
        ("a.com:", "a.com:"),
        ("a.com:\u0661", "a.com:\u0661"),
        ("a.com:1:2", "a.com:1:2"),
    ],
)
def test_host_names_are_compared_without_case_port_and_last_dot(text: str, name: str) -> None:
    assert normal_hostname(text) == name
    assert normal_hostname(name) == name


def test_a_refusal_of_a_table_has_its_parts() -> None:
    part = Part(("g", "users"), "a list")
    refusal = NotAllowedWithin("a table", iter([part]))
    assert (refusal.allowed, refusal.parts) == ("a table", (part,))
