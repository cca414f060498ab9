"""Explain that a name, such as `_edge/<id>/…`, leads to a router that cannot be found.

Used to find out why no messages flow. Nothing here runs per message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from router.core.routers.names import edge_key_in, router_in

if TYPE_CHECKING:
    from router.core.routers.routing_state import RoutingState


class Edges(Protocol):
    """Interface to a router's knowledge of edge routers; classes of `control.edge` implement it."""

    def is_unreachable(self, name: str) -> bool:
        """Return whether a name leads to a router that no interior router and no edge knows."""


class JoinedNetwork(Protocol):
    """Network that a router belongs to or may join; implemented by `core.network.Network`."""

    reach: RoutingState
    is_on: bool

    @property
    def edges(self) -> Edges | None:
        """Return what this router knows of edge routers; None for a standalone router."""


def why_unreachable(network: JoinedNetwork, name: str) -> str | None:
    """Describe the router that a name leads to, if that router cannot be found.

    Returns None if the router can be reached or may be reachable, or if the name does not lead to a
    router.
    """
    router, edge = router_in(name), edge_key_in(name)
    if network.is_on and router is not None:
        is_there = router == network.reach.me or network.reach.path(router) is not None
        return None if is_there else f"router {router} cannot be reached"
    if network.edges is None or not network.edges.is_unreachable(name):
        return None
    if not network.is_on:
        place = f"router {router}" if edge is None else f"edge router {edge[1:]}"
        return f"{place} is unknown to the interior routers"
    return None if edge is None else f"no edge router {edge[1:]} is connected to the network"
