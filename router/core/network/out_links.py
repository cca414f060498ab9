"""Links to the next router on the path to a router that has receivers of an address.

Each link leads to one destination, which its attach declares with the cost of the path there. A
router accepts messages from a link only while the router's own path costs less than declared, so
that links never form a loop, even while routers disagree about the network.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from router.amqp.performatives import Error
from router.amqp.types import ULong
from router.core.model.address import HERE, Address, Consumer
from router.core.network.lane_links import LaneLink
from router.core.network.lane_numbers import FIRST_LANE, Lane, knows_lanes
from router.core.routers.link_properties import COST, DESTINATION

if TYPE_CHECKING:
    from router.core.network.network import Network
    from router.core.ports import Core


class OutLink(LaneLink):
    """Link for messages to one address, to the next router on the path to a destination.

    `declared_cost` is the cost of the path that its attach declares. `base` is the base link to the
    same destination if this is an additional link for a `lane`, else None. A transit has only one
    link, with the lane of the transit.
    """

    def __init__(
        self,
        network: Network,
        address: Address,
        destination: str,
        declared_cost: int,
        shows: bool,
        lane: Lane = FIRST_LANE,
        base: OutLink | None = None,
    ) -> None:
        properties = {DESTINATION: destination, COST: ULong(declared_cost)}
        super().__init__(network, address, properties, shows, lane)
        self.base = base
        # its additional lanes, by number
        self.lanes: dict[int, LaneLink] = {}
        self.destination = destination
        self.declared_cost = declared_cost

    def beside(self, lane: Lane) -> OutLink:
        """Return a new link to the same destination, for a lane."""
        return OutLink(
            self.network, self.address, self.destination, self.declared_cost, self.shows, lane, self
        )

    def place(self, consumer: Consumer) -> None:
        """Set the consumer's cost to that of the path, and set its side and lane."""
        consumer.cost = self.declared_cost
        consumer.link.urgency = self.lane.priority
        if self.address.transit is not None:
            # a transit has no sides: its messages always leave on its one link
            consumer.side = HERE
        elif self.base is not None:
            consumer.cost = self.base.cost
            consumer.lane_mask = 1 << self.lane.number
        elif knows_lanes(self.connection):
            consumer.lane_mask = 1

    @property
    def cost(self) -> int:
        """Return the current cost of the path."""
        return self.declared_cost if self.consumer is None else int(self.consumer.cost)

    def over(self, forwarder: Core, error: Error | None, closed: bool) -> None:
        """Forget the link, and attach another one later, unless this one was given up."""
        if self.base is None:
            self.network.outward.link_ended(self, error)
        else:
            super().over(forwarder, error, closed)

    def set_cost(self, cost: int) -> None:
        """Set the current cost of the path, which is not more than the attach declared."""
        for link in (self, *self.lanes.values()):
            if link.consumer is not None:
                link.consumer.cost = cost
