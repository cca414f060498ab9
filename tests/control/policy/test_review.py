"""Review of a policy: each thing that surprises people is found, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from router.config.connectors import ConnectorSettings
from router.config.listeners import ListenerSettings
from router.config.model import Configuration
from router.config.vhosts import PolicySettings, VhostGroupSettings, VhostSettings
from router.control.policy.review import review

MANAGERS = VhostGroupSettings(
    users=("root",),
    remote_hosts=("localhost",),
    targets=("$management",),
    allow_dynamic_source=True,
)
LOGIN = (ListenerSettings(sasl_mechanisms=("PLAIN",)),)


def reviewed(groups: dict[str, VhostGroupSettings], **fields: Any) -> list[str]:
    """Return what is found in a policy whose managers are as they should be."""
    vhost = {name: fields.pop(name) for name in ("allow_unknown_user",) if name in fields}
    vhosts = (VhostSettings(hostname="$default", groups={"managers": MANAGERS, **groups}, **vhost),)
    policy = PolicySettings(enable_vhost_policy=True)
    fields = {"listeners": LOGIN, "vhosts": vhosts, "policy": policy, **fields}
    return [str(each) for each in review(Configuration(**fields))]


def group(**fields: Any) -> VhostGroupSettings:
    """Return a group in which somebody is, and that may do something."""
    defaults = {"users": ("ann",), "remote_hosts": ("10.0.0.1",), "targets": ("orders",)}
    return VhostGroupSettings(**{**defaults, **fields})


def test_nothing_is_to_be_said_about_a_good_policy() -> None:
    assert reviewed({"clients": group(sources=("news*", "x"))}) == []
    assert list(review(Configuration())) == []


@pytest.mark.parametrize(
    ("name", "fields", "found"),
    [
        ("g", {"users": ()}, "nobody is in it, unless"),
        ("$default", {"users": ()}, "allowUnknownUser is false"),
        ("$connector", {}, "no connector has policyVhost"),
        ("g", {"targets": ("orders", "ord*")}, "targets: orders has no effect, because of ord*"),
        ("g", {"targets": ("a*", "ab*")}, "targets: ab* has no effect, because of a*"),
        ("g", {"sources": ("*", "x")}, "sources: x has no effect, because of *"),
        ("g", {"sources": ("a/*/b",)}, "a/*/b is not a pattern"),
        ("g", {"source_pattern": ("a/#", "a/*/b")}, "a/*/b has no effect, because of a/#"),
        ("g", {"source_pattern": ("*/b", "a/b")}, "a/b has no effect, because of */b"),
        ("g", {"source_pattern": ("a/#/b", "a/b")}, "a/b has no effect, because of a/#/b"),
        ("g", {"remote_hosts": ("*", "::1")}, "::1 has no effect, because of *"),
        (
            "g",
            {"remote_hosts": ("10.0.0.0/8", "10.1.0.0/16")},
            "10.1.0.0/16 has no effect, because of 10.0.0.0/8",
        ),
        ("g", {"targets": (), "allow_anonymous_sender": True}, "every message is rejected"),
        ("g", {"targets": ()}, "neither send nor receive"),
        ("g", {"users": ("anonymous",), "sources": ("in.${user}",)}, "stands for anonymous"),
        ("g", {"targets": ("$management",)}, "no answer can be received"),
        ("g", {"management": "read"}, "management has no effect"),
    ],
)
def test_what_is_found(name: str, fields: dict[str, Any], found: str) -> None:
    (text,) = reviewed({name: group(**fields)})
    assert text.startswith(f"vhost $default, group {name}: ")
    assert found in text


@pytest.mark.parametrize(
    "fields",
    [
        {"source_pattern": ("a/*", "a/#/b", "b/#")},
        {"source_pattern": ("a/*", "a/#")[:1]},
        {"sources": ("a", "b*", "ac")},
        {"remote_hosts": ("10.0.0.0/8", "11.0.0.0/8", "localhost", "::1")},
    ],
    ids=["patterns", "one", "names", "hosts"],
)
def test_entries_with_an_effect(fields: dict[str, Any]) -> None:
    assert reviewed({"g": group(**fields)}) == []


@pytest.mark.parametrize(
    ("entries", "managed"), [({"targets": ("*",)}, True), ({"source_pattern": ("#",)}, False)]
)
def test_everything_for_everybody(entries: dict[str, Any], managed: bool) -> None:
    default = group(users=(), **entries)
    text, *_ = reviewed({"$default": default}, allow_unknown_user=True)
    assert "allows every user every address" in text
    assert ("$management" in text) == managed


def test_a_connector_that_uses_its_group() -> None:
    connectors = (ConnectorSettings(policy_vhost="$default"),)
    assert reviewed({"$connector": group(users=())}, connectors=connectors) == []


def one(found: Iterable[str]) -> str:
    (text,) = found
    return text


def test_the_policy_as_a_whole() -> None:
    assert "enableVhostPolicy is false" in one(reviewed({}, policy=PolicySettings()))
    other = PolicySettings(enable_vhost_policy=True, default_vhost="elsewhere")
    assert "there is no vhost elsewhere" in one(reviewed({}, policy=other))
    nameless = (ListenerSettings(sasl_mechanisms=("ANONYMOUS",)),)
    assert "no listener lets users log in" in one(reviewed({}, listeners=nameless))
    vhosts = (VhostSettings(hostname="$default", groups={"g": group()}),)
    assert "nobody can manage this router" in one(reviewed({}, vhosts=vhosts))


@pytest.mark.parametrize(("names", "warns"), [(("a.com", "a.com"), False), (("a.com", None), True),
                                              ((), True)])  # fmt: skip
def test_listeners_that_choose_the_vhost_need_no_default(
    names: tuple[str | None, ...], warns: bool
) -> None:
    listeners = tuple(
        ListenerSettings(sasl_mechanisms=("PLAIN",), policy_vhost=name) for name in names
    )
    listeners += (ListenerSettings(role="inter-router"), ListenerSettings(http=True))
    vhosts = (VhostSettings(hostname="a.com", groups={"managers": MANAGERS}),)
    policy = PolicySettings(enable_vhost_policy=True)
    configuration = Configuration(listeners=listeners, vhosts=vhosts, policy=policy)
    found = [each.place for each in review(configuration)]
    assert found == (["policy.defaultVhost"] if warns else [])
