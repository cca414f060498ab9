"""Review of a policy: warnings about what is allowed, but is probably not what was meant.

`router.config.policy_checks` finds the mistakes for which a configuration is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import attrs

from router.config.listeners import ListenerSettings
from router.config.model import Configuration
from router.config.policy_kinds import ANY, LOCALHOST, USER_TOKEN, host_range
from router.config.vhosts import (
    CONNECTOR_GROUP,
    DEFAULT_GROUP,
    VhostGroupSettings,
    VhostSettings,
)
from router.control.policy.address_names import WILDCARD, AddressNames
from router.core.addresses.link_origins import ANONYMOUS
from router.core.model.patterns import tokens
from router.core.routers.membership import ROLES
from router.core.routers.names import MANAGEMENT_NODE

# Maximum number of patterns of one attribute that are compared, since this takes quadratic time.
MOST_COMPARED: Final = 300
# Beginnings of the SASL mechanisms with which a peer logs in as a user.
_LOGIN_MECHANISMS: Final = ("PLAIN", "EXTERNAL", "SCRAM-", "OAUTHBEARER", "XOAUTH2", "GSSAPI")


@attrs.frozen
class Caution:
    """Warning about a part of a policy: `place` says where it is, and `text` what is wrong."""

    place: str
    text: str

    def __str__(self) -> str:
        return f"{self.place}: {self.text}"


def review(configuration: Configuration) -> Iterator[Caution]:
    """Yield warnings about the policy of a configuration, in the order of the file."""
    policy, vhosts = configuration.policy, configuration.vhosts
    if not policy.enable_vhost_policy:
        if vhosts:
            text = "enableVhostPolicy is false, so that peers may do everything"
            yield Caution("policy", text)
        return
    names = {each.hostname for each in vhosts}
    clients = _client_listeners(configuration)
    # with a policyVhost the host name of a peer does not matter
    by_name = not clients or any(each.policy_vhost is None for each in clients)
    if policy.default_vhost not in names and by_name:
        yield Caution(
            "policy.defaultVhost",
            f"there is no vhost {policy.default_vhost}: a peer whose open has another host name, "
            "such as an IP address, is refused",
        )
    yield from _logins(configuration)
    if not any(_may_manage(each) for vhost in vhosts for each in vhost.groups.values()):
        yield Caution(
            "policy",
            f"no group has {MANAGEMENT_NODE} in its targets: nobody can manage this router",
        )
    for vhost in vhosts:
        for name, group in vhost.groups.items():
            place = f"vhost {vhost.hostname}, group {name}"
            texts = [*_members(configuration, vhost, name, group), *_rights(vhost, name, group)]
            for attribute, entries in _lists(group):
                texts += [f"{attribute}: {text}" for text in _entries(attribute, entries)]
            for text in texts:
                yield Caution(place, text)


def _client_listeners(configuration: Configuration) -> list[ListenerSettings]:
    return [each for each in configuration.listeners if each.serves_amqp and each.role not in ROLES]


def _logins(configuration: Configuration) -> Iterator[Caution]:
    """Yield a warning if groups list users, but no listener lets anybody log in."""
    listeners = _client_listeners(configuration)
    if not listeners or any(
        mechanism.startswith(_LOGIN_MECHANISMS)
        for each in listeners
        for mechanism in each.sasl_mechanisms
    ):
        return
    listed = {
        user for each in configuration.vhosts for of in each.groups.values() for user in of.users
    }
    if listed - {ANONYMOUS}:
        yield Caution(
            "listener",
            f"no listener lets users log in: every peer is the user {ANONYMOUS}",
        )


def _members(
    configuration: Configuration, vhost: VhostSettings, name: str, group: VhostGroupSettings
) -> Iterator[str]:
    if name == CONNECTOR_GROUP:
        if not any(each.policy_vhost == vhost.hostname for each in configuration.connectors):
            yield f"no connector has policyVhost = {vhost.hostname}, so that it has no effect"
    elif name == DEFAULT_GROUP:
        if not vhost.allow_unknown_user and not group.users:
            yield "nobody is in it, because allowUnknownUser is false"
    elif not group.users:
        yield "nobody is in it, unless an authentication plugin names the group"


def _rights(vhost: VhostSettings, name: str, group: VhostGroupSettings) -> Iterator[str]:
    has_targets = bool(group.targets or group.target_pattern)
    has_sources = bool(group.sources or group.source_pattern)
    if group.allow_anonymous_sender and not has_targets:
        yield (
            "allowAnonymousSender is true, but there is no address in targets, so that every "
            "message is rejected"
        )
    elif not has_targets and not has_sources and not group.allow_dynamic_source:
        yield "its users may connect, but neither send nor receive"
    if _is_for_all(vhost, name):
        for attribute, entries in _lists(group):
            if attribute != "remoteHosts" and {WILDCARD, "#"} & set(entries):
                managed = f", {MANAGEMENT_NODE} included" if attribute.startswith("target") else ""
                yield f"{attribute} allows every user every address{managed}"
    if _is_for_all(vhost, name) or ANONYMOUS in group.users:
        if any(USER_TOKEN in entry for _, entries in _lists(group) for entry in entries):
            yield (
                f"{USER_TOKEN} stands for {ANONYMOUS} if a peer does not log in, so that such "
                "peers share these addresses"
            )
    may_manage = _may_manage(group)
    if may_manage and not group.allow_dynamic_source and not has_sources:
        yield (
            f"{MANAGEMENT_NODE} is in its targets, but no answer can be received: "
            "allowDynamicSource is false and there is no address in sources"
        )
    if group.management in ("read", "change") and not may_manage:
        yield f"management has no effect, because {MANAGEMENT_NODE} is not in its targets"


def _is_for_all(vhost: VhostSettings, name: str) -> bool:
    return name == DEFAULT_GROUP and vhost.allow_unknown_user


def _may_manage(group: VhostGroupSettings) -> bool:
    names = AddressNames(group.targets, group.target_pattern)
    return names.entry_for(MANAGEMENT_NODE, "") is not None and group.management != "none"


def _lists(group: VhostGroupSettings) -> Iterator[tuple[str, tuple[str, ...]]]:
    yield "remoteHosts", group.remote_hosts
    yield "sources", group.sources
    yield "sourcePattern", group.source_pattern
    yield "targets", group.targets
    yield "targetPattern", group.target_pattern


def _entries(attribute: str, entries: Sequence[str]) -> Iterator[str]:
    """Yield warnings about the entries of one attribute."""
    if attribute == "remoteHosts":
        covered = _covered_hosts(entries)
    elif attribute.endswith("Pattern"):
        covered = _covered_patterns(entries)
    else:
        covered = _covered_names(entries)
        for entry in entries:
            if WILDCARD in entry[:-1] or "#" in entry:
                pattern = f"{attribute.removesuffix('s')}Pattern"
                yield f"{entry} is not a pattern: only * at the end is a wildcard; see {pattern}"
    for entry, wider in covered:
        yield f"{entry} has no effect, because of {wider}"


def _covered_names(entries: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each entry that is redundant, with the entry that allows the same and more."""
    prefixes = {each[:-1].lstrip("/"): each for each in entries if each.endswith(WILDCARD)}
    for entry in entries:
        is_prefix = entry.endswith(WILDCARD)
        text = (entry[:-1] if is_prefix else entry).lstrip("/")
        for end in range(len(text) + (not is_prefix)):
            wider = prefixes.get(text[:end])
            if wider is not None and wider != entry:
                yield entry, wider
                break


def _covered_patterns(entries: Sequence[str]) -> Iterator[tuple[str, str]]:
    split = [(each, tokens(each)) for each in entries[:MOST_COMPARED]]
    for entry, parts in split:
        for wider, others in split:
            if wider != entry and _covers(others, parts):
                yield entry, wider
                break


def _covers(wide: Sequence[str], narrow: Sequence[str]) -> bool:
    """Return whether the pattern `wide` matches every name that `narrow` matches."""
    # positions in `wide` that are reached by the tokens of `narrow` so far
    ends = _with_skipped({0}, wide)
    for token in narrow:
        found = set()
        for at in ends:
            if at < len(wide) and wide[at] == "#":
                found.add(at)
            elif at < len(wide) and token != "#" and wide[at] in ("*", token):
                found.add(at + 1)
        ends = _with_skipped(found, wide)
    return len(wide) in ends


def _with_skipped(ends: set[int], wide: Sequence[str]) -> set[int]:
    """Add the positions after each `#`, which may match no token, and return all of them."""
    found = set()
    for at in ends:
        found.add(at)
        while at < len(wide) and wide[at] == "#":
            at += 1
            found.add(at)
    return found


def _covered_hosts(entries: Sequence[str]) -> Iterator[tuple[str, str]]:
    if ANY in entries:
        yield from ((each, ANY) for each in entries if each != ANY)
        return
    ranges = [(each, *host_range(each)) for each in entries if each != LOCALHOST]
    # the widest of those that begin at the same address comes first
    ranges.sort(key=lambda each: (each[1], each[2], -each[3]))
    widest: tuple[str, int, int, int] | None = None
    for each in ranges:
        if widest is not None and widest[1] == each[1] and each[3] <= widest[3]:
            yield each[0], widest[0]
        else:
            widest = each
