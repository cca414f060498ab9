"""Checks of policies: virtual hosts, their groups, and what refers to them.

See `router.config.checks`, which runs these checks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from router.config.mistakes import Data, Finding, Path
from router.config.model import Configuration
from router.config.policy_kinds import normal_hostname
from router.config.vhosts import CONNECTOR_GROUP, DEFAULT_GROUP, VhostSettings


def _hostnames(configuration: Configuration, _: Data) -> Iterator[Finding]:
    """Yield a finding for each missing host name, and for each that occurs twice."""
    seen: dict[str, Path] = {}
    for index, vhost in enumerate(configuration.vhosts):
        here: Path = ("vhost", index)
        if vhost.hostname is None:
            yield Finding((*here, "hostname"), "is missing", "give the vhost a host name")
        names = [("hostname", vhost.hostname), *(("aliases", each) for each in vhost.aliases)]
        for key, name in names:
            if name is None:
                continue
            first = seen.setdefault(normal_hostname(name), (*here, key))
            if first != (*here, key):
                yield Finding(
                    (*here, key),
                    f"contains {name}, which is already a host name of vhost[{first[1]}]",
                    "give each host name once",
                    concerns=(first,),
                )


def _groups(configuration: Configuration, _: Data) -> Iterator[Finding]:
    for index, vhost in enumerate(configuration.vhosts):
        here: Path = ("vhost", index)
        if vhost.allow_unknown_user and DEFAULT_GROUP not in vhost.groups:
            yield Finding(
                (*here, "allowUnknownUser"),
                f"has no effect, because the vhost has no group {DEFAULT_GROUP}",
                f'add [vhost.groups."{DEFAULT_GROUP}"] to say what such users may do',
                concerns=((*here, "groups"),),
            )
        yield from _users(vhost, here)
        for name, group in vhost.groups.items():
            there: Path = (*here, "groups", name)
            for key, listed, pattern in (
                ("sources", group.sources, group.source_pattern),
                ("targets", group.targets, group.target_pattern),
            ):
                if listed and pattern:
                    other = f"{key[:-1]}Pattern"
                    yield Finding(
                        (*there, other),
                        f"cannot be combined with {key}",
                        f"give one of {key} and {other}",
                        shown=True,
                        concerns=((*there, key),),
                    )


def _users(vhost: VhostSettings, here: Path) -> Iterator[Finding]:
    """Yield a finding for each user who is in several groups of a virtual host."""
    first: dict[str, str] = {}
    for name, group in vhost.groups.items():
        for user in group.users:
            other = first.setdefault(user, name)
            if other != name:
                yield Finding(
                    (*here, "groups", name, "users"),
                    f"contains {user}, who is in the group {other} as well",
                    "put each user in one group",
                    concerns=((*here, "groups", other, "users"),),
                )


def _used_vhosts(configuration: Configuration, _: Data) -> Iterator[Finding]:
    """Yield a finding for each policyVhost that does not exist, or lacks the group it needs."""
    vhosts = {each.hostname: each for each in configuration.vhosts}
    known = ", ".join(str(name) for name in vhosts) or "there is none"
    used = {
        "listener": [each.policy_vhost for each in configuration.listeners],
        "connector": [each.policy_vhost for each in configuration.connectors],
    }
    for entity, names in used.items():
        for index, name in enumerate(names):
            if name is None:
                continue
            vhost = vhosts.get(name)
            here: Path = (entity, index, "policyVhost")
            if vhost is None:
                yield Finding(
                    here, "is not a vhost", f"give one of the vhosts: {known}", shown=True
                )
            elif entity == "connector" and CONNECTOR_GROUP not in vhost.groups:
                yield Finding(
                    here,
                    f"names a vhost without a group {CONNECTOR_GROUP}",
                    f'add [vhost.groups."{CONNECTOR_GROUP}"] to it',
                    shown=True,
                    concerns=(("vhost",),),
                )


def _no_vhosts(configuration: Configuration, _: Data) -> Iterator[Finding]:
    if configuration.policy.enable_vhost_policy and not configuration.vhosts:
        yield Finding(
            ("policy", "enableVhostPolicy"),
            "lets no peer in, because there is no vhost",
            "add a [[vhost]]",
            concerns=(("vhost",),),
        )


POLICY_CHECKS: Final = (_hostnames, _groups, _used_vhosts, _no_vhosts)
