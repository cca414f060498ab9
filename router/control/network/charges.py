"""Charge neighbours' connections for the routers and addresses that they advertise.

The octets of address tables are counted for the neighbour that first advertised each router
(`MobileAddresses.octets_told`). They change with every message, so they are charged only now and
then.
"""

from __future__ import annotations

from router.control.network.adjacency import Neighbours
from router.engine.account import ROUTES


def charge_routes(network: Neighbours) -> None:
    """Bring the charges of all connections to routers up to date.

    The connection that is used to a neighbour is charged for it; any other is charged nothing.
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
