"""Links to the next router on the way to one where an address is received from.

Each leads to one destination, and says so, with what the way there costs: a router takes what comes
by it only while its own way costs less, so that no links ever form a circle, whatever routers think
of the network at that moment. To its address it is a consumer like any other. Its attach does not
wait for its session's begin, so that it is there, without credit, from the first moment on.
"""

from __future__ import annotations

from typing import Any

from router.amqp.performatives import Attach, Error, Source, Target
from router.amqp.types import ULong
from router.core import linking, parting
from router.core.address import HERE, MESH, Address, Consumer
from router.core.network.link_properties import COST, DESTINATION, PHASE, SHOWS
from router.core.own_links import OwnLink
from router.engine import attaching


class OutLink(OwnLink):
    """One such link of `address`, by `connection`; `said` is the cost that its attach says."""

    def __init__(
        self, network: Any, address: Address, destination: str, said: int, shows: bool
    ) -> None:
        number = network.next_number()
        properties: dict[Any, Any] = {DESTINATION: destination, COST: ULong(said)}
        if address.phase:
            properties[PHASE] = address.phase
        if shows:
            properties[SHOWS] = True
        super().__init__(
            Attach(
                f"trioute.{network.reach.me}.{number}",
                0,
                False,
                source=Source(address=address.name),
                target=Target(address=address.name),
                initial_delivery_count=0,
                properties=properties,
            )
        )
        self.network = network
        self.address = address
        self.destination = destination
        self.said = said
        self.shows = shows
        self.connection: Any = None
        self.consumer: Consumer | None = None
        # it takes nothing new any more
        self.is_leaving = False
        # how many deliveries it had carried when it was looked at last, and since when no more
        self.carried = 0
        self.idle_since = network.forwarder.turn.now

    def begin(self, connection: Any) -> None:
        """Begin the session and attach; raises `AmqpError` where that cannot be."""
        super().begin(connection)
        self.connection = connection
        link: Any = attaching.attach(self.session, self.frame)
        self.link = link
        address = self.address
        self.consumer = consumer = Consumer(link, address)
        # a way through has no sides: what comes at one end of it leaves at the other
        consumer.side = MESH if address.transit is None else HERE
        consumer.cost = self.said
        consumer.shows_passage = self.shows
        link.owner = consumer
        linking.join(self.network.forwarder, consumer)

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
