"""Mistakes in policies are found, and described."""

from __future__ import annotations

import pytest

from support.configuring import mistakes_in

GROUP = '[vhost.groups.g]\nremoteHosts = "*"\n'


def mistakes(text: str) -> list[str]:
    """Return what is said of a configuration."""
    return [str(each) for each in mistakes_in(text)]


def vhosts(*names: str) -> str:
    """Return virtual hosts with these host names."""
    return "".join(f'[[vhost]]\nhostname = "{name}"\n{GROUP}' for name in names)


@pytest.mark.parametrize(
    "names",
    [
        ("a.com", "A.COM"),
        ("a.com", "a.com."),
        ("a.com", "a.com:5671"),
        ("a.com:5672", "a.com:5671"),
        ("[::1]", "[::1]:5671"),
    ],
)
def test_two_virtual_hosts_with_one_host_name(names: tuple[str, str]) -> None:
    (said,) = mistakes(vhosts(*names))
    assert said == (
        f"f:6: vhost[1].hostname: contains {names[1]}, which is already a host name of vhost[0]; "
        "give each host name once"
    )


def test_addresses_that_differ_after_a_colon_are_two_host_names() -> None:
    assert mistakes(vhosts("2001:db8::a:1", "2001:db8::a:2", "a.com", "a.com.au")) == []


def test_an_alias_of_another_virtual_host() -> None:
    text = f'{vhosts("a.com")}[[vhost]]\nhostname = "b.com"\naliases = ["A.com"]\n{GROUP}'
    (said,) = mistakes(text)
    assert said == (
        "f:7: vhost[1].aliases: contains A.com, which is already a host name of vhost[0]; "
        "give each host name once"
    )


def test_a_virtual_host_without_a_name() -> None:
    assert mistakes(f"[[vhost]]\n{GROUP}") == [
        "f:1: vhost[0].hostname: is missing; give the vhost a host name"
    ]


def test_unknown_users_without_a_group() -> None:
    text = f'[[vhost]]\nhostname = "a"\nallowUnknownUser = true\n{GROUP}'
    (said,) = mistakes(text)
    assert said == (
        "f:3: vhost[0].allowUnknownUser: has no effect, because the vhost has no group $default; "
        'add [vhost.groups."$default"] to say what such users may do'
    )


@pytest.mark.parametrize("kind", ["source", "target"])
def test_addresses_and_patterns(kind: str) -> None:
    (said,) = mistakes(f'{vhosts("a")}{kind}s = "q"\n{kind}Pattern = "q"\n')
    assert f"vhost[0].groups.g.{kind}Pattern" in said
    assert f"cannot be combined with {kind}s; give one of {kind}s and {kind}Pattern" in said


def test_a_user_in_two_groups() -> None:
    text = f'{vhosts("a")}users = "x, y"\n[vhost.groups.h]\nremoteHosts = "*"\nusers = "y"\n'
    (said,) = mistakes(text)
    assert "vhost[0].groups.h.users: contains y, who is in the group g as well" in said


LISTENER = '[[listener]]\nport = 0\npolicyVhost = "b"\n'
CONNECTOR = '[[connector]]\nhost = "h"\nport = 1\nname = "c"\npolicyVhost = "{}"\n'


def test_virtual_hosts_that_are_not_there() -> None:
    (said,) = mistakes(LISTENER + vhosts("a"))
    assert said == 'f:3: listener[0].policyVhost: "b" is not a vhost; give one of the vhosts: a'
    (said,) = mistakes(LISTENER)
    assert "give one of the vhosts: there is none" in said
    (said,) = mistakes(CONNECTOR.format("b") + vhosts("a"))
    assert 'connector[0].policyVhost: "b" is not a vhost' in said
    assert mistakes(LISTENER + vhosts("a", "b")) == []


def test_a_connector_needs_a_group_of_its_own() -> None:
    (said,) = mistakes(CONNECTOR.format("a") + vhosts("a"))
    assert "names a vhost without a group $connector" in said
    assert mistakes(CONNECTOR.format("a") + vhosts("a") + '[vhost.groups."$connector"]\n') == []


def test_a_policy_that_lets_nobody_in() -> None:
    (said,) = mistakes("[policy]\nenableVhostPolicy = true\n")
    assert "enableVhostPolicy: lets no peer in, because there is no vhost; add a [[vhost]]" in said
    assert mistakes("[policy]\nenableVhostPolicy = true\n" + vhosts("a")) == []
