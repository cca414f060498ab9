"""Policy of a router: the virtual hosts of its configuration, and decisions about peers.

    peer (host name, user, host) -> virtual host -> group -> what the peer may do

Nothing here depends on connections, so that tools can ask the same questions as a router.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from router.config.policy_kinds import normal_hostname
from router.config.vhosts import (
    CONNECTOR_GROUP,
    DEFAULT_GROUP,
    PolicySettings,
    VhostGroupSettings,
    VhostSettings,
)
from router.control.policy.address_names import AddressNames
from router.control.policy.remote_hosts import RemoteHosts
from router.core.model.patterns import PatternTree


@attrs.frozen
class Peer:
    """Peer as a policy sees it.

    `hostname` is the host name in its open, and `host` the IP address from which it connects.
    `groups` are those that an authentication plugin named.
    """

    hostname: str
    user: str
    host: str
    groups: frozenset[str] = frozenset()


@attrs.frozen(eq=False)
class Group:
    """Group of users of a virtual host, ready for look-ups."""

    name: str
    settings: VhostGroupSettings
    sources: AddressNames
    targets: AddressNames
    hosts: RemoteHosts

    def entry_for(self, name: str, user: str, *, is_sender: bool) -> str | None:
        """Return the entry that allows a user to send to `name`, or to receive from it, or None."""
        return (self.targets if is_sender else self.sources).entry_for(name, user)


@attrs.frozen(eq=False)
class Vhost:
    """Virtual host, ready for look-ups; `group_names` has the group of each listed user."""

    name: str
    settings: VhostSettings
    groups: dict[str, Group]
    group_names: dict[str, str]

    @property
    def largest_frame(self) -> int:
        """Return the largest maxFrameSize of its groups, in octets; 0 if no group has one."""
        sizes = (each.settings.max_frame_size or 0 for each in self.groups.values())
        return max(sizes, default=0)

    def group_of(self, user: str, groups: frozenset[str]) -> Group | None:
        """Return the group of a user, or None if the user is in none.

        The list of users comes first, then the groups that a plugin named, then the default group.
        """
        name = self.group_names.get(user)
        if name is not None:
            return self.groups[name]
        for each in self.groups.values():
            if each.name in groups and each.name not in (DEFAULT_GROUP, CONNECTOR_GROUP):
                return each
        return self.groups.get(DEFAULT_GROUP) if self.settings.allow_unknown_user else None


@attrs.frozen
class Judgement:
    """Decision about a peer that connects; `refusal` is the reason why it may not, or empty."""

    vhost: Vhost | None
    group: Group | None
    refusal: str = ""


class Policy:
    """Policy with all virtual hosts of a configuration."""

    def __init__(self, settings: PolicySettings, vhosts: Iterable[VhostSettings] = ()) -> None:
        self.settings = settings
        self.vhosts: dict[str, Vhost] = {}
        self._by_hostname: dict[str, Vhost] = {}
        self._patterns: PatternTree[Vhost] = PatternTree()
        for each in vhosts:
            vhost = _vhost(each)
            self.vhosts[vhost.name] = vhost
            for hostname in (vhost.name, *each.aliases):
                self._by_hostname[normal_hostname(hostname)] = vhost
                if settings.enable_vhost_name_patterns:
                    self._patterns.add(normal_hostname(hostname), vhost)
        # the largest maxFrameSize of all groups, in octets; 0 if no group has one
        self.largest_frame = max((each.largest_frame for each in self.vhosts.values()), default=0)

    def vhost_of(self, hostname: str) -> Vhost | None:
        """Return the virtual host for a host name, or the default one; None if there is neither."""
        found = self.vhost_named(hostname)
        return self.vhosts.get(self.settings.default_vhost) if found is None else found

    def vhost_named(self, hostname: str) -> Vhost | None:
        """Return the virtual host that a host name belongs to, leaving out the default one."""
        key = normal_hostname(hostname)
        found = self._by_hostname.get(key)
        return self._patterns.match(key) if found is None and key else found

    def judge(self, peer: Peer) -> Judgement:
        """Return the virtual host and the group of a peer, or why it may not connect."""
        vhost = self.vhost_of(peer.hostname)
        if vhost is None:
            return Judgement(None, None, f"no vhost has the host name {peer.hostname[:255]!r}")
        group = vhost.group_of(peer.user, peer.groups)
        if group is None:
            return Judgement(
                vhost,
                None,
                f"the user {peer.user!r} is in no group of the vhost {vhost.name}, which does not "
                "allow unknown users",
            )
        if not group.hosts.has(peer.host):
            return Judgement(
                vhost,
                group,
                f"remoteHosts of the group {group.name} of the vhost {vhost.name} does not contain "
                f"{peer.host}",
            )
        return Judgement(vhost, group)

    def judge_connector(self, name: str) -> Judgement:
        """Return the virtual host `name` and its group for the peers of connectors."""
        vhost = self.vhosts.get(name)
        group = None if vhost is None else vhost.groups.get(CONNECTOR_GROUP)
        if group is None:
            return Judgement(vhost, None, f"no vhost {name} has a group {CONNECTOR_GROUP}")
        return Judgement(vhost, group)

    def max_message_size(self, vhost: Vhost, group: Group) -> int:
        """Return the maximum size of messages for a group, in octets; 0 means no limit."""
        sizes = (
            group.settings.max_message_size,
            vhost.settings.max_message_size,
            self.settings.max_message_size,
        )
        return next(size for size in sizes if size is not None)


def _vhost(settings: VhostSettings) -> Vhost:
    groups = {name: _group(name, each) for name, each in settings.groups.items()}
    names = {user: name for name, each in settings.groups.items() for user in each.users}
    return Vhost(settings.hostname or "", settings, groups, names)


def _group(name: str, settings: VhostGroupSettings) -> Group:
    return Group(
        name,
        settings,
        AddressNames(settings.sources, settings.source_pattern),
        AddressNames(settings.targets, settings.target_pattern),
        RemoteHosts(settings.remote_hosts),
    )
