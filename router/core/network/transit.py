"""Ways through this router: what comes from one router of the network and goes on to another.

For each destination, address and lane there is one, an address of its own that is in no table by
its name: its producers are links from routers before this one, and its only consumer is the link
to the next. Links are taken only while their routers are farther from the destination than this
one; one that is not gets no credit until that is so again, or its router has found another way.
"""

from __future__ import annotations

from typing import Any

from router.amqp.constants import Descriptor
from router.core import credit
from router.core.address import BALANCED, Address, Producer
from router.core.network.lane_numbers import Lane
from router.core.network.out_links import OutLink
from router.core.network.outward import Aim
from router.core.network.reach import Path
from router.errors import AmqpError, Scope

RELEASED = int(Descriptor.RELEASED)
# Dispatch's, as are the words.
NO_ROUTE = "qd:no-route-to-dest"
NO_ROUTE_WORDS = "No route to the destination node"


class Transit:
    """The way of what goes to one address at one destination, by one lane."""

    def __init__(self, network: Any, destination: str, address: Address, lane: Lane) -> None:
        self._network = network
        self.destination = destination
        self.lane = lane
        self.address = address
        address.transit = self
        # what each link's attach said of the cost from where it comes, and how much it may send
        self._said: dict[Producer, tuple[int, int]] = {}
        self.shows = False

    @classmethod
    def make(cls, network: Any, destination: str, name: str, phase: int, lane: Lane) -> Address:
        """The address of a new one."""
        address = Address(name, BALANCED, redelivers=False, phase=phase)
        return cls(network, destination, address, lane).address

    def add(self, producer: Producer, said: int, shows: bool) -> None:
        """A link has come; `see_to` is asked for afterwards."""
        self._said[producer] = said, producer.capacity
        self.shows = self.shows or shows

    def see_to(self) -> None:
        """Have the link to the next router, and credit for those before, as they should be."""
        address = self.address
        network = self._network
        outward = network.outward
        for producer in [each for each in self._said if each not in address.producers]:
            del self._said[producer]
        path = network.reach.path(self.destination)
        links = outward.links(address)
        link = links[0] if links else None
        if self._is_emptying(link, path):
            # nobody else looks whether all has gone on by now
            network.emptying[self] = None
            return
        if path is None or all(said <= path.cost for said, _ in self._said.values()):
            # an attach that led to another one all the same might go round and round
            if link is not None:
                outward.give_up(link)
                link = None
            if not self._said and not address.resuming:
                self._release()
                network.forget_transit(self)
        elif link is None or self._is_stale(link, path):
            fresh = outward.open(address, self.destination, Aim(path, self.shows))
            if link is not None:
                outward.give_up(link)
            link = fresh
        for producer, (said, capacity) in self._said.items():
            if path is not None and (link is not None or said <= path.cost):
                network.unserved.pop(producer, None)
            else:
                network.unserved.setdefault(producer, network.forwarder.turn.now)
            if link is None or said <= link.said:
                # it may send nothing any more
                producer.capacity = 0
                credit.stop(producer.link)
            elif producer.capacity == 0:
                producer.capacity = capacity
                network.forwarder.note_credit(address, producer)

    def _is_emptying(self, link: OutLink | None, path: Path | None) -> bool:
        """Whether nothing more comes, and what waits may go on by the link that there is."""
        is_open = link is not None and path is not None and not self._is_stale(link, path)
        return is_open and not self._said and self.address.waiting.count > 0

    def _release(self) -> None:
        """Give up what waits although nothing leads on, nor will."""
        forwarder, address = self._network.forwarder, self.address
        while address.waiting:
            delivery = address.waiting.popleft()
            forwarder.backlog.drop(delivery)
            delivery.discarded = True
            address.counters.count_outcome(RELEASED)
            forwarder.settle(delivery, RELEASED, b"")

    def _is_stale(self, link: OutLink, path: Path) -> bool:
        """Whether a link to the next router is to be replaced by one that says something else."""
        return (
            link.connection is not self._network.reach.connection(path.via)
            or path.cost > link.said
            or link.shows != self.shows
            # some that are to be taken would not be, by what its attach has said
            or any(path.cost < said <= link.said for said, _ in self._said.values())
        )


def no_route() -> AmqpError:
    """What a link is told that cannot go on."""
    return AmqpError(NO_ROUTE, NO_ROUTE_WORDS, Scope.LINK)
