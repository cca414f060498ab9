"""Announce the addresses that have a receiver at this router or at its edges.

Receivers are counted as they are added and removed, so that a thousand of them at one address cost
no more than one. Changes are announced at the end of the turn. The router's own nodes and dynamic
nodes are located by their names, so they need not be announced.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from router.core.addresses.related import is_exchange
from router.core.model.address import MESH, MULTICAST, Address, Consumer
from router.core.routers.names import edge_key_in, key_of, router_in
from router.core.routers.routing_state import Interest

if TYPE_CHECKING:
    from router.core.addresses.table import AddressTable
    from router.core.ports import Core


class LocalInterest:
    """Count of each address's receivers, without those at other routers."""

    def __init__(self, forwarder: Core) -> None:
        self._forwarder = forwarder
        # how many receivers there are, and how many of them get the router annotations of messages
        self._counts: dict[Address, tuple[int, int]] = {}

    def joined(self, consumer: Consumer) -> None:
        """Count a consumer that has joined its address."""
        if is_counted(consumer):
            self._count(consumer, 1)

    def left(self, consumer: Consumer) -> None:
        """Stop counting a consumer that has left its address."""
        if is_counted(consumer):
            self._count(consumer, -1)

    def _count(self, consumer: Consumer, by: int) -> None:
        address = consumer.address
        receivers, shown = self._counts.get(address, (0, 0))
        receivers += by
        if receivers > 0:
            self._counts[address] = receivers, shown + by * consumer.shows_passage
        else:
            self._counts.pop(address, None)

    def receivers(self, address: Address) -> int:
        """Return how many receivers an address has, without those at other routers."""
        return self._counts.get(address, (0, 0))[0]

    def announce(self, address: Address) -> None:
        """Announce by the end of this turn whether an address has receivers at this router."""
        reach = self._forwarder.reach
        if not is_announced(self._forwarder.table, address, reach.me):
            if address.treatment == MULTICAST:
                # it may have been a topic that was deleted
                reach.set_own_interest(key_of(address), None)
            return
        receivers, shown = self._counts.get(address, (0, 0))
        is_received = receivers or is_exchange(address)
        interest = Interest(address.treatment, shown > 0) if is_received else None
        reach.set_own_interest(key_of(address), interest)


def is_counted(consumer: Consumer) -> bool:
    """Return whether a consumer counts as a receiver that is announced to other routers."""
    return consumer.side != MESH and consumer.address.transit is None


def is_announced(table: AddressTable, address: Address, me: str) -> bool:
    """Return whether the receivers of an address are announced to the other routers.

    An address whose name contains the id of this router, `me`, is not announced, because messages
    find this router by the name. A dynamic multicast address is announced nevertheless, because
    multicasts go along trees. Receivers of an address whose name contains another router's id, such
    as a dynamic node of that router, are announced to all routers.
    """
    name = address.name
    if address.is_dynamic and address.treatment == MULTICAST:
        return edge_key_in(name) is None
    return not (
        address.transit is not None
        or address.is_dynamic
        or table.is_own_node(name)
        or router_in(name) == me
        or edge_key_in(name) is not None
    )
