"""Offer messages that the nearest receivers have released to receivers farther away.

With closest, links lead to the nearest routers only, and to none while somebody receives here. Once
the nearest receivers have released a message, links to farther routers are attached for a while,
and the message waits up to `PATIENCE_S` for credit on one of them; then its sender is told. A
message from another router is offered by that router alone, so that nothing goes back or round
(docs/decisions/0088).
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
# How long a message waits for a farther receiver's credit.
PATIENCE_S = 1.0
# How long links to farther routers stay after the last message released.
OPEN_S = 30.0
# How many of the nearest routers are tried.
MAX_ROUTERS = redelivery.MAX_ATTEMPTS


class Farther:
    """The addresses that have links to farther routers, and the messages that wait for these."""

    def __init__(self, network: Any) -> None:
        self._network = network
        # until when there are links to farther routers
        self._open: dict[Address, float] = {}
        # the messages, each until when
        self._waiting: dict[Address, dict[Delivery, float]] = {}

    def __len__(self) -> int:
        """Return how many messages wait."""
        return sum(map(len, self._waiting.values()))

    def is_open(self, address: Address) -> bool:
        """Return whether an address should have links to farther routers."""
        return address in self._open

    def may_serve(self, address: Address) -> bool:
        """Return whether an address has receivers that are farther away than the nearest ones."""
        if not address.redelivers or not address.consumers:
            return False
        nearest = min(consumer.cost for consumer in address.consumers)
        return any(cost > nearest for cost, _, _ in self._places(address))

    def takes(self, delivery: Delivery, had: list[Any]) -> bool:
        """Return whether a released message can go to a farther router that has not had it.

        `had` are the links that it has left by.
        """
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
        """Have a message wait for a farther receiver, and links attached to farther routers."""
        address = delivery.address
        now = self._network.forwarder.turn.now
        self._waiting.setdefault(address, {})[delivery] = now + PATIENCE_S
        is_new = address not in self._open
        self._open[address] = now + OPEN_S
        if is_new:
            self._network.outward.see_to(address, is_asked=True)

    def offer(self, address: Address) -> None:
        """Send on messages that wait, as far as farther receivers have room."""
        waiting = self._waiting.get(address)
        if waiting is None:
            return
        forwarder = self._network.forwarder
        for delivery in list(waiting):
            if not self._is_over(delivery) and not redelivery.go_on(forwarder, delivery):
                # the others wait for the same receivers
                break
            del waiting[delivery]
        if not waiting:
            del self._waiting[address]

    def _is_over(self, delivery: Delivery) -> bool:
        """Return whether nobody awaits an outcome: the sender has settled it, or is lost."""
        if delivery.incoming_open:
            return False
        self._network.forwarder.redelivery.drop(delivery)
        return True

    def look(self, now: float) -> None:
        """Release messages that have waited long enough, and give up links that are not needed.

        Call it at each look at the clocks; `now` is in seconds.
        """
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
