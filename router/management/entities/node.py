"""Entity type of the routers of the network, including this one."""

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
# In larger networks it takes too long to find the origins of the messages that pass here.
MOST_ORIGINS: Final = 64


@attrs.frozen
class Node:
    """Router as this one knows it; `known` is its record in the routing protocol."""

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
        """Return the router's state, in a word."""
        if self.is_self:
            return "self"
        if self.known.cost is None:
            return "unreachable"
        is_synced = self.neighbour is None or self.neighbour.is_synced
        return "reached" if self.known.is_complete and is_synced else "behind"

    @property
    def name(self) -> str:
        """Return the name of its entity."""
        return f"router.node/{self.known.router}"

    @property
    def next_hop(self) -> str | None:
        """Return the next hop as Dispatch does: None for a neighbour, and (self) for itself."""
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
    """Return, for each router, the routers whose messages to it pass through this one.

    Return nothing if there are too many routers to find that out.
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
    "A router of the network, this one among them.",
    OPERATIONAL,
    (
        *AttributesOf[Node].identified(lambda n: n.name, lambda n: n.name, "router.node"),
        _attribute("id", "string", "Its id.", lambda n: n.known.router),
        _attribute(
            "protocolVersion",
            "integer",
            "Which version of the protocol between routers is spoken with it; null of those that "
            "are not neighbours.",
            lambda n: n.known.version,
        ),
        _attribute(
            "instance",
            "integer",
            "Tells its runs apart: milliseconds since 1970 when it started, times 2^20, and a "
            "random number below that.",
            lambda n: n.known.instance,
        ),
        _attribute(
            "linkState",
            "list",
            "The ids of its neighbours, as far as both are heard by each other.",
            lambda n: sorted(n.known.links),
        ),
        _attribute(
            "nextHop",
            "string",
            "By which neighbour messages go there; null of a neighbour itself and of what cannot "
            "be reached, and (self) of this router.",
            lambda n: n.next_hop,
        ),
        _attribute(
            "validOrigins",
            "list",
            "The ids of the routers from which messages to it come by this one; not found out in a "
            f"network of more than {MOST_ORIGINS} others.",
            lambda n: n.origins,
        ),
        _attribute(
            "address",
            "string",
            "The address that all others of it begin with.",
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
        _attribute("index", "integer", "Its place in this list.", lambda n: n.index),
        _attribute(
            "addressCount",
            "integer",
            "Of how many addresses, and link routes, it is known that they are received from, or "
            "have containers, there. Dispatch does not tell it.",
            lambda n: n.known.addresses,
        ),
        _attribute(
            "state",
            "string",
            "How it stands: self; reached; behind, where it is reached and not all is known yet of "
            "what is received there, or a neighbour is not in sync; unreachable, where no way "
            "leads there and it has not been forgotten yet. This and what follows Dispatch does "
            "not tell.",
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
            "How many seconds ago it said so last; it does every 30 seconds, and is forgotten "
            "after 90.",
            lambda n: int(n.known.said_s),
        ),
        _attribute(
            "addressSequence",
            "integer",
            "As of which of its changes its addresses are known.",
            lambda n: n.known.mobile_seq,
        ),
        _attribute(
            "heardMilliseconds",
            "integer",
            "Of a neighbour, how long ago anything was heard of it on the connection that carries.",
            lambda n: None if n.neighbour is None else int(n.neighbour.heard_s * 1000),
        ),
        _attribute(
            "roundTripMicroseconds",
            "integer",
            "Of a neighbour, how long it takes on the connection that carries until a control "
            "message has come there and an answer has come back: the shortest of the last eight.",
            _round_trip_us,
        ),
    ),
)
