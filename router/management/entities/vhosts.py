"""Entity types of vhosts: their settings, groups, and counts of connections and refusals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

import attrs

from router.config.vhosts import VhostGroupSettings, VhostSettings
from router.control.policy.counts import VhostCounts
from router.management.entities.attributes import AttributesOf
from router.management.entities.configured import IDENTIFIES_ENTITY, OPERATIONS
from router.management.schema import (
    CONFIGURATION,
    OPERATIONAL,
    Attribute,
    EntityType,
    Setting,
    configured_entity,
    fields_attributes,
    settings_attributes,
    settings_of,
)
from router.management.views import RouterView

# Maximum numbers in the lists of a vhost: of users or hosts, and of connections of each.
MOST_LISTED: Final = 1000
MOST_OF_EACH: Final = 100
# Connections or groups that are examined in one step.
ITEMS_PER_STEP: Final = 100
_ENTITY: Final = configured_entity("vhost")
_HOSTNAME: Final = attrs.fields_dict(VhostSettings)["hostname"]


def _name(settings: object) -> str:
    # as in Dispatch
    return f"vhost/{settings_of(settings).hostname}"


def _vhost_attributes() -> Iterator[Attribute[object]]:
    identifies = Setting(_HOSTNAME, IDENTIFIES_ENTITY)
    name, *others = AttributesOf[object].identified(_name, _name, "vhost")
    yield attrs.evolve(name, meaning=f"Its name, vhost/ and its {_HOSTNAME.name}.")
    yield from others
    yield Attribute("id", "string", "Its host name.", lambda vhost: settings_of(vhost).hostname)
    for each in settings_attributes(_ENTITY):
        yield attrs.evolve(each, setting=identifies) if each.name == "hostname" else each


VHOST: Final = EntityType[object](
    "vhost",
    "A vhost: the users that may connect to a host name, and what they may do there. The value of "
    "groups is a map from the names of groups to maps of the attributes of vhostUserGroupSettings.",
    CONFIGURATION,
    tuple(_vhost_attributes()),
    operations=OPERATIONS,
    entity=_ENTITY,
)


@attrs.frozen
class GroupView:
    """View of a group of a vhost."""

    vhost: str
    name: str
    settings: VhostGroupSettings


def _group_name(group: GroupView) -> str:
    return f"{group.vhost}::{group.name}"


def _group_attribute(attribute: Attribute[object]) -> Attribute[GroupView]:
    return Attribute(
        attribute.name,
        attribute.kind,
        attribute.meaning,
        lambda group: attribute.read(group.settings),
    )


_GROUPS: Final = AttributesOf[GroupView]()
VHOST_GROUP: Final = EntityType[GroupView](
    "vhostUserGroupSettings",
    "A group of users of a vhost, and what they may do. To change it, UPDATE groups of the vhost.",
    CONFIGURATION,
    (
        *_GROUPS.identified(_group_name, _group_name, "vhostUserGroupSettings"),
        Attribute("vhost", "string", "The host name of its vhost.", lambda g: g.vhost),
        Attribute("group", "string", "Its name within the vhost.", lambda g: g.name),
        *map(_group_attribute, fields_attributes(VhostGroupSettings)),
    ),
)


def vhost_groups(router: RouterView) -> Iterator[GroupView]:
    """Yield the groups of all vhosts."""
    for vhost in router.configuration.vhosts:
        for name, settings in vhost.groups.items():
            yield GroupView(str(vhost.hostname), name, settings)


@attrs.frozen
class VhostStatsView:
    """Counts of a vhost, and the names of its connections by user and by host."""

    name: str
    counts: VhostCounts
    by_user: Mapping[str, list[str]]
    by_host: Mapping[str, list[str]]


def vhost_stats(router: RouterView) -> Iterator[VhostStatsView | None]:
    """Yield the counts of each vhost; before them, None after each step of listing connections."""
    gate = router.gate
    if gate is None:
        return
    users: dict[str, dict[str, list[str]]] = {}
    hosts: dict[str, dict[str, list[str]]] = {}
    for count, (connection, admitted) in enumerate(list(gate.admitted.items()), 1):
        if admitted.vhost is not None:
            name = admitted.vhost.name
            _list(users.setdefault(name, {}), admitted.peer.user, connection.name)
            _list(hosts.setdefault(name, {}), admitted.peer.host, connection.name)
        if count % ITEMS_PER_STEP == 0:
            yield None
    for vhost in router.configuration.vhosts:
        name = str(vhost.hostname)
        counts = gate.counts.get(name) or VhostCounts()
        yield VhostStatsView(name, counts, users.get(name, {}), hosts.get(name, {}))


def _list(listed: dict[str, list[str]], key: str, name: str) -> None:
    """List a connection under its user or host, unless too many are listed already."""
    if key in listed or len(listed) < MOST_LISTED:
        names = listed.setdefault(key, [])
        if len(names) < MOST_OF_EACH:
            names.append(name)


_STATS: Final = AttributesOf[VhostStatsView]()


def _stats_name(view: VhostStatsView) -> str:
    return f"vhostStats/{view.name}"


def _counted(name: str) -> Callable[[VhostStatsView], object]:
    return lambda view: getattr(view.counts, name)


_COUNTS: Final = (
    ("connectionsApproved", "Connections that were allowed.", "approved"),
    ("connectionsDenied", "Connections that were refused.", "denied"),
    ("connectionsCurrent", "Connections that are open.", "current"),
    ("sessionsCurrent", "Sessions of these connections.", "sessions_current"),
    ("linksCurrent", "Links of these connections.", "links_current"),
    ("stateBytesCurrent", "Octets of state of these connections.", "state_current"),
    ("sessionDenied", "Sessions that were refused (maxSessions).", "sessions_denied"),
    ("stateDenied", "Sessions, links and others refused by maxStateBytes.", "state_denied"),
    ("senderDenied", "Refused links on which a peer wanted to send.", "senders_denied"),
    ("receiverDenied", "Refused links on which a peer wanted to receive.", "receivers_denied"),
    ("dynamicSrcDenied", "Links refused by allowDynamicSource.", "dynamic_sources_denied"),
    (
        "anonymousSenderDenied",
        "Links refused by allowAnonymousSender.",
        "anonymous_senders_denied",
    ),
    ("linkSourceDenied", "Links refused by sources or sourcePattern.", "sources_denied"),
    ("linkTargetDenied", "Links refused by targets or targetPattern.", "targets_denied"),
    ("messageDenied", "Messages of anonymous senders that were refused.", "messages_denied"),
    (
        "maxMessageSizeDenied",
        "Messages that were larger than maxMessageSize.",
        "large_messages_denied",
    ),
)
VHOST_STATS: Final = EntityType[VhostStatsView](
    "vhostStats",
    "Connections of a vhost, and what it refused since it was configured.",
    OPERATIONAL,
    (
        *_STATS.identified(_stats_name, _stats_name, "vhostStats"),
        Attribute("id", "string", "The host name of the vhost.", lambda view: view.name),
        Attribute("hostname", "string", "The host name of the vhost.", lambda view: view.name),
        *_STATS.integers((name, meaning, _counted(of)) for name, meaning, of in _COUNTS),
        Attribute(
            "perUserState",
            "map",
            f"The names of the open connections of each user: of up to {MOST_LISTED} users, and "
            f"up to {MOST_OF_EACH} of each.",
            lambda view: dict(view.by_user),
        ),
        Attribute(
            "perHostState",
            "map",
            f"The names of the open connections from each host: of up to {MOST_LISTED} hosts, and "
            f"up to {MOST_OF_EACH} of each.",
            lambda view: dict(view.by_host),
        ),
    ),
)
