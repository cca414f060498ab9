"""Charge neighbours' connections for the addresses that the neighbours advertise.

The memory of a router's address table counts for the neighbour that first advertised that router
(`MobileAddresses.octets_told`). As these counts change with every message, they are charged only
periodically.
"""

from __future__ import annotations

from router.control.network.adjacency import Neighbours
from router.engine.account import ROUTES


def charge_routes(network: Neighbours) -> None:
    """Update the charges of all connections to interior routers.

    If several connections lead to a neighbour, only the one that carries messages is charged.
    """
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
