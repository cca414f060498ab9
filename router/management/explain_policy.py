"""Part of EXPLAIN about the policy: whether a user may connect, and send or receive.

The counts of refusals do not change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from router.config.listeners import ListenerSettings
from router.control.policy.decisions import (
    OPEN,
    RECEIVE,
    SEND,
    Decision,
    Question,
    decide_for,
    judge,
)
from router.control.policy.gate import tenant_for
from router.control.policy.policy import Judgement, Peer
from router.core.addresses.link_origins import ANONYMOUS
from router.core.addresses.table import AddressTable, address_name
from router.core.addresses.tenants import Tenant
from router.errors import AmqpError
from router.management.requests import AnswerMap
from router.management.views import RouterView

NO_POLICY: Final = "no policy is configured: allowed"
_ACTIONS: Final = (OPEN, SEND, RECEIVE)


@attrs.frozen
class PolicyAnswer:
    """Part of an answer to EXPLAIN about the policy.

    `address` is the address as the router knows it; a client of a tenant knows it by another name.
    `refusal` is the reason why the user may not do what was asked; None if the user may.
    """

    facts: AnswerMap
    address: str
    tenant: str | None = None
    refusal: dict[str, str] | None = None


def explain_policy(
    router: RouterView,
    listeners: Sequence[ListenerSettings],
    peer: Peer,
    direction: str,
    address: str,
) -> PolicyAnswer:
    """Return what the running policy decides about a peer that connects to one of the listeners.

    An empty `peer.host` stands for any host.
    """
    peer = _with_policy_vhost(peer, listeners)
    gate = router.gate
    is_on = gate is not None and gate.policy.settings.enable_vhost_policy
    judgement = Judgement(None, None)
    refusal = None
    facts: AnswerMap = {"allowed": True, "text": NO_POLICY}
    name = router.observed.table.own_name(address_name(address))
    if gate is not None and is_on:
        judgement = judge(gate.policy, peer)
        decided = {
            action: decide_for(gate.policy, judgement, peer, Question(action, name))
            for action in _ACTIONS
        }
        asked = decided[OPEN] if not decided[OPEN].is_allowed else decided[direction]
        facts = {
            "allowed": asked.is_allowed,
            "text": _sentence(asked, peer),
            "vhost": asked.vhost or None,
            "group": asked.group or None,
            "decisions": {action: _as_map(each) for action, each in decided.items()},
        }
        if not asked.is_allowed:
            refusal = {"reason": "policy", "text": f"the policy refuses it: {asked.reason}"}
    tenant = tenant_for(peer, judgement) if _are_for_tenants(listeners) else None
    if tenant is None:
        return PolicyAnswer(facts, address_name(address), None, refusal)
    return _of_tenant(router, tenant, direction, PolicyAnswer(facts, address, None, refusal))


def redirect_reason(
    table: AddressTable, vhost: str | None, answer: PolicyAnswer, *, is_sender: bool
) -> dict[str, str] | None:
    """Return the redirect of the user's connection or of its links; None if there is none."""
    host = table.redirects.redirect_of_host(vhost)
    if host is not None:
        text = f"connections to {vhost} are sent to {host} (amqp:connection:redirect)"
        return {"reason": "connection_redirected", "text": text}
    tenant = None if answer.tenant is None else Tenant(answer.tenant)
    place = table.redirect_for(answer.address, is_sender=is_sender, tenant=tenant)
    if place is None:
        return None
    text = f"links to it are sent to {place} (amqp:link:redirect)"
    return {"reason": "link_redirected", "text": text}


def _of_tenant(
    router: RouterView, tenant: Tenant, direction: str, answer: PolicyAnswer
) -> PolicyAnswer:
    refusal = answer.refusal
    name = address_name(answer.address)
    try:
        name = tenant.inward(router.observed.table, answer.address, is_sender=direction == SEND)
    except AmqpError:
        text = f"the tenant {tenant.name} may not use this address"
        refusal = refusal or {"reason": "tenant", "text": text}
    return attrs.evolve(answer, address=name, tenant=tenant.name, refusal=refusal)


def _with_policy_vhost(peer: Peer, listeners: Sequence[ListenerSettings]) -> Peer:
    """Return the peer, with the policyVhost as its host name if all listeners have the same one."""
    fixed = {each.policy_vhost for each in listeners}
    (only,) = fixed if len(fixed) == 1 else (None,)
    return peer if only is None else attrs.evolve(peer, hostname=only)


def _are_for_tenants(listeners: Sequence[ListenerSettings]) -> bool:
    return bool(listeners) and all(each.multi_tenant for each in listeners)


def _sentence(decision: Decision, peer: Peer) -> str:
    where = f"vhost {decision.vhost}" if decision.vhost else "no vhost"
    where += f", group {decision.group}" if decision.group else ""
    hosts = "" if peer.host or not decision.group else "; from any host of its remoteHosts"
    verdict = "allowed" if decision.is_allowed else "refused"
    return f"{verdict}: {decision.reason} ({where}){hosts}"


def _as_map(decision: Decision) -> AnswerMap:
    return {
        "allowed": decision.is_allowed,
        "reason": decision.reason,
        "attribute": decision.attribute or None,
        "entry": decision.entry or None,
    }


def peer_in_question(user: str | None, host: str | None, hostname: str | None) -> Peer:
    """Return the peer that a question is about; without a user it is anonymous."""
    return Peer(hostname or "", user or ANONYMOUS, host or "")
