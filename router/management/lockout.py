"""Protection against lockout: refuse changes of the policy that would lock out the requester.

A change is examined if it is requested on a connection to which a policy can apply. It is refused
if the connection would be closed, or could request no more changes, unless the request has the
property `force`.
"""

from __future__ import annotations

from functools import partial
from typing import Final

import trio

from router.config.differences import StaleConfiguration
from router.config.model import Configuration
from router.config.vhosts import VhostGroupSettings
from router.control.policy.decisions import OPEN, SEND, Question, decide, judge
from router.control.policy.gate import peer_of
from router.control.policy.policy import Peer, Policy
from router.core.routers.names import MANAGEMENT_NODE
from router.management.requests import BAD_REQUEST, Refused, Request, flag
from router.management.views import RouterView

FORCE: Final = "force"
_ADVICE: Final = (
    "so that you could not undo the change from here; nothing was changed. To make the change "
    "nevertheless, request it with force (trioute apply --force)"
)


async def check_lockout(router: RouterView, request: Request, wanted: Configuration) -> None:
    """Raise Refused if a configuration would lock out the sender of a request.

    Raises StaleConfiguration if the configuration was changed meanwhile.
    """
    before = router.configuration
    is_same = wanted.policy is before.policy and wanted.vhosts is before.vhosts
    peer = None if is_same or flag(request, FORCE) else _peer(router, request)
    if peer is None:
        return
    # in a thread, because a policy with very many vhosts takes a while to build
    reason = await trio.to_thread.run_sync(partial(lockout_reason, before, wanted, peer))
    if router.configuration is not before:
        raise StaleConfiguration
    if reason:
        raise Refused(BAD_REQUEST, f"the new policy would lock you out: {reason}, {_ADVICE}")


def _peer(router: RouterView, request: Request) -> Peer | None:
    """Return the peer that sent a request; None if no policy can apply to it."""
    number = request.connection
    pump = None if number is None else router.observed.pumps.get(number)
    if pump is None or not pump.connection.settings.is_policed:
        return None
    connection = pump.connection
    admitted = None if router.gate is None else router.gate.admitted.get(connection)
    return peer_of(connection) if admitted is None else admitted.peer


def lockout_reason(before: Configuration, wanted: Configuration, peer: Peer) -> str:
    """Return why a peer could no longer manage the router with a new configuration.

    The text is empty if the peer could, if it could not before, or if the policy is the same.
    """
    if (wanted.policy, wanted.vhosts) == (before.policy, before.vhosts):
        return ""
    reason = _reason(wanted, peer)
    return "" if not reason or _reason(before, peer) else reason


def _reason(wanted: Configuration, peer: Peer) -> str:
    policy = Policy(wanted.policy, wanted.vhosts)
    for question in (Question(OPEN), Question(SEND, MANAGEMENT_NODE)):
        decision = decide(policy, peer, question)
        if not decision.is_allowed:
            what = "connect" if question.action == OPEN else f"send to {MANAGEMENT_NODE}"
            where = f" (vhost {decision.vhost}, group {decision.group})" if decision.group else ""
            return f"user {peer.user} may not {what}: {decision.reason}{where}"
    group = judge(policy, peer).group if wanted.policy.enable_vhost_policy else None
    return "" if group is None else _group_reason(peer.user, group.name, group.settings)


def _group_reason(user: str, name: str, group: VhostGroupSettings) -> str:
    if group.management in ("none", "read"):
        return f"management of the group {name} is {group.management}"
    if not (group.allow_dynamic_source or group.sources or group.source_pattern):
        return f"user {user} could not receive answers (sources and allowDynamicSource)"
    return ""
