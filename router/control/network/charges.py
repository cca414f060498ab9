"""What neighbours tell of other routers, charged to their connections.

The tables of addresses that a network keeps are counted by the neighbour that each was heard of by
first (`Mobile.octets_told`). That moves with every message; so it is looked at now and then.
"""

from __future__ import annotations

from router.control.network.adjacency import Adjacency
from router.engine.account import ROUTES


def charge_routes(network: Adjacency) -> None:
    """Charge each connection to a neighbour with what that has told, and any other with nothing."""
    protocol = network.protocol
    if protocol is None:
        return
    for peering in network.peerings.values():
        if peering.is_edge:
            continue
        router, connection = peering.peer.router, peering.connection
        is_used = network.reach.neighbours.get(router) is connection
        octets = protocol.mobile.octets_told[router] if is_used else 0
        more = octets - connection.account.of_kind(ROUTES)
        if more > 0:
            connection.account.charge(ROUTES, more)
        elif more < 0:
            connection.account.release(ROUTES, -more)
