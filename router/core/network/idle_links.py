"""Links from other routers to addresses without a receiver at this router.

A receiver may come back within `GRACE_S`. After that the link is detached, and messages waiting for
the link at the other router go elsewhere.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator

from router.core.addresses.related import is_exchange
from router.core.deliveries import sides
from router.core.model.address import MESH, OWN_TREE, Address, Producer
from router.core.network.transit import no_route
from router.engine import attaching
from router.engine.outbox import Turn

# How long a receiver may take to come back.
GRACE_S = 0.5


class UnservedLinks:
    """List of links whose messages cannot be forwarded, in the order in which that was noted."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._since: OrderedDict[Producer, float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._since)

    def add(self, producer: Producer) -> None:
        """Note that the messages of a link cannot be forwarded, unless that was noted before."""
        self._since.setdefault(producer, self._turn.now)

    def discard(self, producer: Producer) -> None:
        """Forget a link that has ended, or whose messages can be forwarded."""
        self._since.pop(producer, None)

    def update(self, address: Address) -> None:
        """Add the links from other routers to an address without a receiver.

        If the address has a receiver, remove its links from the list.
        """
        change = self.discard if is_served(address) else self.add
        for producer in address.producers:
            # tree links are given up by the router at the root
            if producer.side == MESH and producer.tree == OWN_TREE:
                change(producer)

    def due(self) -> Iterator[None]:
        """Detach the links that were noted `GRACE_S` ago, one in each step."""
        while self._since:
            producer, since = next(iter(self._since.items()))
            if self._turn.now - since < GRACE_S:
                break
            self._turn_away(producer)
            yield

    def _turn_away(self, producer: Producer) -> None:
        """Detach a link whose messages cannot be forwarded; wait if it has open deliveries."""
        link, address = producer.link, producer.address
        assert address is not None
        del self._since[producer]
        if not link.is_attached() or link.owner is not producer:
            return
        if address.transit is None and is_served(address):
            # a receiver was added in this turn, or in one that is not finished yet
            return
        if link.unsettled or link.current is not None:
            # wait again for the same time
            self.add(producer)
        else:
            attaching.detach(link, True, no_route())


def is_served(address: Address) -> bool:
    """Return whether an address has a receiver at this router for messages from other routers."""
    return sides.has_receiver(address, MESH) or is_exchange(address)
