"""Decisions about peers: their virtual host and group, or why they may not connect."""

from __future__ import annotations

import pytest

from router.control.policy.policy import Peer

from support.policed import group, policy, vhost

HOST = "127.0.0.1"


@pytest.mark.parametrize(
    ("hostname", "name"),
    [
        ("a.com", "a.com"),
        ("A.COM", "a.com"),
        ("a.com.", "a.com"),
        ("a.com:5671", "a.com"),
        ("a.com.:5671", "a.com"),
        (" a.com ", "a.com"),
        ("www.a.com", "a.com"),
        ("b.com", "b.com"),
        ("[2001:db8::a:1]:5671", "[2001:db8::a:1]"),
        ("2001:db8::a:2", "2001:db8::a:2"),
    ],
)
def test_virtual_hosts_by_name(hostname: str, name: str) -> None:
    some = policy(
        vhost("a.com", aliases=("WWW.a.com",)),
        vhost("b.com:5672"),
        vhost("[2001:db8::a:1]"),
        vhost("2001:db8::a:2"),
        vhost("2001:db8::a:3"),
    )
    found = some.vhost_of(hostname)
    assert found is not None
    assert found.name.removesuffix(":5672") == name


@pytest.mark.parametrize(
    "hostname",
    ["", "com", "x.a.com", "a.com/x", "a.com:", "a.com:x", "a.com@b", "*", "#", "a/com", "a.com\0",
     "xn--a.com", "\uff41.com", "a\uff0ecom", "$default", "[a.com]"],
)  # fmt: skip
def test_a_host_name_without_a_virtual_host(hostname: str) -> None:
    assert policy(vhost("a.com")).vhost_of(hostname) is None
    found = policy(vhost("a.com"), vhost("$default")).vhost_of(hostname)
    assert found is not None
    assert found.name == "$default"


def test_the_default_virtual_host_may_have_any_name() -> None:
    some = policy(vhost("a.com"), vhost("b.com"), default_vhost="b.com")
    found = some.vhost_of("c.com")
    assert found is not None
    assert found.name == "b.com"


@pytest.mark.parametrize(
    ("hostname", "name"),
    [
        ("x.a.com", "*.a.com"),
        ("y.a.com", "y.a.com"),
        ("x.y.a.com", "#.com"),
        ("com", "#.com"),
        ("a.org", None),
        ("*.a.com", "*.a.com"),
    ],
)
def test_the_most_specific_pattern_of_host_names(hostname: str, name: str | None) -> None:
    some = policy(
        vhost("#.com"), vhost("*.a.com"), vhost("y.a.com"), enable_vhost_name_patterns=True
    )
    found = some.vhost_of(hostname)
    assert (None if found is None else found.name) == name


def test_without_patterns_a_wildcard_is_a_character() -> None:
    assert policy(vhost("*.a.com")).vhost_of("x.a.com") is None


GROUPS = {"staff": group(users=("ada",)), "guests": group(remote_hosts=("10.0.0.0/8",))}


@pytest.mark.parametrize(
    ("user", "groups", "name"),
    [
        ("ada", (), "staff"),
        ("bob", ("guests",), "guests"),
        # the list of users comes first
        ("ada", ("guests",), "staff"),
        ("bob", ("others",), "$default"),
        ("bob", (), "$default"),
        ("Ada", (), "$default"),
        ("staff", (), "$default"),
        # no user may put itself into these
        ("bob", ("$connector",), "$default"),
    ],
)
def test_groups_of_users(user: str, groups: tuple[str, ...], name: str) -> None:
    both = {**GROUPS, "$connector": group()}
    (found,) = policy(vhost("a.com", groups=both, default={})).vhosts.values()
    chosen = found.group_of(user, frozenset(groups))
    assert chosen is not None
    assert chosen.name == name


def test_an_unknown_user_needs_permission() -> None:
    some = policy(vhost("a.com", groups={**GROUPS, "$default": group()}))
    judgement = some.judge(Peer("a.com", "bob", HOST))
    assert judgement.group is None
    assert "the user 'bob' is in no group of the vhost a.com" in judgement.refusal
    assert some.judge(Peer("a.com", "ada", HOST)).refusal == ""


def test_a_user_connects_from_the_hosts_of_the_group() -> None:
    groups = {"guests": group(users=("bob",), remote_hosts=("10.0.0.0/8",))}
    some = policy(vhost("a.com", groups=groups))
    assert some.judge(Peer("a.com", "bob", "10.1.2.3")).refusal == ""
    judgement = some.judge(Peer("a.com", "bob", HOST))
    assert judgement.refusal == (
        f"remoteHosts of the group guests of the vhost a.com does not contain {HOST}"
    )


def test_a_group_without_hosts_lets_nobody_in() -> None:
    some = policy(vhost("a.com", default={"remote_hosts": ()}))
    assert some.judge(Peer("a.com", "ada", HOST)).refusal


def test_a_very_long_host_name_is_not_quoted_whole() -> None:
    judgement = policy(vhost("a.com")).judge(Peer("x" * 10_000, "ada", HOST))
    assert len(judgement.refusal) < 300


def test_the_group_of_a_connector() -> None:
    some = policy(vhost("a.com", groups={"$connector": group()}), vhost("b.com"))
    judgement = some.judge_connector("a.com")
    assert judgement.group is not None
    assert judgement.refusal == ""
    for name in ("b.com", "c.com"):
        assert some.judge_connector(name).refusal == f"no vhost {name} has a group $connector"


@pytest.mark.parametrize(
    ("sizes", "most"),
    [((None, None), 7), ((None, 5), 5), ((3, 5), 3), ((0, 5), 0), ((None, 0), 0), ((9, None), 9)],
)
def test_the_size_limit_of_messages(sizes: tuple[int | None, int | None], most: int) -> None:
    groups = {"g": group(users=("ada",), max_message_size=sizes[0])}
    some = policy(vhost("a.com", groups=groups, max_message_size=sizes[1]), max_message_size=7)
    judgement = some.judge(Peer("a.com", "ada", HOST))
    assert judgement.vhost is not None
    assert judgement.group is not None
    assert some.max_message_size(judgement.vhost, judgement.group) == most


def test_a_group_knows_which_entry_allows_an_address() -> None:
    (some,) = policy(
        vhost("a.com", default={"sources": ("q",), "target_pattern": ("${user}/#",)})
    ).vhosts.values()
    found = some.groups["$default"]
    assert found.entry_for("q", "ada", is_sender=False) == "q"
    assert found.entry_for("q", "ada", is_sender=True) is None
    assert found.entry_for("ada/q", "ada", is_sender=True) == "${user}/#"
