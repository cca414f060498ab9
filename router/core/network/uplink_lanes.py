"""Lanes between an edge and its interior, in addition to an address's base link.

Both routers attach lanes, each for the messages that it sends: the edge in addition to its proxy
link, and the interior in addition to the link on which the edge receives. The other router accepts
a lane like any other sender.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from router.core.model.address import MULTICAST, Address, Consumer
from router.core.network.lane_links import LaneLink
from router.core.network.lane_numbers import Lane, knows_lanes

if TYPE_CHECKING:
    from router.core.network.network import Network
    from router.engine.connection import Connection


class UplinkBase:
    """Base link to the other end of an uplink; it may have additional lanes."""

    __slots__ = ("_network", "address", "connection", "consumer", "lanes")

    def __init__(self, network: Network, consumer: Consumer) -> None:
        self._network = network
        self.consumer = consumer
        self.address: Address = consumer.address
        self.connection: Connection = consumer.link.session.connection
        self.lanes: dict[int, LaneLink] = {}

    @property
    def cost(self) -> int:
        """Return the cost of the path to the other end."""
        return self.consumer.cost

    def beside(self, lane: Lane) -> UplinkLane:
        """Return a new link to the same router, for a lane."""
        return UplinkLane(self._network, self, lane)


class UplinkLane(LaneLink):
    """Additional lane to the other end of an uplink."""

    def __init__(self, network: Network, base: UplinkBase, lane: Lane) -> None:
        super().__init__(network, base.address, {}, False, lane)
        self.base = base
        self._first = base.consumer

    def place(self, consumer: Consumer) -> None:
        """Copy cost, side and annotations from the base link's consumer, and set the lane."""
        consumer.side = self._first.side
        consumer.cost = self._first.cost
        consumer.shows_passage = self._first.shows_passage
        consumer.link.urgency = self.lane.priority
        consumer.lane_mask = 1 << self.lane.number


def may_have_lanes(network: Network, consumer: Consumer) -> bool:
    """Return whether a consumer leads to the other end of an uplink and may have lanes."""
    session = consumer.link.session
    if session.connection not in network.edge_sides or isinstance(session.owner, LaneLink):
        return False
    address = consumer.address
    is_usual = address.phase == 0 and address.treatment != MULTICAST
    return is_usual and knows_lanes(session.connection)
