"""Links to the next router on the way to one where an address is received from.

Each leads to one destination, and says so, with what the way there costs: a router takes what comes
by it only while its own way costs less, so that no links ever form a circle, whatever routers think
of the network at that moment.
"""

from __future__ import annotations

from typing import Any

from router.amqp.performatives import Error
from router.amqp.types import ULong
from router.core import parting
from router.core.address import HERE, Address, Consumer
from router.core.network.link_properties import COST, DESTINATION
from router.core.network.next_links import NextLink


class OutLink(NextLink):
    """One such link of `address`, by `connection`; `said` is the cost that its attach says."""

    def __init__(
        self, network: Any, address: Address, destination: str, said: int, shows: bool
    ) -> None:
        super().__init__(network, address, {DESTINATION: destination, COST: ULong(said)}, shows)
        self.destination = destination
        self.said = said
        # how many deliveries it had carried when it was looked at last, and since when no more
        self.carried = 0
        self.idle_since = network.forwarder.turn.now

    def place(self, consumer: Consumer) -> None:
        """It is as far away as its destination."""
        consumer.cost = self.said
        if self.address.transit is not None:
            # a way through has no sides: what comes at one end of it leaves at the other
            consumer.side = HERE

    def over(self, forwarder: Any, error: Error | None, closed: bool) -> None:
        """Look for another way, unless this one was given up."""
        self.network.outward.is_over(self, error)

    def take_leave(self) -> None:
        """Take nothing new, and end once all that was sent is settled."""
        if self.is_leaving or self.consumer is None:
            return
        self.is_leaving = True
        parting.take_leave(self.network.forwarder, self.consumer)
        if not self.end_if_quiet():
            self.network.outward.leaving[self] = None

    def end_if_quiet(self) -> bool:
        """End it if nothing of it is under way; whether it is over."""
        link = self.link
        if not self.is_over and link is not None and link.unsettled == 0 and link.current is None:
            self.detach()
        return self.is_over
