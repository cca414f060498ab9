"""Policies in the configuration: virtual hosts, their groups of users, and what a group may do."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Final, get_args

import attrs

from router.config import kinds, policy_kinds
from router.config.endpoints import Management
from router.config.kinds import Kind, ValueNotAllowed
from router.config.policy_kinds import NotAllowedWithin, Part
from router.config.setting import checked, file_name, setting, setting_of

DEFAULT_GROUP: Final = "$default"
"""Group of the users that are in no other group, if the virtual host has allowUnknownUser."""

CONNECTOR_GROUP: Final = "$connector"
"""Group of the peers to which connectors with this policyVhost connect."""

MOST_CONNECTIONS: Final = 65535
_CONNECTIONS: Final = kinds.whole_number(0, MOST_CONNECTIONS, "connections")
_BYTES: Final = kinds.whole_number(0, 2**63 - 1, "bytes", zero="no limit")
_LINKS: Final = kinds.whole_number(0, 2**31 - 1, "links")
_SESSIONS: Final = kinds.whole_number(1, 2**31 - 1, "sessions")
_PEER_LINKS: Final = kinds.whole_number(1, 2**31 - 1, "links")
_STATE: Final = kinds.whole_number(64 * 1024, 2**63 - 1, "bytes")
_OF_CONNECTIONS: Final = "no limit but those of each connection"
_MOST_GROUPS: Final = 10_000
_NAME: Final = kinds.text(255)


@attrs.frozen(kw_only=True, field_transformer=checked)
class VhostGroupSettings:
    """What the users in a group of a virtual host may do. All that is not allowed is refused."""

    users: tuple[str, ...] = attrs.field(
        default=(),
        metadata=setting(
            policy_kinds.user_names(),
            "The users in this group. If an authentication plugin says that a user is in a group "
            "of this name, the user is in it as well.",
        ),
    )
    remote_hosts: tuple[str, ...] = attrs.field(
        default=(),
        metadata=setting(
            policy_kinds.remote_hosts(), "The hosts from which these users may connect."
        ),
    )
    max_connections_per_user: int | None = attrs.field(
        default=None,
        metadata=setting(
            _CONNECTIONS,
            "Maximum number of connections of each of these users at a time.",
            default="that of the vhost",
        ),
    )
    max_connections_per_host: int | None = attrs.field(
        default=None,
        metadata=setting(
            _CONNECTIONS,
            "Maximum number of connections of these users from one host at a time.",
            default="that of the vhost",
        ),
    )
    max_frame_size: int | None = attrs.field(
        default=None,
        metadata=setting(
            kinds.whole_number(512, 2**31 - 1, "bytes"),
            "Maximum size of a frame that the peer may send.",
            default="that of the listener",
        ),
    )
    max_sessions: int | None = attrs.field(
        default=None,
        metadata=setting(
            kinds.whole_number(1, 32768, "sessions"),
            "Maximum number of sessions on one connection.",
            default="that of the listener",
        ),
    )
    max_session_window: int | None = attrs.field(
        default=None,
        metadata=setting(
            kinds.whole_number(512, 2**40, "bytes"),
            "Maximum number of bytes that the peer may send ahead on one session (its incoming "
            "window).",
            default="that of the listener",
        ),
    )
    connection_buffer_bytes: int | None = attrs.field(
        default=None,
        metadata=setting(
            kinds.whole_number(64 * 1024, 2**40, "bytes"),
            "How many bytes of messages from one connection may wait in the router.",
            default="that of the listener",
        ),
    )
    max_message_size: int | None = attrs.field(
        default=None,
        metadata=setting(
            _BYTES,
            "Maximum size of a message that the peer may send.",
            default="that of the vhost",
        ),
    )
    max_senders: int | None = attrs.field(
        default=None,
        metadata=setting(
            _LINKS,
            "Maximum number of links on one connection on which the peer sends.",
            default="no limit but those of the sessions",
        ),
    )
    max_receivers: int | None = attrs.field(
        default=None,
        metadata=setting(
            _LINKS,
            "Maximum number of links on one connection on which the peer receives.",
            default="no limit but those of the sessions",
        ),
    )
    allow_dynamic_source: bool = attrs.field(
        default=False,
        metadata=setting(
            kinds.flag(),
            "Whether a peer may receive from a dynamic source, as clients do for replies.",
        ),
    )
    allow_anonymous_sender: bool = attrs.field(
        default=False,
        metadata=setting(
            kinds.flag(),
            "Whether a peer may send on a link without a target address. The `to` of each message "
            "is then checked against targets or targetPattern.",
        ),
    )
    allow_user_id_proxy: bool = attrs.field(
        default=False,
        metadata=setting(
            kinds.flag(),
            "Whether the user-id of a message may differ from the user of the connection.",
        ),
    )
    allow_waypoint_links: bool = attrs.field(
        default=True,
        metadata=setting(
            kinds.flag(),
            "Whether a link may have the capability qd.waypoint, which makes a broker a waypoint.",
        ),
    )
    allow_fallback_links: bool = attrs.field(
        default=True,
        metadata=setting(
            kinds.flag(),
            "Whether a link may have the capability qd.fallback, for fallback destinations.",
        ),
    )
    allow_dynamic_link_routes: bool = attrs.field(
        default=True,
        metadata=setting(
            kinds.flag(),
            "Whether a peer may request link routes to itself, which end with its connection.",
        ),
    )
    allow_admin_status_update: bool = attrs.field(
        default=True,
        metadata=setting(
            kinds.flag(),
            "Whether a peer that may manage the router may close other connections by setting "
            "their adminStatus.",
        ),
    )
    management: Management | None = attrs.field(
        default=None,
        metadata=setting(
            kinds.choice(get_args(Management)),
            "Which management requests the peer may make. The address $management must be in "
            "targets as well.",
            default="that of the listener",
        ),
    )
    sources: tuple[str, ...] = attrs.field(
        default=(),
        metadata=setting(
            policy_kinds.address_names(),
            "The addresses from which the peer may receive. Not with sourcePattern.",
        ),
    )
    targets: tuple[str, ...] = attrs.field(
        default=(),
        metadata=setting(
            policy_kinds.address_names(),
            "The addresses to which the peer may send. Not with targetPattern.",
        ),
    )
    source_pattern: tuple[str, ...] = attrs.field(
        default=(),
        metadata=setting(
            policy_kinds.address_patterns(),
            "The addresses from which the peer may receive, by patterns.",
        ),
    )
    target_pattern: tuple[str, ...] = attrs.field(
        default=(),
        metadata=setting(
            policy_kinds.address_patterns(),
            "The addresses to which the peer may send, by patterns.",
        ),
    )


def _groups() -> Kind:
    """Return the kind for the groups of a virtual host: a table for each group, by its name."""
    words = "a table of groups, with a table of attributes for each"

    def read(value: object) -> Mapping[str, VhostGroupSettings]:
        if not isinstance(value, Mapping) or len(value) > _MOST_GROUPS:
            raise ValueNotAllowed(words)
        found: list[Part] = []
        groups: dict[str, VhostGroupSettings] = {}
        for name, table in value.items():
            try:
                groups[str(_NAME.read(name))] = _group(table)
            except NotAllowedWithin as within:
                found += [attrs.evolve(part, path=(str(name), *part.path)) for part in within.parts]
            except ValueNotAllowed as refused:
                found.append(Part((str(name),), refused.allowed))
        if found:
            raise NotAllowedWithin(words, found)
        return groups

    return Kind(words, read)


def _group(table: object) -> VhostGroupSettings:
    """Read the settings of a group from its table; raise ValueNotAllowed for mistakes in it."""
    if isinstance(table, VhostGroupSettings):
        return table
    words = "a table of attributes"
    if not isinstance(table, Mapping):
        raise ValueNotAllowed(words)
    values: dict[str, object] = {}
    found: list[Part] = []
    fields = {file_name(field.name): field for field in attrs.fields(VhostGroupSettings)}
    for key, value in table.items():
        field = fields.get(key)
        if field is None:
            found.append(_unknown(str(key), fields))
            continue
        try:
            values[field.name] = setting_of(field).kind.read(value)
        except ValueNotAllowed as refused:
            found.append(Part((key,), refused.allowed))
    if found:
        raise NotAllowedWithin(words, found)
    # the kinds of the attributes have checked the types
    return VhostGroupSettings(**values)  # type: ignore[arg-type]


def _unknown(key: str, known: Mapping[str, object]) -> Part:
    nearest = difflib.get_close_matches(key, known, n=1)
    allowed = "" if nearest else f"known here: {', '.join(known)}"
    return Part((key,), allowed, nearest[0] if nearest else "", is_unknown=True)


def _shared(kind: Kind, meaning: str) -> int | None:
    """Return the field of a limit on what several connections have together."""
    found: int | None = attrs.field(
        default=None, metadata=setting(kind, meaning, default=_OF_CONNECTIONS)
    )
    return found


@attrs.frozen(kw_only=True, field_transformer=checked)
class VhostSettings:
    """A virtual host: the users that may connect to a host name, and what they may do there."""

    hostname: str | None = attrs.field(
        default=None,
        metadata=setting(
            policy_kinds.host_name(),
            "The host name in the open of its peers; empty for peers that give none. With "
            "enableVhostNamePatterns, a pattern of names, in which * stands for one part of a name "
            "and # for any number.",
            default="none; it is required",
            required=True,
        ),
    )
    aliases: tuple[str, ...] = attrs.field(
        default=(),
        metadata=setting(policy_kinds.host_names(), "More host names of this virtual host."),
    )
    max_connections: int = attrs.field(
        default=MOST_CONNECTIONS,
        metadata=setting(_CONNECTIONS, "Maximum number of its connections at a time."),
    )
    max_connections_per_user: int = attrs.field(
        default=MOST_CONNECTIONS,
        metadata=setting(_CONNECTIONS, "Maximum number of connections of one user at a time."),
    )
    max_connections_per_host: int = attrs.field(
        default=MOST_CONNECTIONS,
        metadata=setting(_CONNECTIONS, "Maximum number of connections from one host at a time."),
    )
    max_sessions: int | None = _shared(
        _SESSIONS, "Maximum number of sessions on all its connections."
    )
    max_sessions_per_user: int | None = _shared(
        _SESSIONS, "Maximum number of sessions on all connections of one user."
    )
    max_sessions_per_host: int | None = _shared(
        _SESSIONS, "Maximum number of sessions on all connections from one host."
    )
    max_links: int | None = _shared(
        _PEER_LINKS, "Maximum number of links that peers have attached on all its connections."
    )
    max_links_per_user: int | None = _shared(
        _PEER_LINKS,
        "Maximum number of links that peers have attached on all connections of one user.",
    )
    max_links_per_host: int | None = _shared(
        _PEER_LINKS,
        "Maximum number of links that peers have attached on all connections from one host.",
    )
    max_state_bytes: int | None = _shared(
        _STATE,
        "Maximum bytes of state (sessions, links, names) for all its connections.",
    )
    max_state_bytes_per_user: int | None = _shared(
        _STATE,
        "Maximum bytes of state (sessions, links, names) for all connections of one user.",
    )
    max_state_bytes_per_host: int | None = _shared(
        _STATE,
        "Maximum bytes of state (sessions, links, names) for all connections from one host.",
    )
    max_message_size: int | None = attrs.field(
        default=None,
        metadata=setting(
            _BYTES,
            "Maximum size of a message that its peers may send.",
            default="that of the policy",
        ),
    )
    allow_unknown_user: bool = attrs.field(
        default=False,
        metadata=setting(
            kinds.flag(),
            "Whether users that are in no group may connect; they are in the group "
            f"{DEFAULT_GROUP}.",
        ),
    )
    groups: Mapping[str, VhostGroupSettings] = attrs.field(
        factory=dict,
        metadata=setting(
            _groups(),
            "The groups of users, by name, each a table such as [vhost.groups.NAME].",
            default="none",
        ),
    )

    @property
    def name(self) -> str | None:
        """Return the host name, which is the virtual host's name in management."""
        return self.hostname


@attrs.frozen(kw_only=True, field_transformer=checked)
class PolicySettings:
    """Whether peers need a virtual host, and what applies to all virtual hosts."""

    enable_vhost_policy: bool = attrs.field(
        default=False,
        metadata=setting(
            kinds.flag(),
            "Whether every peer except other routers needs a virtual host that admits it. If not, "
            "peers may use every address.",
        ),
    )
    max_connections: int = attrs.field(
        default=MOST_CONNECTIONS,
        metadata=setting(
            _CONNECTIONS,
            "Maximum number of open connections of peers that are not routers, even without "
            "enableVhostPolicy.",
        ),
    )
    max_message_size: int = attrs.field(
        default=0,
        metadata=setting(_BYTES, "Maximum size of a message that peers of any vhost may send."),
    )
    default_vhost: str = attrs.field(
        default="$default",
        metadata=setting(
            kinds.text(255, spaces=False),
            "The virtual host, if it exists, for peers whose host name belongs to no other.",
        ),
    )
    enable_vhost_name_patterns: bool = attrs.field(
        default=False,
        metadata=setting(
            kinds.flag(), "Whether the host names and aliases of virtual hosts are patterns."
        ),
    )
