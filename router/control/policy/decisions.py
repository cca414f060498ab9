"""Decisions of a policy about a user without a connection, for tools that try a policy.

A router decides in the same way (`gate`), but it also counts connections and links. Here there are
none yet, so that the only limit that refuses is 0.
"""

from __future__ import annotations

from typing import Final

import attrs

from router.control.policy.policy import Group, Judgement, Peer, Policy, Vhost
from router.control.policy.vhost_rule import Denial, VhostRule
from router.core.addresses.access import Access, LinkRequest
from router.core.addresses.table import address_name
from router.core.routers.names import COORDINATOR

OPEN: Final = "open"
SEND: Final = "send"
RECEIVE: Final = "receive"
ANONYMOUS_SENDER: Final = "anonymous"
DYNAMIC: Final = "dynamic"
TRANSACTION: Final = "transaction"
WITH_ADDRESS: Final = (SEND, RECEIVE)
ACTIONS: Final = (OPEN, SEND, RECEIVE, ANONYMOUS_SENDER, DYNAMIC, TRANSACTION)
DISABLED: Final = "enableVhostPolicy is false, so that peers may do everything"
_PATTERNS: Final = {"targets": "targetPattern", "sources": "sourcePattern"}


@attrs.frozen
class Question:
    """Question about what a user may do: one of `ACTIONS`, with an address for `WITH_ADDRESS`."""

    action: str
    address: str = ""

    def __str__(self) -> str:
        return f"{self.action} {self.address}".rstrip()


@attrs.frozen
class Decision:
    """Answer to a question, with the reason.

    `vhost`, `group` and `attribute` are the names of those that decided, and `entry` is the entry
    of the attribute that matched. Each is empty if there is none.
    """

    is_allowed: bool
    reason: str
    vhost: str = ""
    group: str = ""
    attribute: str = ""
    entry: str = ""


def decide(policy: Policy, peer: Peer, question: Question) -> Decision:
    """Return whether a peer may do what a question asks for; an empty host stands for any."""
    if not policy.settings.enable_vhost_policy:
        return Decision(True, DISABLED, attribute="enableVhostPolicy")
    return decide_for(policy, judge(policy, peer), peer, question)


def judge(policy: Policy, peer: Peer) -> Judgement:
    """Return the virtual host and the group of a peer; remoteHosts admits an empty host."""
    judgement = policy.judge(peer)
    # a peer with a group can only be refused because of its host
    if judgement.group is not None and judgement.refusal and not peer.host:
        return attrs.evolve(judgement, refusal="")
    return judgement


def decide_for(policy: Policy, judgement: Judgement, peer: Peer, question: Question) -> Decision:
    """Return the answer to a question about a peer that the policy has judged."""
    vhost, group = judgement.vhost, judgement.group
    names = ("" if vhost is None else vhost.name, "" if group is None else group.name)
    if judgement.refusal or vhost is None or group is None:
        deciding = "hostname" if vhost is None else "users" if group is None else "remoteHosts"
        return Decision(False, judgement.refusal, *names, attribute=deciding)
    limit = _zero_limit(policy, vhost, group)
    if limit:
        return Decision(False, f"{limit} is 0", *names, attribute=limit)
    if question.action == OPEN:
        return _opened(peer, vhost, group)
    request = _request(question)
    denial = VhostRule(group, peer.user, lambda _: None).judge(Access(), request)
    if denial is not None:
        attribute = _as_configured(denial.attribute, group)
        reason = _reason(denial, attribute, request)
        return Decision(False, reason, *names, attribute=attribute)
    return _allowed(peer, names, group, request)


def _opened(peer: Peer, vhost: Vhost, group: Group) -> Decision:
    if peer.user in vhost.group_names:
        return Decision(True, "the user is listed", vhost.name, group.name, "users", peer.user)
    if group.name in peer.groups:
        reason = "the authentication plugin says that the user is in the group"
        return Decision(True, reason, vhost.name, group.name, "groups", group.name)
    reason = "the vhost allows unknown users"
    return Decision(True, reason, vhost.name, group.name, "allowUnknownUser")


def _allowed(peer: Peer, names: tuple[str, str], group: Group, request: LinkRequest) -> Decision:
    settings = group.settings
    name = COORDINATOR if request.is_coordinator else request.address
    entry = None
    if name is not None:
        entry = group.entry_for(name, peer.user, is_sender=request.is_sender)
    if entry is not None:
        attribute = _as_configured("targets" if request.is_sender else "sources", group)
        return Decision(True, f"{attribute} has {entry}", *names, attribute, entry)
    attribute = "allowDynamicSource" if request.is_dynamic else "allowAnonymousSender"
    reason = f"{attribute} is true"
    has_targets = settings.targets or settings.target_pattern
    is_anonymous = attribute == "allowAnonymousSender" and not request.is_coordinator
    if is_anonymous and not has_targets:
        reason += ", but there is no address in targets, so that every message is rejected"
    return Decision(True, reason, *names, attribute)


def _zero_limit(policy: Policy, vhost: Vhost, group: Group) -> str:
    """Return the name of a limit on connections that is 0, or an empty text."""
    settings, mine = vhost.settings, group.settings
    per_user, per_host = mine.max_connections_per_user, mine.max_connections_per_host
    limits = {
        "maxConnections": min(policy.settings.max_connections, settings.max_connections),
        "maxConnectionsPerUser": settings.max_connections_per_user
        if per_user is None
        else per_user,
        "maxConnectionsPerHost": settings.max_connections_per_host
        if per_host is None
        else per_host,
    }
    return next((name for name, limit in limits.items() if limit == 0), "")


def _request(question: Question) -> LinkRequest:
    if question.action == ANONYMOUS_SENDER:
        return LinkRequest(True, None)
    if question.action == DYNAMIC:
        return LinkRequest(False, None, is_dynamic=True)
    if question.action == TRANSACTION:
        return LinkRequest(True, None, is_coordinator=True)
    return LinkRequest(question.action == SEND, address_name(question.address))


def _as_configured(attribute: str, group: Group) -> str:
    """Return the attribute that the group has, such as `targetPattern` in place of `targets`."""
    settings = group.settings
    has_patterns = {"targets": settings.target_pattern, "sources": settings.source_pattern}
    return _PATTERNS[attribute] if has_patterns.get(attribute) else attribute


def _reason(denial: Denial, attribute: str, request: LinkRequest) -> str:
    if attribute not in (*_PATTERNS, *_PATTERNS.values()):
        return denial.reason
    name = COORDINATOR if request.is_coordinator else request.address
    if not name:
        return "no entry allows the empty address"
    return f"{attribute} has no entry that allows {name}"
