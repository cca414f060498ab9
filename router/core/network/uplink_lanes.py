"""Lanes between an edge and its interior, beside the link that one has to the other for an address.

Both attach them, each for what it sends: the edge beside its proxy link, and the interior beside
the link by which the edge receives. The other one takes such a lane as it does any link that sends.
"""

from __future__ import annotations

from typing import Any

from router.core.model.address import MULTICAST, Address, Consumer
from router.core.network.lane_links import LaneLink
from router.core.network.lane_numbers import Lane, knows_lanes


class UplinkBase:
    """A link to the other end of an uplink as that which lanes may be beside."""

    __slots__ = ("_network", "address", "connection", "consumer", "lanes")

    def __init__(self, network: Any, consumer: Consumer) -> None:
        self._network = network
        self.consumer = consumer
        self.address: Address = consumer.address
        self.connection: Any = consumer.link.session.connection
        self.lanes: dict[int, LaneLink] = {}

    @property
    def cost(self) -> int:
        """How far away the other end is."""
        return self.consumer.cost

    def beside(self, lane: Lane) -> UplinkLane:
        """A further link to the same router, for a lane."""
        return UplinkLane(self._network, self, lane)


class UplinkLane(LaneLink):
    """One lane to the other end of an uplink."""

    def __init__(self, network: Any, base: UplinkBase, lane: Lane) -> None:
        super().__init__(network, base.address, {}, False, lane)
        self.base = base
        self._first = base.consumer

    def place(self, consumer: Consumer) -> None:
        """It leads where the one beside it does."""
        consumer.side = self._first.side
        consumer.cost = self._first.cost
        consumer.shows_passage = self._first.shows_passage
        consumer.link.urgency = self.lane.priority
        consumer.takes = 1 << self.lane.number


def may_have_lanes(network: Any, consumer: Consumer) -> bool:
    """Whether a consumer is a link to the other end of an uplink beside which lanes may be."""
    session = consumer.link.session
    if session.connection not in network.edge_sides or isinstance(session.owner, LaneLink):
        return False
    address = consumer.address
    is_usual = address.phase == 0 and address.treatment != MULTICAST
    return is_usual and knows_lanes(session.connection)
