"""EXPLAIN: what happens to messages that a user sends to an address or receives from it.

Nothing is changed: asking about an address does not bring it into use, and no redirect is counted.
`router.core.diagnosis.blocking` finds out why no messages flow. This module adds which listeners
admit the user, which rule applies to the address, and which clients use the address.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Final, TypedDict, TypeVar

import attrs

from router.config.listeners import ListenerSettings
from router.core.addresses.related import receiving_addresses, served_by
from router.core.addresses.rules import TREATMENT_NAMES, AddressRule
from router.core.addresses.table import address_name
from router.core.diagnosis.blocking import (
    MEANINGS,
    AddressState,
    Reason,
    Survey,
    blocked_reason,
    describe_receiver_reason,
    receivers_for,
)
from router.core.model.address import (
    CLOSEST,
    HERE,
    MULTICAST,
    OWN_TREE,
    UNAVAILABLE,
    Address,
    Consumer,
    Producer,
)
from router.core.model.counters import Counters
from router.core.routers import router_traffic
from router.core.routers.membership import ROLES
from router.engine.link import Link
from router.engine.naming import link_identity
from router.management.explain_auto_links import auto_links_at, describe_auto_links, reasons_of
from router.management.explain_link_route import explain_link_route
from router.management.explain_network import (
    explain_network,
    remote_router_of,
    route_of,
    stand_in_address,
)
from router.management.explain_policy import (
    PolicyAnswer,
    explain_policy,
    peer_in_question,
    redirect_reason,
)
from router.management.explain_stuck import explain_stuck
from router.management.requests import BAD_REQUEST, AnswerMap, Refused, Request
from router.management.views import RouterView

SEND: Final = "send"
RECEIVE: Final = "receive"
# Maximum number of links that are listed.
MAX_LINKS: Final = 100
MAX_ADDRESS: Final = 2048

# in addition to the reasons of `router.core.diagnosis.blocking`, which concern existing links
NO_SENDER: Final = {
    "reason": "no_sender",
    "text": "no link sends to the address; senders without an address may still send to it",
}
# reasons that a missing auto-link may explain
_NOBODY_THERE: Final = frozenset((str(Reason.NO_CONSUMER), NO_SENDER["reason"]))

T = TypeVar("T")


class Flow(TypedDict):
    """Part of an answer to EXPLAIN: why messages flow or not."""

    reasons: list[dict[str, str]]
    senders: list[AnswerMap]
    senderCount: int
    toFallback: bool
    destinations: list[AnswerMap]
    destinationCount: int
    waiting: int
    room: int
    creditHeld: int
    counters: dict[str, int]
    stuckReceivers: AnswerMap | None
    ownLinks: list[AnswerMap]


@attrs.frozen
class Question:
    """Question about an address in an EXPLAIN request; `user` is None for an anonymous user."""

    direction: str
    address: str
    user: str | None = None
    vhost: str | None = None
    host: str | None = None

    @property
    def sends(self) -> bool:
        """Return whether the user wants to send, not to receive."""
        return self.direction == SEND


def question_of(request: Request) -> Question:
    """Return the question in a request; raise Refused if the request's properties are invalid."""
    direction, address = request.text("direction"), request.text("address")
    if direction not in (SEND, RECEIVE):
        raise Refused(BAD_REQUEST, f"direction must be {SEND} or {RECEIVE}")
    if not address or len(address) > MAX_ADDRESS or not address_name(address):
        raise Refused(BAD_REQUEST, f"address must be text of 1 to {MAX_ADDRESS} characters")
    user, vhost, host = map(request.text, ("user", "vhost", "host"))
    return Question(direction, address, user, vhost, host)


def explain(router: RouterView, request: Request) -> AnswerMap:
    """Return the answer to EXPLAIN, as a map."""
    question = question_of(request)
    table = router.observed.table
    listeners = _client_listeners(router)
    admitting = [each for each in listeners if _listener(each, question.user)["admits"]]
    peer = peer_in_question(question.user, question.host, question.vhost)
    decided = explain_policy(router, admitting, peer, question.direction, question.address)
    name = decided.address
    rule = table.rule_of(name)
    treatment = table.treatment(name)
    phase = table.phase_of(name, is_sender=question.sends)
    address = table.in_use(name, phase) or table.in_use(table.own_name(name))
    told: AnswerMap = {
        "direction": question.direction,
        "user": question.user,
        "vhost": question.vhost,
        "host": question.host,
        "address": name,
        "tenant": decided.tenant,
        "router": router.id,
        "policy": decided.facts,
        "listeners": [
            _listener(each, question.user)
            for each in router.configuration.listeners
            if each.serves_amqp
        ],
        "phase": phase,
        "rule": None if rule is None else _rule(rule),
        "distribution": TREATMENT_NAMES[treatment if address is None else address.treatment],
        **route_of(router, ()),
        "inUse": address is not None,
        "isDynamic": address is not None and address.is_dynamic,
        "isOwnNode": table.is_own_node(name),
    }
    # link routes of tenants have the address as the router knows it
    asked = question.address if decided.tenant is None else name
    link_route = router.observed.forwarder.link_routes.find(asked, is_sender=question.sends)
    told["linkRoute"] = None
    if link_route is not None:
        # the treatment does not matter: the router does not terminate these links
        treatment = CLOSEST
    refusal = _refusal(router, question, decided, treatment, address is not None)
    if decided.refusal is not None and (refusal is None or refusal["reason"] != "not_admitted"):
        refusal = decided.refusal
    if refusal is not None:
        return {**told, "allowed": False, "flows": False, "reasons": [refusal]}
    if link_route is not None:
        return {**told, **explain_link_route(router, link_route, asked)}
    survey = Survey(router.observed.forwarder)
    chosen = [] if address is None else _next(survey, address)
    told |= route_of(router, chosen)
    flow = _flow(survey, question, address, chosen)
    place = (
        stand_in_address(router, name, treatment, phase) if address is None else served_by(address)
    )
    beyond = explain_network(router, place, chosen)
    told["network"] = beyond.facts
    if question.sends and beyond.reasons and _is_nobody(flow["reasons"]):
        flow["reasons"] = list(beyond.reasons)
    auto_links = auto_links_at(router, name, phase)
    told["autoLinks"] = describe_auto_links(auto_links)
    if any(each["reason"] in _NOBODY_THERE for each in flow["reasons"]):
        flow["reasons"] += reasons_of(auto_links, sends=question.sends)
    return {**told, "allowed": True, "flows": not flow["reasons"], **flow}


def _is_nobody(reasons: list[dict[str, str]]) -> bool:
    """Return whether the only reason is that this router has no receiver for the address."""
    return [each["reason"] for each in reasons] == [str(Reason.NO_CONSUMER)]


# Admission and refusal.


def _listener(listener: ListenerSettings, user: str | None) -> AnswerMap:
    """Describe a listener, and whether it admits a user according to its configuration."""
    admits, text = True, "the peer may stay anonymous"
    logins = [each for each in listener.sasl_mechanisms if each != "ANONYMOUS"]
    if listener.role in ROLES:
        admits, text = False, "it is for other routers only"
    elif user is not None and listener.authentication_plugin is not None:
        text = f"the plugin {listener.authentication_plugin} must recognize the user"
    elif user is not None and not logins:
        admits, text = False, "users cannot authenticate: only ANONYMOUS is offered"
    elif user is not None:
        text = f"the user must authenticate with {' or '.join(logins)}"
    elif listener.authenticate_peer:
        admits, text = False, "peers must authenticate (authenticatePeer)"
    return {
        "name": listener.name,
        "role": listener.role,
        "saslMechanisms": " ".join(listener.sasl_mechanisms),
        "authenticatePeer": listener.authenticate_peer,
        "management": listener.management,
        "admits": admits,
        "text": text,
    }


def _client_listeners(router: RouterView) -> list[ListenerSettings]:
    """Return the listeners for clients."""
    listeners = router.configuration.listeners
    return [each for each in listeners if each.serves_amqp and each.role not in ROLES]


def _rule(rule: AddressRule) -> AnswerMap:
    return {
        "kind": "prefix" if rule.is_prefix else "pattern",
        "pattern": rule.pattern,
        "distribution": rule.treatment,
        "redeliver": rule.redelivers,
        "priority": rule.priority,
        "ingressPhase": rule.ingress_phase,
        "egressPhase": rule.egress_phase,
        "enableFallback": rule.fallback,
        "deadLetterAddress": rule.dead_letter,
        "stuckReceiver": "drop" if rule.drop_after_s else "wait",
        "stuckReceiverTimeoutSeconds": rule.drop_after_s or None,
    }


def _refusal(
    router: RouterView, question: Question, decided: PolicyAnswer, treatment: int, is_used: bool
) -> dict[str, str] | None:
    """Return why the router would refuse the connection or the link; None if it would not."""
    table = router.observed.table
    # without listeners for clients, the clients connect to other routers
    listeners = _client_listeners(router)
    if listeners and not any(_listener(each, question.user)["admits"] for each in listeners):
        return {"reason": "not_admitted", "text": "no listener admits the user"}
    redirected = redirect_reason(table, question.vhost, decided, is_sender=question.sends)
    if redirected is not None:
        return redirected
    if treatment == UNAVAILABLE and not is_used:
        why = "names that begin with $ are reserved for services, and there is no such service here"
        if not decided.address.startswith("$") or table.rule_of(decided.address) is not None:
            why = "its distribution is unavailable"
        return {"reason": "unavailable", "text": f"{why}: links are refused with amqp:not-found"}
    return None


def _reason(reason: Reason) -> dict[str, str]:
    return {"reason": str(reason), "text": MEANINGS[reason]}


# The other end.


def _flow(
    survey: Survey, question: Question, address: Address | None, chosen: list[Consumer]
) -> Flow:
    """Return why messages flow or not, with the facts behind the answer."""
    if address is None:
        return {
            "reasons": [_reason(Reason.NO_CONSUMER) if question.sends else NO_SENDER],
            "senders": [],
            "senderCount": 0,
            "toFallback": False,
            "destinations": [],
            "destinationCount": 0,
            "waiting": 0,
            "room": 0,
            "creditHeld": 0,
            "counters": {},
            "stuckReceivers": None,
            "ownLinks": [],
        }
    state = survey.address(address)
    place = served_by(address)
    found = receiving_addresses(address)
    consumers = [each for one in found for each in one.consumers] + list(address.resuming)
    theirs: Sequence[Producer | Consumer] = address.producers if question.sends else consumers
    own = [each.link for each in theirs if question.user is not None and _is_of(each, question)]
    reasons = _of_sending(survey, state) if question.sends else _of_receiving(survey, address, own)
    return {
        "reasons": reasons,
        "senders": [_sender(survey, each) for each in _some(address.producers)],
        "senderCount": len(address.producers),
        "toFallback": place is not address,
        "destinations": [_destination(each, chosen) for each in _some(consumers)],
        "destinationCount": len(consumers),
        "waiting": state.waiting,
        "room": state.room,
        "creditHeld": state.held,
        "counters": _counters(router_traffic.total_counters(address)),
        "stuckReceivers": explain_stuck(found, survey.forwarder.turn.now),
        "ownLinks": [_own(survey, link) for link in _some(own)],
    }


def _of_sending(survey: Survey, state: AddressState) -> list[dict[str, str]]:
    """Return the reasons that would hold back messages sent to an address now."""
    reasons = [state.flow_reason, state.credit_reason]
    if survey.forwarder.turn.is_pressed:
        reasons.append(Reason.MEMORY_FULL)
    return [
        {"reason": str(each), "text": state.describe(each)}
        for each in dict.fromkeys(reasons)
        if each is not None
    ]


def _of_receiving(survey: Survey, address: Address, own: Sequence[Link]) -> list[dict[str, str]]:
    """Return why no messages are received, [] if they can be; `own` has the user's receivers.

    Possible reasons: the address has no sender, all receivers of the user are blocked, or all
    senders are blocked.
    """
    if not address.producers:
        return [NO_SENDER]
    for links in (own, [each.link for each in address.producers]):
        reasons = {survey.link(each): survey.describe(each) for each in links}
        if reasons and None not in reasons:
            return [{"reason": str(reason), "text": text or ""} for reason, text in reasons.items()]
    return []


def _some(links: Iterable[T]) -> Iterable[T]:
    return itertools.islice(links, MAX_LINKS)


def _next(survey: Survey, address: Address) -> list[Consumer]:
    """Return the consumers that would get the next small message sent at this router."""
    return [each for one in receiving_addresses(address) for each in _chosen(survey, one)]


def _chosen(survey: Survey, address: Address) -> list[Consumer]:
    """Return the consumers of one address that would get its next small message.

    For a multicast address these are all consumers that can take the message, otherwise at most
    one.
    """
    if address.treatment == MULTICAST:
        receivers = receivers_for(address, HERE, OWN_TREE)
        return [each for each in receivers if blocked_reason(each) is None]
    rotation = address.rotation
    if address.remote_ends:
        consumer = survey.forwarder.distribution.choose_across(address, 0, HERE, 0)
    else:
        consumer = None if address.waiting else survey.forwarder.distribution.choose(address, 0)
    # restore whose turn it is: no message has been sent
    address.rotation = rotation
    return [] if consumer is None else [consumer]


def _place(link: Link) -> AnswerMap:
    """Return the properties that identify a link."""
    connection = link.session.connection
    opened = connection.remote_open
    told = {"connection": str(connection.number), "link": link_identity(link)}
    if connection.settings.is_own:
        # a peer that knew its container-id could steal its links
        return {**told, "linkName": None, "container": None, "host": None, "user": None}
    return {
        **told,
        "linkName": link.name,
        "container": None if opened is None else str(opened.container_id),
        "host": connection.name,
        "user": connection.user,
    }


def _is_of(end: Producer | Consumer, question: Question) -> bool:
    """Return whether a producer or consumer belongs to the user that the question is about."""
    return bool(end.link.session.connection.user == question.user)


def _destination(consumer: Consumer, chosen: list[Consumer]) -> AnswerMap:
    link = consumer.link
    reason = blocked_reason(consumer)
    return {
        **_place(link),
        "credit": link.credit,
        "window": link.session.remote_incoming_window,
        "unsettled": link.unsettled,
        "waiting": len(consumer.waiting) if consumer.address.treatment == MULTICAST else 0,
        "eligible": reason is None,
        "chosen": consumer in chosen,
        **remote_router_of(consumer),
        **_why(reason, None if reason is None else describe_receiver_reason(link, reason)),
    }


def _sender(survey: Survey, producer: Producer) -> AnswerMap:
    link = producer.link
    return {
        **_place(link),
        "credit": link.credit,
        "capacity": producer.capacity,
        "unsettled": link.unsettled,
        **_why(survey.link(link), survey.describe(link)),
    }


def _own(survey: Survey, link: Link) -> AnswerMap:
    """Describe a link of the user that the question is about."""
    return {
        **_place(link),
        "credit": link.credit,
        "unsettled": link.unsettled,
        **_why(survey.link(link), survey.describe(link)),
    }


def _why(reason: Reason | None, text: str | None) -> dict[str, str | None]:
    return {"reason": None if reason is None else str(reason), "text": text}


def _counters(counters: Counters) -> dict[str, int]:
    """Return the counters of the address since it came into use."""
    return {
        "ingress": router_traffic.entered(counters),
        "egress": router_traffic.left(counters),
        "fromRouters": counters.from_routers,
        "toRouters": counters.to_routers,
        "accepted": counters.accepted,
        "rejected": counters.rejected,
        "released": counters.released,
        "modified": counters.modified,
        "redelivered": counters.redelivered,
        "redirectedToFallback": counters.redirected,
        "expired": counters.expired,
        "noDestination": counters.no_destination,
        "droppedPresettled": counters.dropped_presettled,
        "shed": counters.shed,
        "malformed": counters.malformed,
    }
