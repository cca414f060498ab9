"""Views of `trioute stat` about the policy: vhosts, their groups, and what they refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from router.cli import columns
from router.cli.columns import View
from router.cli.rates import Entity


def _users(stats: Entity) -> str | None:
    """Return the users of a vhost as text, each with the number of its listed connections."""
    users = stats.get("perUserState")
    if not isinstance(users, dict) or not users:
        return None
    return ", ".join(f"{user} ({len(names)})" for user, names in users.items())


def _both(listed: str, pattern: str) -> Callable[[Entity], object]:
    """Return a function that reads the one of two attributes that a group has."""
    return lambda group: group.get(listed) or group.get(pattern)


VHOSTS: Final = View(
    "vhosts",
    "Vhosts",
    "vhost",
    (
        columns.text("hostname", "hostname", rank=0),
        columns.text("aliases", "aliases", rank=3),
        columns.count("connections", "maxConnections"),
        columns.count("per user", "maxConnectionsPerUser"),
        columns.count("per host", "maxConnectionsPerHost"),
        columns.octets("message size", "maxMessageSize", rank=2),
        columns.count("sessions", "maxSessions", rank=4),
        columns.count("links", "maxLinks", rank=4),
        columns.octets("state", "maxStateBytes", rank=4),
        columns.count("sessions per user", "maxSessionsPerUser", rank=6, detail=True),
        columns.count("links per user", "maxLinksPerUser", rank=6, detail=True),
        columns.octets("state per user", "maxStateBytesPerUser", rank=6, detail=True),
        columns.count("sessions per host", "maxSessionsPerHost", rank=6, detail=True),
        columns.count("links per host", "maxLinksPerHost", rank=6, detail=True),
        columns.octets("state per host", "maxStateBytesPerHost", rank=6, detail=True),
        columns.word("unknown users", "allowUnknownUser"),
        columns.text(
            "groups", "groups", compute=lambda vhost: ", ".join(vhost.get("groups") or ())
        ),
    ),
    "There are no vhosts.",
    order=lambda entity: columns.text_order(entity.get("hostname")),
)

VHOST_GROUPS: Final = View(
    "vhostgroups",
    "Groups of vhosts",
    "vhostUserGroupSettings",
    (
        columns.text("vhost", "vhost", rank=0),
        columns.text("group", "group", rank=0),
        columns.text("users", "users", rank=2),
        columns.text("hosts", "remoteHosts", rank=2),
        columns.text("send to", "targets", compute=_both("targets", "targetPattern")),
        columns.text("receive from", "sources", compute=_both("sources", "sourcePattern")),
        columns.word("anonymous senders", "allowAnonymousSender", rank=4),
        columns.word("dynamic", "allowDynamicSource", rank=4),
        columns.word("management", "management", rank=4),
        columns.count("per user", "maxConnectionsPerUser", rank=6, detail=True),
        columns.count("per host", "maxConnectionsPerHost", rank=6, detail=True),
        columns.octets("message size", "maxMessageSize", rank=6, detail=True),
        columns.octets("frame size", "maxFrameSize", rank=6, detail=True),
        columns.octets("window", "maxSessionWindow", rank=6, detail=True),
        columns.count("sessions", "maxSessions", rank=6, detail=True),
        columns.count("senders", "maxSenders", rank=6, detail=True),
        columns.count("receivers", "maxReceivers", rank=6, detail=True),
        columns.word("user-id proxy", "allowUserIdProxy", rank=7, detail=True),
        columns.word("waypoints", "allowWaypointLinks", rank=7, detail=True),
        columns.word("fallback", "allowFallbackLinks", rank=7, detail=True),
        columns.word("link routes", "allowDynamicLinkRoutes", rank=7, detail=True),
        columns.word("admin status", "allowAdminStatusUpdate", rank=7, detail=True),
        columns.text("target pattern", "targetPattern", rank=8, detail=True),
        columns.text("source pattern", "sourcePattern", rank=8, detail=True),
    ),
    "There are no vhosts with groups.",
)

_ALARMING: Final = columns.is_positive
VHOST_STATS: Final = View(
    "vhoststats",
    "Connections and refusals of vhosts",
    "vhostStats",
    (
        columns.text("hostname", "hostname", rank=0),
        columns.count("now", "connectionsCurrent"),
        columns.count("sessions", "sessionsCurrent", rank=4),
        columns.count("links", "linksCurrent", rank=4),
        columns.octets("state", "stateBytesCurrent", rank=4),
        columns.count("approved", "connectionsApproved"),
        columns.count("denied", "connectionsDenied", alarming=_ALARMING),
        columns.count("sessions denied", "sessionDenied", rank=3, alarming=_ALARMING),
        columns.count("state denied", "stateDenied", rank=3, alarming=_ALARMING),
        columns.count("senders denied", "senderDenied", alarming=_ALARMING),
        columns.count("receivers denied", "receiverDenied", alarming=_ALARMING),
        columns.count("messages denied", "messageDenied", rank=3, alarming=_ALARMING),
        columns.count("too large", "maxMessageSizeDenied", rank=3, alarming=_ALARMING),
        columns.count("dynamic", "dynamicSrcDenied", rank=6, detail=True),
        columns.count("anonymous", "anonymousSenderDenied", rank=6, detail=True),
        columns.count("sources", "linkSourceDenied", rank=6, detail=True),
        columns.count("targets", "linkTargetDenied", rank=6, detail=True),
        columns.text("users", "perUserState", rank=2, compute=_users),
    ),
    "There are no vhosts.",
    order=lambda entity: columns.text_order(entity.get("hostname")),
    counters=(
        ("approved/s", "connectionsApproved"),
        ("denied/s", "connectionsDenied"),
        ("senders/s", "senderDenied"),
        ("receivers/s", "receiverDenied"),
    ),
)

POLICY: Final = View(
    "policy",
    "Policy",
    "policy",
    (
        columns.count("max connections", "maxConnections"),
        columns.octets("max message size", "maxMessageSize"),
        columns.word("vhost policy", "enableVhostPolicy"),
        columns.word("vhost patterns", "enableVhostNamePatterns"),
        columns.text("default vhost", "defaultVhost"),
        columns.count("connections now", "connectionsCurrent"),
        columns.count("connections processed", "connectionsProcessed"),
        columns.count("connections denied", "connectionsDenied", alarming=_ALARMING),
        columns.count("links denied", "linksDenied", alarming=_ALARMING),
        columns.count("messages denied", "messagesDenied", alarming=_ALARMING),
        columns.count("messages too large", "maxMessageSizeDenied", alarming=_ALARMING),
        columns.count("denials", "totalDenials", alarming=_ALARMING),
    ),
    "The router reports no policy.",
    is_sheet=True,
)
