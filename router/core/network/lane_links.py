"""Links to the next router that are one of several to one place, each for some of what goes there.

One of them is there as long as anything may be sent, and the others are beside it (`lanes`). They
are given up without anything being lost: they take leave.
"""

from __future__ import annotations

from typing import Any, Protocol

from router.amqp.performatives import Error
from router.core import parting
from router.core.address import Address, Consumer
from router.core.network.lane_numbers import Lane
from router.core.network.next_links import NextLink


class LaneBase(Protocol):
    """The link that others may be beside: those that are, by their numbers, are its `lanes`."""

    address: Address
    connection: Any
    lanes: dict[int, LaneLink]

    @property
    def cost(self) -> int:
        """How far away the place is."""

    @property
    def consumer(self) -> Consumer | None:
        """What it is to its address; None before it is there."""

    def beside(self, lane: Lane) -> LaneLink:
        """A further link to the same place, for a lane."""


class LaneLink(NextLink):
    """A link of `address` for one lane; `base` is what it is beside, None if it is the first."""

    base: LaneBase | None

    def __init__(
        self, network: Any, address: Address, properties: dict[Any, Any], shows: bool, lane: Lane
    ) -> None:
        super().__init__(network, address, {**properties, **lane.properties()}, shows, lane.mode)
        self.lane = lane
        # how many deliveries it had carried when it was looked at last, and since when no more
        self.carried = 0
        self.idle_since = network.forwarder.turn.now

    def idle_s(self, now: float) -> float:
        """For how long nothing has been sent by it, as far as that has been asked for."""
        link = self.link
        if link is None or link.deliveries != self.carried or link.unsettled or link.current:
            self.carried = 0 if link is None else link.deliveries
            self.idle_since = now
        return float(now - self.idle_since)

    def over(self, forwarder: Any, error: Error | None, closed: bool) -> None:
        """Have what it was for go by another one, unless it was given up."""
        self.network.outward.lane_over(self)

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
