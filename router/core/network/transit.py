"""Transits: paths through this router, from one router of the network to another.

There is a transit for each destination, address and lane. It has an `Address` of its own, which
cannot be found by name: the producers are links from other routers, and the only consumer is the
link to the next router. An incoming link gets credit only while its router is farther from the
destination than this router. Otherwise the link waits until that is so, or until its router has
found another path.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from typing import TYPE_CHECKING

from router.core.deliveries import credit, unsent
from router.core.model.address import BALANCED, Address, Producer
from router.core.network.lane_numbers import Lane
from router.core.network.out_links import OutLink
from router.core.network.outbound_links import RemoteDestination
from router.core.routers.routing_state import Path
from router.engine.deferred import CHANGES_AT_ONCE
from router.errors import AmqpError, Scope

if TYPE_CHECKING:
    from router.core.network.network import Network

# Dispatch's condition and description.
NO_ROUTE = "qd:no-route-to-dest"
NO_ROUTE_WORDS = "No route to the destination node"


class Transit:
    """Path through this router to one destination, for one address and one lane."""

    def __init__(self, network: Network, destination: str, address: Address, lane: Lane) -> None:
        self._network = network
        self.destination = destination
        self.lane = lane
        self.address = address
        address.transit = self
        # the cost that each link's attach has declared, and the link's capacity
        self._declared: dict[Producer, tuple[int, int]] = {}
        self._costs = _Costs()
        # links added since the last update of all links, and the cost and link of that update
        self._fresh: list[Producer] = []
        self._seen_by: tuple[int | None, OutLink | None] | None = None
        # whether an update of all links is under way, and whether another one has to follow
        self._is_under_way = False
        self._once_more = False
        self._is_releasing = False
        self.shows = False

    @classmethod
    def make(cls, network: Network, destination: str, name: str, phase: int, lane: Lane) -> Address:
        """Make a transit, and return its address."""
        address = Address(name, BALANCED, redelivers=False, phase=phase)
        return cls(network, destination, address, lane).address

    def add(self, producer: Producer, declared_cost: int, shows: bool) -> None:
        """Add a new incoming link; call `update` afterwards."""
        self._declared[producer] = declared_cost, producer.capacity
        self._costs.add(declared_cost)
        self._fresh.append(producer)
        self.shows = self.shows or shows

    def remove(self, producer: Producer) -> None:
        """Remove a link that has ended; call `update` afterwards."""
        declared_cost = self._declared.pop(producer, None)
        if declared_cost is not None:
            self._costs.remove(declared_cost[0])

    def update(self) -> None:
        """Update the link to the next router, and the credit of the incoming links."""
        address = self.address
        network = self._network
        outward = network.outward
        path = network.reach.path(self.destination)
        link = self._link()
        if self._is_emptying(link, path):
            # nothing else would notice when all messages have been forwarded
            network.emptying[self] = None
            return
        if path is None or self._costs.highest <= path.cost:
            # attaching a link nevertheless might lead to a loop
            if link is not None:
                outward.give_up(link)
                link = None
            if not self._declared and not address.resuming:
                self._release()
                if not address.waiting:
                    network.forget_transit(self)
        elif link is None or self._is_stale(link, path):
            fresh = outward.open(address, self.destination, RemoteDestination(path, self.shows))
            if link is not None:
                outward.give_up(link)
            link = fresh
        seen_by = None if path is None else path.cost, link
        if seen_by != self._seen_by:
            self._seen_by = seen_by
            self._fresh.clear()
            self._update_all()
        else:
            producers, self._fresh = self._fresh, []
            for producer in producers:
                self._update_one(producer)

    def _link(self) -> OutLink | None:
        """Return the link to the next router, or None."""
        links: list[OutLink] = self._network.outward.links(self.address)
        return links[0] if links else None

    def _update_all(self) -> None:
        """Update the credit of all links; if there are very many, over several turns."""
        if self._is_under_way:
            self._once_more = True
            return
        self._is_under_way = True
        deferred = self._network.forwarder.turn.deferred
        deferred.process_each(
            list(self._declared), self._update_one, self._all_updated, CHANGES_AT_ONCE
        )

    def _all_updated(self) -> None:
        self._is_under_way = False
        if self._once_more:
            # the first links were updated before the last change
            self._once_more = False
            self._update_all()

    def _update_one(self, producer: Producer) -> None:
        """Update the credit of a link, unless the link has left."""
        found = self._declared.get(producer)
        if found is None:
            return
        declared_cost, capacity = found
        network, link = self._network, self._link()
        path = network.reach.path(self.destination)
        if path is not None and (link is not None or declared_cost <= path.cost):
            network.unserved.discard(producer)
        else:
            network.unserved.add(producer)
        if link is None or declared_cost <= link.declared_cost:
            # its router has to stop sending
            producer.capacity = 0
            credit.revoke(producer.link)
        elif producer.capacity == 0:
            producer.capacity = capacity
            network.forwarder.credit.note(self.address, producer)

    def _is_emptying(self, link: OutLink | None, path: Path | None) -> bool:
        """Return whether no incoming links are left, and waiting messages can leave on the link."""
        is_open = link is not None and path is not None and not self._is_stale(link, path)
        return is_open and not self._declared and self.address.waiting.count > 0

    def _release(self) -> None:
        """Release waiting messages, because there is no path onward."""
        address = self.address
        if address.waiting and not self._is_releasing:
            self._is_releasing = True
            forwarder = self._network.forwarder
            unsent.settle_queue(
                forwarder, address, address.waiting, unsent.RELEASED, self._released
            )

    def _released(self) -> None:
        self._is_releasing = False
        # the transit was kept for the waiting messages
        self._network.address_changed(self.address)

    def _is_stale(self, link: OutLink, path: Path) -> bool:
        """Return whether the link to the next router has to be replaced by a new one."""
        return (
            link.connection is not self._network.reach.connection(path.via)
            or path.cost > link.declared_cost
            or link.shows != self.shows
            # with a lower declared cost, more incoming links could get credit
            or self._costs.has_any(path.cost, link.declared_cost)
        )


class _Costs:
    """Multiset of the costs that the attaches of incoming links have declared.

    Most links declare the same cost, however many there are.
    """

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self._in_order: list[int] = []

    @property
    def highest(self) -> int:
        """Return the highest cost, or -1 if there is none."""
        return self._in_order[-1] if self._in_order else -1

    def add(self, cost: int) -> None:
        """Count a link with this cost."""
        count = self._counts.get(cost, 0)
        self._counts[cost] = count + 1
        if count == 0:
            insort(self._in_order, cost)

    def remove(self, cost: int) -> None:
        """Stop counting a link with this cost."""
        self._counts[cost] -= 1
        if self._counts[cost] == 0:
            del self._counts[cost]
            del self._in_order[bisect_right(self._in_order, cost) - 1]

    def has_any(self, above: int, most: int) -> bool:
        """Return whether any cost is greater than `above`, and not greater than `most`."""
        place = bisect_right(self._in_order, above)
        return place < len(self._in_order) and self._in_order[place] <= most


def no_route() -> AmqpError:
    """Return the error for a link that has no path onward."""
    return AmqpError(NO_ROUTE, NO_ROUTE_WORDS, Scope.LINK)
