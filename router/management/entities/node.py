"""Entity type of the routers in the network, including this one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Final

import attrs

from router.control.network import views
from router.control.network.adjacency import Neighbours
from router.core.routers.routing_state import RoutingState
from router.management.entities.attributes import AttributesOf
from router.management.schema import OPERATIONAL, Attribute, EntityType
from router.management.views import RouterView

# Dispatch's word for the router that answers.
SELF: Final = "(self)"
# In larger networks it takes too long to find the origins of messages that pass through here.
MOST_ORIGINS: Final = 64


@attrs.frozen
class Node:
    """Router as this router knows it; `known` is its record in the routing protocol."""

    known: views.RouterView
    index: int
    is_self: bool
    # number of the connection that carries messages to a neighbour
    connection: int | None
    origins: list[str]
    changed_at: int | None
    # for a neighbour: the connection that carries messages
    neighbour: views.NeighbourView | None = None

    @property
    def state(self) -> str:
        """Return the router's state, as one word."""
        if self.is_self:
            return "self"
        if self.known.cost is None:
            return "unreachable"
        is_synced = self.neighbour is None or self.neighbour.is_synced
        return "reached" if self.known.is_complete and is_synced else "behind"

    @property
    def name(self) -> str:
        """Return the entity's name: `router.node/` and the router's id."""
        return f"router.node/{self.known.router}"

    @property
    def next_hop(self) -> str | None:
        """Return the next hop as in Dispatch: None for a neighbour, (self) for the local router."""
        if self.is_self:
            return SELF
        via = self.known.via
        return None if via == self.known.router else via


def nodes(router: RouterView) -> Iterator[Node]:
    """Yield all known routers; none if this is not an interior router."""
    network = None if router.control is None else router.control.network
    if network is None or network.protocol is None:
        return
    now = router.observed.turn.now
    reach: RoutingState = network.reach
    origins = _origins(reach)
    changed_at = _changed_at(network, now)
    carrying = {
        each.router: each
        for each in views.neighbour_views(network.protocol, now)
        if each.state == "carries"
    }
    for index, known in enumerate(views.router_views(network.protocol, now)):
        connection = reach.neighbours.get(known.router)
        yield Node(
            known,
            index,
            known.router == reach.me,
            None if connection is None else connection.number,
            origins.get(known.router, []),
            changed_at,
            carrying.get(known.router),
        )


def other_nodes(router: RouterView) -> list[str]:
    """Return the ids of the other routers that can be reached."""
    network = None if router.control is None else router.control.network
    return [] if network is None else sorted(network.reach.paths)


def _origins(reach: RoutingState) -> dict[str, list[str]]:
    """Return, by destination, the routers whose messages to the destination pass this router.

    The result is empty if more than `MOST_ORIGINS` other routers can be reached.
    """
    found: dict[str, list[str]] = {}
    for root in sorted(reach.paths) if len(reach.paths) <= MOST_ORIGINS else ():
        tree = reach.tree(root)
        for branch in () if tree is None else tree.branches:
            for each in branch.routers:
                found.setdefault(each, []).append(root)
    return found


def _changed_at(network: Neighbours, now: float) -> int | None:
    """Return when routes last changed, in seconds since 1970; None if they never did."""
    last = None if network.protocol is None else network.protocol.routes.changed_at
    return None if last is None else round(time.time() - (now - last))


def _round_trip_us(node: Node) -> int | None:
    if node.neighbour is None or node.neighbour.round_trip_s is None:
        return None
    return int(node.neighbour.round_trip_s * 1_000_000)


def _attribute(
    name: str, kind: str, meaning: str, read: Callable[[Node], object]
) -> Attribute[Node]:
    return Attribute(name, kind, meaning, read)


NODE: Final = EntityType[Node](
    "router.node",
    "A router of the network, including this one.",
    OPERATIONAL,
    (
        *AttributesOf[Node].identified(lambda n: n.name, lambda n: n.name, "router.node"),
        _attribute("id", "string", "Its id.", lambda n: n.known.router),
        _attribute(
            "protocolVersion",
            "integer",
            "Version of the protocol between routers that is spoken with it; null unless it is "
            "a neighbour.",
            lambda n: n.known.version,
        ),
        _attribute(
            "instance",
            "integer",
            "Number that distinguishes its runs: milliseconds since 1970 when it started, times "
            "2^20, plus a random number below 2^20.",
            lambda n: n.known.instance,
        ),
        _attribute(
            "linkState",
            "list",
            "The ids of its neighbours, as far as both hear each other.",
            lambda n: sorted(n.known.links),
        ),
        _attribute(
            "nextHop",
            "string",
            "The neighbour through which messages to it go; null for a neighbour itself and for "
            "an unreachable router, and (self) for this router.",
            lambda n: n.next_hop,
        ),
        _attribute(
            "validOrigins",
            "list",
            "The ids of the routers whose messages to it pass through this one; not determined in "
            f"a network of more than {MOST_ORIGINS} others.",
            lambda n: n.origins,
        ),
        _attribute(
            "address",
            "string",
            "The address that all its other addresses begin with.",
            lambda n: f"amqp:/_topo/0/{n.known.router}",
        ),
        _attribute(
            "routerLink",
            "integer",
            "For a neighbour: the number of the connection that carries messages to it.",
            lambda n: n.connection,
        ),
        _attribute(
            "cost",
            "integer",
            "Cost of the route to it; null if there is no route.",
            lambda n: n.known.cost,
        ),
        _attribute(
            "lastTopoChange",
            "integer",
            "When routes last changed, in seconds since 1970.",
            lambda n: n.changed_at,
        ),
        _attribute("index", "integer", "Its position in this list.", lambda n: n.index),
        _attribute(
            "addressCount",
            "integer",
            "Number of addresses with receivers, and of link routes with containers, that are "
            "known to be at it. Dispatch does not have this attribute.",
            lambda n: n.known.addresses,
        ),
        _attribute(
            "state",
            "string",
            "self, reached, behind, or unreachable. behind: it is reached, but its receivers "
            "are not all known yet, or it is a neighbour that is not in sync. unreachable: no "
            "route leads to it, and it has not been forgotten yet. Dispatch has neither this "
            "attribute nor the following ones.",
            lambda n: n.state,
        ),
        _attribute(
            "linkStateSequence",
            "integer",
            "Number of link-state updates that it has sent in this run.",
            lambda n: n.known.seq,
        ),
        _attribute(
            "linkStateAge",
            "integer",
            "Seconds since its last link-state update; it sends one every 30 seconds, and is "
            "forgotten after 90.",
            lambda n: int(n.known.said_s),
        ),
        _attribute(
            "addressSequence",
            "integer",
            "Number of the latest change to its addresses that is known here.",
            lambda n: n.known.mobile_seq,
        ),
        _attribute(
            "heardMilliseconds",
            "integer",
            "For a neighbour: milliseconds since anything was received from it on the "
            "connection that carries messages.",
            lambda n: None if n.neighbour is None else int(n.neighbour.heard_s * 1000),
        ),
        _attribute(
            "roundTripMicroseconds",
            "integer",
            "For a neighbour: round-trip time of a control message on the connection that "
            "carries messages, in microseconds; the shortest of the last eight.",
            _round_trip_us,
        ),
    ),
)
