"""Lane links: several links to the next router for one destination, each for one lane.

The base link exists as long as messages may be sent; `lanes` adds and removes the others. Links are
given up without loss: they take no new messages, and end once all earlier ones are settled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from router.amqp.performatives import Error
from router.core.links import detach
from router.core.model.address import Address, Consumer
from router.core.network.lane_numbers import Lane
from router.core.network.next_links import NextLink

if TYPE_CHECKING:
    from router.amqp.types import DecodedMap
    from router.core.network.network import Network
    from router.core.ports import Core
    from router.engine.connection import Connection


class LaneBase(Protocol):
    """Base link to a destination; `lanes` are its additional links, by lane number."""

    address: Address
    connection: Connection
    lanes: dict[int, LaneLink]

    @property
    def cost(self) -> int:
        """Return the cost of the path to the destination."""

    @property
    def consumer(self) -> Consumer | None:
        """Return the link's consumer at its address; None if it has none yet."""

    def beside(self, lane: Lane) -> LaneLink:
        """Return a new link to the same destination, for a lane."""


class LaneLink(NextLink):
    """Link to the next router for one lane of an address.

    `base` is its base link, or None if it is the base link itself.
    """

    base: LaneBase | None

    def __init__(
        self,
        network: Network,
        address: Address,
        properties: DecodedMap,
        shows: bool,
        lane: Lane,
    ) -> None:
        super().__init__(network, address, {**properties, **lane.properties()}, shows, lane.mode)
        self.lane = lane
        # how many deliveries it had carried when `idle_s` was called last, and since when that has
        # not changed
        self.carried = 0
        self.idle_since = network.forwarder.turn.now

    def idle_s(self, now: float) -> float:
        """Return for how many seconds the link has been idle.

        The time counts from the last call that found the link busy: with an incomplete or unsettled
        delivery, or with more deliveries than at the call before.
        """
        link = self.link
        if link is None or link.deliveries != self.carried or link.unsettled or link.current:
            self.carried = 0 if link is None else link.deliveries
            self.idle_since = now
        return float(now - self.idle_since)

    def over(self, forwarder: Core, error: Error | None, closed: bool) -> None:
        """Report the end of the lane, so that the base link takes over the lane's messages."""
        self.network.outward.lane_ended(self)

    def retire(self) -> None:
        """Stop new messages on the link, and end the link once all sent messages are settled."""
        if self.is_leaving or self.consumer is None:
            return
        self.is_leaving = True
        detach.quiesce_consumer(self.network.forwarder, self.consumer)
        if not self.end_if_quiet():
            self.network.outward.leaving[self] = None

    def end_if_quiet(self) -> bool:
        """End the link if none of its deliveries is under way; return whether it has ended."""
        link = self.link
        if not self.is_over and link is not None and link.unsettled == 0 and link.current is None:
            self.detach()
        return self.is_over
