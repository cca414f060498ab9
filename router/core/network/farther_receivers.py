"""Offer messages that the nearest receivers have released to receivers farther away.

With the treatment `closest`, links lead to the nearest routers only, and to none while there is a
receiver at this router. Once the nearest receivers have released a message, links to farther
routers are attached for a while, and the message waits up to `PATIENCE_S` for credit on one of
them. Then it is released. Only the router where a message entered the network offers the message to
others, so that no message goes back or in a circle (docs/decisions/0088).
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

from router.amqp.constants import Descriptor
from router.core.deliveries import redelivery
from router.core.model.address import CLOSEST, FALLBACK, MESH, Address
from router.core.routers.names import edge_key_in, key_of, router_in
from router.core.routers.routing_state import Place
from router.engine.deferred import ITEMS_PER_STEP, DeferredPass
from router.engine.delivery import Delivery

if TYPE_CHECKING:
    from router.core.network.network import Network
    from router.engine.link import OutgoingLink

RELEASED = int(Descriptor.RELEASED)
# How long a message waits for a farther receiver's credit.
PATIENCE_S = 1.0
# How long links to farther routers stay after the last released message.
OPEN_S = 30.0
# How many of the nearest routers are tried.
MAX_ROUTERS = redelivery.MAX_ATTEMPTS


class FartherReceivers:
    """Record of the addresses with links to farther routers, and of messages that wait for them."""

    def __init__(self, network: Network) -> None:
        self._network = network
        # until when each address has links to farther routers
        self._open: OrderedDict[Address, float] = OrderedDict()
        # until when each message waits, and how many messages wait
        self._waiting: dict[Address, OrderedDict[Delivery, float]] = {}
        self._count = 0
        # the waiting messages by time, including some that no longer wait
        self._due: deque[tuple[float, Address, Delivery]] = deque()
        # addresses whose messages are being sent on, in this turn or in later ones
        self._offering: set[Address] = set()
        self._check = DeferredPass(ITEMS_PER_STEP)

    def __len__(self) -> int:
        """Return how many messages wait."""
        return self._count

    def is_open(self, address: Address) -> bool:
        """Return whether an address should have links to farther routers."""
        return address in self._open

    def may_serve(self, address: Address) -> bool:
        """Return whether an address has receivers that are farther away than the nearest ones."""
        if not address.redelivers or not address.consumers:
            return False
        nearest = min(consumer.cost for consumer in address.consumers)
        return any(cost > nearest for cost, _, _ in self._places(address)[:MAX_ROUTERS])

    def takes(self, delivery: Delivery, tried: list[OutgoingLink]) -> bool:
        """Return whether a released message can go to a farther router.

        `tried` holds the links on which the message was sent before; it is not sent on them again.
        """
        address = delivery.address
        giver = delivery.outgoing.owner
        if delivery.incoming.side == MESH or giver is None:
            return False
        outward = self._network.outward
        for cost, router, _ in self._places(address)[:MAX_ROUTERS]:
            link = outward.link_to(address, router)
            if cost > giver.cost and (link is None or link.link not in tried):
                return True
        return False

    def _places(self, address: Address) -> list[Place]:
        if (
            not self._network.is_on
            or address.treatment != CLOSEST
            or address.phase == FALLBACK
            or address.transit is not None
            or router_in(address.name) is not None
            or edge_key_in(address.name) is not None
        ):
            return []
        places: list[Place] = self._network.reach.nearest(key_of(address))
        return places

    def wait(self, delivery: Delivery) -> None:
        """Let a message wait for a farther receiver, and attach links to farther routers."""
        address = delivery.address
        now = self._network.forwarder.turn.now
        until = now + PATIENCE_S
        waiting = self._waiting.setdefault(address, OrderedDict())
        self._count += delivery not in waiting
        waiting[delivery] = until
        self._due.append((until, address, delivery))
        is_new = address not in self._open
        self._open[address] = now + OPEN_S
        self._open.move_to_end(address)
        if is_new:
            self._network.outward.update_links(address, is_asked=True)

    def offer(self, address: Address) -> None:
        """Send waiting messages on while farther receivers have room.

        If there are very many, the last ones are sent in later turns.
        """
        if address in self._waiting and address not in self._offering:
            self._offering.add(address)
            self._network.forwarder.turn.deferred.run_steps(self._offers(address))

    def _offers(self, address: Address) -> Iterator[None]:
        """Send on the waiting messages, one in each step."""
        forwarder = self._network.forwarder
        while waiting := self._waiting.get(address):
            delivery = next(iter(waiting))
            if not self._is_over(delivery) and not redelivery.retry(forwarder, delivery):
                # there is no room, and the others wait for the same receivers
                break
            self._waits_no_more(address, delivery)
            yield
        self._offering.discard(address)

    def _waits_no_more(self, address: Address, delivery: Delivery) -> None:
        waiting = self._waiting.get(address)
        if waiting is not None and waiting.pop(delivery, None) is not None:
            self._count -= 1
            if not waiting:
                del self._waiting[address]

    def _is_over(self, delivery: Delivery) -> bool:
        """Return whether a delivery's sender awaits no outcome; if so, drop its kept octets."""
        if redelivery.awaits_outcome(delivery):
            return False
        forwarder = self._network.forwarder
        forwarder.redelivery.drop(delivery)
        if delivery.parent is not None:
            # so that the charge for its batch is released
            forwarder.settlement.settle(delivery, RELEASED, b"")
        return True

    def tick(self) -> None:
        """Release messages that have waited too long, and give up links that are not needed.

        If there are very many, later turns do the rest. Called at each periodic check.
        """
        if self._due or self._open:
            self._check.start(self._network.forwarder.turn.deferred, self._check_due())

    def _check_due(self) -> Iterator[None]:
        """Release overdue messages, and end links to farther routers that are no longer needed."""
        forwarder = self._network.forwarder
        while self._due and self._due[0][0] <= forwarder.turn.now:
            until, address, delivery = self._due.popleft()
            waiting = self._waiting.get(address)
            if waiting is not None and waiting.get(delivery) == until:
                if not self._is_over(delivery):
                    forwarder.settlement.settle(delivery, RELEASED, b"")
                self._waits_no_more(address, delivery)
            yield
        while self._open:
            address, until = next(iter(self._open.items()))
            if until > forwarder.turn.now:
                break
            if address in self._waiting:
                self._open[address] = forwarder.turn.now + OPEN_S
                self._open.move_to_end(address)
            else:
                del self._open[address]
                self._network.address_changed(address)
            yield
