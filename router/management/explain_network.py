"""EXPLAIN in a network: at which other routers an address has receivers, and the links to them.

Nothing is changed: if no link leads to a router yet, the answer says so.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Final, TypedDict

import attrs

from router.control.network.hops import Hops
from router.core.addresses.rules import TREATMENT_NAMES
from router.core.diagnosis.blocking import blocked_reason, describe_receiver_reason
from router.core.model.address import FALLBACK, FIRST_EDGE, MULTICAST, Address, Consumer
from router.core.network.branch_links import BranchLink, receiving
from router.core.network.far_ends import far_end_of
from router.core.network.network import Network
from router.core.network.out_links import OutLink
from router.core.routers.names import edge_key_in, key_at
from router.core.routers.unreachable import why_unreachable
from router.management.requests import AnswerMap
from router.management.views import RouterView

# Maximum number of routers in a list, and of routers named in a sentence.
MAX_LISTED: Final = 100
MAX_NAMED: Final = 3

NO_WAY: Final = "no_way"
NOT_ATTACHED: Final = "not_attached"
NO_UPLINK: Final = "no_uplink"
_NOBODY_SENDS: Final = "no link leads there yet: one is attached when a client sends"


class _Why(TypedDict):
    """Reason why no message goes to a router now; both fields are None if messages can go."""

    reason: str | None
    text: str | None


class _LinkAnswer(TypedDict):
    """State of a link to another router."""

    attached: bool
    credit: int
    unsettled: int
    chosen: bool


class _RouterAnswer(_LinkAnswer, _Why):
    """Router to which messages of an address that is not multicast may go."""

    router: str
    cost: int
    via: str
    way: list[str]
    connection: str | None
    distribution: str | None
    used: bool


class _BranchAnswer(_LinkAnswer, _Why):
    """Branch of a multicast tree that has receivers."""

    router: str
    routers: list[str]
    routerCount: int
    behind: int
    connection: str | None
    agreed: bool


class _UplinkAnswer(TypedDict):
    """Connection of an edge router to its network."""

    connection: str
    router: str
    used: bool
    text: str | None


@attrs.frozen
class NetworkExplanation:
    """Part of an explanation about other routers: where messages go, or why they do not.

    `facts` is None if the router is not part of a network.
    """

    facts: AnswerMap | None
    reasons: list[dict[str, str]]


@attrs.frozen
class _Asked:
    """Address that the question is about, or a stand-in for it if it is not in use."""

    router: RouterView
    address: Address
    chosen: list[Consumer]

    @property
    def network(self) -> Network:
        """Return the part of the core that serves the network."""
        return self.router.observed.forwarder.network

    @property
    def key(self) -> str:
        """Return the key by which routers announce the address to each other."""
        return edge_key_in(self.address.name) or key_at(self.address.name, self.address.phase)


def stand_in_address(router: RouterView, name: str, treatment: int, phase: int) -> Address:
    """Return a stand-in for an address that is not in use; it is not entered in any table.

    Its phase is FALLBACK if the address has a fallback, and other routers have receivers for the
    fallback only.
    """
    wanted = router.observed.forwarder.reach.wanted
    rule = router.observed.table.rule_of(name)
    has_fallback = rule is not None and rule.fallback and phase == 0
    if has_fallback and not wanted.get(key_at(name, 0)) and wanted.get(key_at(name, FALLBACK)):
        phase = FALLBACK
    return Address(name, treatment, phase=phase)


def explain_network(
    router: RouterView, address: Address, chosen: list[Consumer]
) -> NetworkExplanation:
    """Return to which other routers messages for an address go, or why they go to none.

    `chosen` has the consumers that would get the next message sent at this router.
    """
    asked = _Asked(router, address, chosen)
    network = asked.network
    if not network.is_on and network.edges is None:
        return NetworkExplanation(None, [])
    routers = _routers(asked) if network.is_on else []
    branches = _branches(asked) if network.is_on else []
    uplinks = [] if network.is_on else _uplinks(asked)
    told: AnswerMap = {
        "routers": routers[:MAX_LISTED],
        "routerCount": len(routers),
        "branches": branches[:MAX_LISTED],
        "branchCount": len(branches),
        "uplinks": uplinks[:MAX_LISTED],
    }
    return NetworkExplanation(told, _reasons(asked, routers, branches, uplinks))


def remote_router_of(consumer: Consumer) -> AnswerMap:
    """Return the router that a consumer's link leads to, and the cost; both None for a client."""
    far = far_end_of(consumer.link)
    if far is None:
        return {"router": None, "cost": None, "isEdge": False}
    is_edge = consumer.side >= FIRST_EDGE
    return {"router": far.router, "cost": int(consumer.cost), "isEdge": is_edge}


def hops_of(router: RouterView) -> Hops | None:
    """Return the known routes to other interior routers; None if this is not an interior router."""
    network = None if router.control is None else router.control.network
    protocol = None if network is None else network.protocol
    return None if protocol is None else Hops(protocol.graph, protocol.me, protocol.paths)


def route_of(router: RouterView, chosen: Iterable[Consumer]) -> AnswerMap:
    """Return the next message's route and the route's cost; `chosen` would get the message.

    If the message does not leave this router, the route has only this router, and the cost is 0.
    """
    hops = hops_of(router)
    for consumer in chosen:
        far = far_end_of(consumer.link)
        if far is not None and not far.is_branch:
            way = [] if hops is None else hops.to(far.router)
            if way[1:2] != [far.via]:
                # the route has changed since the link was attached
                way = [router.id, far.via] + ([] if far.via == far.router else [far.router])
            return {"route": way, "cost": int(consumer.cost)}
    return {"route": [router.id], "cost": 0}


def _routers(asked: _Asked) -> list[_RouterAnswer]:
    """Return the routers to which messages may go, the nearest first; empty for a multicast."""
    address, network = asked.address, asked.network
    if address.treatment == MULTICAST:
        return []
    reach, outward = network.reach, network.outward
    destinations = outward.destinations(address)
    treatments = {router: interest.treatment for _, router, interest in reach.places(asked.key)}
    hops = hops_of(asked.router)
    found: list[_RouterAnswer] = []
    for router in dict.fromkeys((*destinations, *treatments)):
        path = reach.path(router)
        if path is None:
            continue
        connection = reach.connection(path.via)
        link = outward.link_to(address, router)
        treatment = treatments.get(router)
        found.append(
            {
                "router": router,
                "cost": path.cost,
                "via": path.via,
                # computed only for the routers that are listed
                "way": [] if hops is None or len(found) >= MAX_LISTED else hops.to(router),
                "connection": None if connection is None else str(connection.number),
                "distribution": None if treatment is None else TREATMENT_NAMES[treatment],
                "used": router in destinations,
                **_link(link, asked.chosen),
                **_why_not(asked, router, link, is_used=router in destinations),
            }
        )
    return found


def _link(link: OutLink | BranchLink | None, chosen: list[Consumer]) -> _LinkAnswer:
    own = None if link is None or link.is_over else link.link
    return {
        "attached": own is not None and own.is_attached(),
        "credit": 0 if own is None else int(own.credit),
        "unsettled": 0 if own is None else int(own.unsettled),
        "chosen": link is not None and link.consumer is not None and link.consumer in chosen,
    }


def _why_not(asked: _Asked, router: str, link: OutLink | None, *, is_used: bool) -> _Why:
    """Return why no message goes to a router now."""
    if not is_used:
        return _why("not_used", "other routers are nearer")
    if link is None:
        retry_s = asked.network.outward.retry_s(asked.address, router)
        if retry_s is not None:
            return _why(
                NOT_ATTACHED, f"the link there ended; the next attempt is in {retry_s:.1f} s"
            )
        return _why(NOT_ATTACHED, _NOBODY_SENDS)
    return _of_link(link)


def _of_link(link: OutLink | BranchLink) -> _Why:
    consumer = link.consumer
    if consumer is None or link.is_over:
        return _why(NOT_ATTACHED, "the link there was lost, and will be attached again")
    reason = blocked_reason(consumer)
    if reason is None:
        return _why(None, None)
    return _why(str(reason), describe_receiver_reason(consumer.link, reason))


def _branches(asked: _Asked) -> list[_BranchAnswer]:
    """Return the branches of this router's own tree that have receivers for a multicast address."""
    address, network = asked.address, asked.network
    multicast = network.multicast
    if address.treatment != MULTICAST or multicast is None:
        return []
    subtree = multicast.tree_of(address)
    wanted = network.reach.wanted.get(asked.key, {})
    tree = network.reach.tree(network.reach.me) if subtree is None else subtree.tree
    found: list[_BranchAnswer] = []
    for branch in () if tree is None else tree.branches:
        receivers = sorted(receiving(branch.routers, wanted))
        link = None if subtree is None else subtree.branches.get(branch.child)
        if not receivers and link is None:
            continue
        connection = network.reach.connection(branch.child)
        why = _why(NOT_ATTACHED, _NOBODY_SENDS)
        if link is not None and multicast.is_left_out(link):
            why = _why("left_out", "the router does not give the address to all who receive")
        elif link is not None:
            why = _of_link(link)
        found.append(
            {
                "router": branch.child,
                "routers": receivers[:MAX_LISTED],
                "routerCount": len(receivers),
                "behind": len(branch.routers) - 1,
                "connection": None if connection is None else str(connection.number),
                "agreed": link is not None and link.is_agreed,
                **_link(link, asked.chosen),
                **why,
            }
        )
    return found


def _uplinks(asked: _Asked) -> list[_UplinkAnswer]:
    """Return an edge router's connections to its network."""
    found: list[_UplinkAnswer] = []
    for view in asked.router.connections():
        is_used, why = view.use
        if is_used is not None:
            found.append(
                {
                    "connection": view.identity,
                    "router": str(view.connection.remote_open.container_id),
                    "used": is_used,
                    "text": why,
                }
            )
    return found


def _reasons(
    asked: _Asked,
    routers: list[_RouterAnswer],
    branches: list[_BranchAnswer],
    uplinks: list[_UplinkAnswer],
) -> list[dict[str, str]]:
    """Return why no message goes to another router.

    The list is empty if a message can go, or if no other router has receivers.
    """
    network = asked.network
    missing = why_unreachable(network, asked.address.name)
    if missing is not None:
        return [_reason(NO_WAY, missing)]
    if not network.is_on:
        if any(each["used"] for each in uplinks):
            return []
        return [_reason(NO_UPLINK, "no uplink is in use: there is no connection to the network")]
    used: list[_RouterAnswer | _BranchAnswer] = [each for each in routers if each["used"]]
    used += branches
    by_words: dict[tuple[str, str], list[str]] = {}
    for each in used:
        reason = each["reason"]
        if reason is None:
            return []
        by_words.setdefault((reason, each["text"] or ""), []).append(each["router"])
    return [
        _reason(reason, text if reason != NOT_ATTACHED else f"{_named(names)}: {text}")
        for (reason, text), names in itertools.islice(by_words.items(), MAX_NAMED)
    ]


def _named(names: list[str]) -> str:
    more = len(names) - MAX_NAMED
    return "router " + " and ".join(names[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")


def _reason(reason: str, text: str) -> dict[str, str]:
    return {"reason": reason, "text": text}


def _why(reason: str | None, text: str | None) -> _Why:
    return {"reason": reason, "text": text}
