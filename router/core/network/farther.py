"""Offer to farther receivers what the nearest ones have released.

With closest, links lead to the nearest routers only, and to none while somebody receives here. Once
these have released a message, there are links to the next ones for a while, and the message waits a
moment for one of them to have credit; then its sender is told. What comes from another router is
for that one to offer, so nothing goes back, and nothing goes round (docs/decisions/0088).
"""

from __future__ import annotations

from typing import Any

from router.amqp.constants import Descriptor
from router.core import redelivery
from router.core.address import CLOSEST, FALLBACK, MESH, Address
from router.core.network.names import edge_key_in, key_of, router_in
from router.core.network.reach import Interest
from router.engine.delivery import Delivery

RELEASED = int(Descriptor.RELEASED)
# How long a message waits for credit of a farther receiver.
PATIENCE_S = 1.0
# How long links to farther routers stay after the last message that was released.
OPEN_S = 30.0
# So many of the nearest routers are tried.
MAX_ROUTERS = redelivery.MAX_ATTEMPTS


class Farther:
    """The addresses whose messages may go farther for now, and the messages that wait to."""

    def __init__(self, network: Any) -> None:
        self._network = network
        # until when there are links to farther routers
        self._open: dict[Address, float] = {}
        # the messages, each until when
        self._waiting: dict[Address, dict[Delivery, float]] = {}

    def __len__(self) -> int:
        """How many messages wait."""
        return sum(map(len, self._waiting.values()))

    def is_open(self, address: Address) -> bool:
        """Whether there are to be links to farther routers."""
        return address in self._open

    def may_serve(self, address: Address) -> bool:
        """Whether there are receivers farther away than the nearest ones of an address."""
        if not address.redelivers or not address.consumers:
            return False
        nearest = min(consumer.cost for consumer in address.consumers)
        return any(cost > nearest for cost, _, _ in self._places(address))

    def takes(self, delivery: Delivery, had: list[Any]) -> bool:
        """Whether there is a farther router that a message which is released has not been to."""
        address = delivery.address
        giver = delivery.outgoing.owner
        if delivery.incoming.side == MESH or giver is None:
            return False
        outward = self._network.outward
        for cost, router, _ in self._places(address)[:MAX_ROUTERS]:
            link = outward.link_to(address, router)
            if cost > giver.cost and (link is None or link.link not in had):
                return True
        return False

    def _places(self, address: Address) -> list[tuple[int, str, Interest]]:
        if (
            not self._network.is_on
            or address.treatment != CLOSEST
            or address.phase == FALLBACK
            or address.transit is not None
            or router_in(address.name) is not None
            or edge_key_in(address.name) is not None
        ):
            return []
        places: list[tuple[int, str, Interest]] = self._network.reach.places(key_of(address))
        return places

    def wait(self, delivery: Delivery) -> None:
        """Have a message wait for a farther receiver, to which there is a link from now on."""
        address = delivery.address
        now = self._network.forwarder.turn.now
        self._waiting.setdefault(address, {})[delivery] = now + PATIENCE_S
        is_new = address not in self._open
        self._open[address] = now + OPEN_S
        if is_new:
            self._network.outward.see_to(address, is_asked=True)

    def offer(self, address: Address) -> None:
        """Send on what waits, as far as a farther receiver has room."""
        waiting = self._waiting.get(address)
        if waiting is None:
            return
        forwarder = self._network.forwarder
        for delivery in list(waiting):
            if not self._is_over(delivery) and not redelivery.go_on(forwarder, delivery):
                # the others have to wait for the same
                break
            del waiting[delivery]
        if not waiting:
            del self._waiting[address]

    def _is_over(self, delivery: Delivery) -> bool:
        """Whether nobody awaits an outcome any more: the sender has settled it, or is lost."""
        if delivery.incoming_open:
            return False
        self._network.forwarder.redelivery.drop(delivery)
        return True

    def look(self, now: float) -> None:
        """Give up what has waited for long enough; called now and then."""
        for address, waiting in list(self._waiting.items()):
            for delivery, until in list(waiting.items()):
                if not self._is_over(delivery):
                    if until > now:
                        continue
                    self._network.forwarder.settle(delivery, RELEASED, b"")
                del waiting[delivery]
            if not waiting:
                del self._waiting[address]
        for address, until in list(self._open.items()):
            if until <= now and address not in self._waiting:
                del self._open[address]
                self._network.address_changed(address)
