"""Attach, replace and give up the links that lead to other routers, for each address.

Which links should exist depends on the senders at this router, the receivers at other routers and
the paths to them (`destinations`). `update_links` updates the links of an address, at the end of
each turn in which one of these has changed.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from itertools import count
from typing import TYPE_CHECKING

import attrs

from router.amqp.performatives import Error
from router.core.addresses import related
from router.core.deliveries.sides import serves
from router.core.model.address import CLOSEST, FALLBACK, MESH, MULTICAST, Address
from router.core.network.farther_receivers import MAX_ROUTERS
from router.core.network.lane_links import LaneLink
from router.core.network.lane_numbers import FIRST_LANE
from router.core.network.lanes import IDLE_S, Lanes
from router.core.network.out_links import OutLink
from router.core.routers.names import edge_key_in, key_of, router_in
from router.core.routers.routing_state import NEAREST, Path
from router.engine.deferred import ITEMS_PER_STEP, DeferredPass, pop_from_end, pop_items
from router.errors import AmqpError

if TYPE_CHECKING:
    from router.core.network.network import Network

# An address, and a router that its messages go to.
Way = tuple[Address, str]
# How many of the nearest routers share balanced messages.
MAX_DESTINATIONS = NEAREST
# How often the links of an address without senders are checked.
CHECK_S = 1.0
# How long to wait before a link is attached again after the other router has refused or detached
# it. The time doubles until a link has lasted: a router may accept a link and find out only later
# that it has no receiver for it.
RETRY_S = 0.5
LONGEST_RETRY_S = 4.0
LASTING_S = 2.0


@attrs.frozen
class RemoteDestination:
    """Path to a router that messages for an address should go to."""

    path: Path
    shows: bool = False


class OutboundLinks:
    """Table of the links from addresses and transits to other routers, by destination."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._links: dict[Address, dict[str, OutLink]] = {}
        # the additional lanes of these links
        self.lanes = Lanes(network)
        # links that end once all their deliveries are settled
        self.leaving: OrderedDict[LaneLink, None] = OrderedDict()
        # addresses that have links but no senders, and when they are checked next
        self._idle: OrderedDict[Address, float] = OrderedDict()
        # when each link that ended unexpectedly may be tried again, and after what delay
        self._retries: dict[Way, tuple[float, float]] = {}
        # heap of the times at which these are due
        self._moments: list[tuple[float, int, Way]] = []
        # these distinguish moments at the same time, because addresses cannot be compared
        self._numbers = count()
        self._check = DeferredPass(ITEMS_PER_STEP)
        # how often an attach had to be tried again later
        self.retries = 0

    def addresses(self) -> list[Address]:
        """Return the addresses that have links."""
        return list(self._links)

    def links(self, address: Address) -> list[OutLink]:
        """Return the links of an address that accept new messages."""
        return list(self._links.get(address, {}).values())

    def link_to(self, address: Address, destination: str) -> OutLink | None:
        """Return the link of an address that leads to a router, or None."""
        return self._links.get(address, {}).get(destination)

    def retry_s(self, address: Address, destination: str) -> float | None:
        """Return in how many seconds a failed link is attached again; None without a failure."""
        found = self._retries.get((address, destination))
        if found is None:
            return None
        return max(0.0, found[0] - float(self._network.forwarder.turn.now))

    def has_senders(self, address: Address) -> bool:
        """Return whether an address has senders whose messages may have to go to other routers."""
        return bool(self._network.has_senders(address))

    def destinations(self, address: Address) -> Mapping[str, RemoteDestination]:
        """Return the other routers that messages to an address should go to, nearest first."""
        reach = self._network.reach
        if address.treatment == MULTICAST or not reach.paths or related.is_exchange(address):
            return {}
        router = router_in(address.name)
        if router is not None and router != reach.me:
            path = reach.path(router)
            return {} if path is None else {router: RemoteDestination(path)}
        if self._network.forwarder.table.is_own_node(address.name):
            return {}
        places = reach.nearest(edge_key_in(address.name) or key_of(address))
        if self._network.farther.is_open(address):
            places = places[:MAX_ROUTERS]
        elif address.treatment == CLOSEST and address.phase != FALLBACK and places:
            if self._is_served_here(address):
                return {}
            nearest = places[0][0]
            places = [place for place in places if place[0] == nearest]
        return {
            router: RemoteDestination(reach.paths[router], interest.shows)
            for _, router, interest in places[:MAX_DESTINATIONS]
            if router != reach.me
        }

    def _is_served_here(self, address: Address) -> bool:
        """Return whether every sender has a receiver at this router or at an edge."""
        nearby = [each for each in address.consumers if each.side != MESH]
        if not nearby:
            return False
        sides = {producer.side for producer in address.producers if producer.side != MESH}
        return all(any(serves(each, side) for each in nearby) for side in sides)

    def update_links(self, address: Address, *, is_asked: bool = False) -> None:
        """Attach, replace and give up the links of an address, as `destinations` requires.

        `is_asked` is True if links are needed even if the address has no senders.
        """
        self.lanes.move_lost_lanes(address)
        links = self._links.get(address)
        has_senders = self.has_senders(address)
        needed = is_asked or has_senders or address.waiting.count > 0
        if links is None and not needed:
            return
        destinations = self.destinations(address)
        for destination, remote in destinations.items():
            self._update_one(address, destination, remote, needed=needed)
        for destination, link in list(self._links.get(address, {}).items()):
            if destination not in destinations:
                self.give_up(link)
        if address in self._links and not has_senders:
            self._idle.setdefault(address, self._network.forwarder.turn.now)
        else:
            self._idle.pop(address, None)

    def _update_one(
        self, address: Address, destination: str, remote: RemoteDestination, *, needed: bool
    ) -> None:
        link = self._links.get(address, {}).get(destination)
        connection = self._network.reach.connection(remote.path.via)
        if link is not None and link.connection is connection and link.shows == remote.shows:
            if remote.path.cost <= link.declared_cost:
                link.set_cost(remote.path.cost)
                return
        if needed:
            # first, so that waiting messages have a link to go to when the old one leaves
            self.open(address, destination, remote)
        if link is not None:
            self.give_up(link)

    def open(self, address: Address, destination: str, remote: RemoteDestination) -> OutLink | None:
        """Attach a link to a destination, and return it; None if that has to be tried later."""
        network = self._network
        connection = network.reach.connection(remote.path.via)
        now = network.forwarder.turn.now
        if connection is None or not connection.is_open():
            # the paths are about to change
            return None
        if self._retries.get((address, destination), (now, 0))[0] > now:
            return None
        lane = FIRST_LANE if address.transit is None else address.transit.lane
        link = OutLink(network, address, destination, remote.path.cost, remote.shows, lane)
        try:
            link.begin(connection)
        except AmqpError:
            # no channel is left, or the peer takes no frame of that size
            link.detach()
            self._note_retry(link)
            return None
        self._links.setdefault(address, {})[destination] = link
        self.lanes.joined(link)
        return link

    def give_up(self, link: OutLink) -> None:
        """Give up a link: it takes no new messages, and no longer counts as the address's link."""
        self._forget(link)
        link.retire()

    def _forget(self, link: OutLink) -> None:
        links = self._links.get(link.address)
        if links is not None and links.get(link.destination) is link:
            del links[link.destination]
            if not links:
                del self._links[link.address]
                self._idle.pop(link.address, None)
        self.lanes.retire_lanes(link)

    def link_ended(self, link: OutLink, error: Error | None) -> None:
        """Forget a link that has ended, and try again later if it was not given up."""
        self.leaving.pop(link, None)
        self._forget(link)
        if not link.is_leaving:
            self._note_retry(link)
            self._network.address_changed(link.address)

    def lane_ended(self, link: LaneLink) -> None:
        """Forget a lane that has ended, whether or not it was given up."""
        self.leaving.pop(link, None)
        self.lanes.link_ended(link)

    def _note_retry(self, link: OutLink) -> None:
        now = self._network.forwarder.turn.now
        self.retries += 1
        key = link.address, link.destination
        _, before_s = self._retries.get(key, (now, RETRY_S / 2))
        wait_s = min(before_s * 2, LONGEST_RETRY_S)
        self._retries[key] = now + wait_s, wait_s
        self._at(now + wait_s, key)

    def _at(self, moment: float, key: Way) -> None:
        heapq.heappush(self._moments, (moment, next(self._numbers), key))

    def paths_changed(self) -> None:
        """Forget failed attempts, because links may succeed on other paths."""
        if self._moments:
            deferred = self._network.forwarder.turn.deferred
            deferred.forget(pop_items(self._retries))
            moments = pop_from_end(self._moments)
            deferred.forget(moments)
            self._retries, self._moments = {}, []

    def tick(self) -> None:
        """End links that are no longer needed, and retry failed ones; called periodically.

        If there are very many, the last ones are checked in later turns.
        """
        if self.leaving or self._moments or self._idle or self.lanes:
            self._check.start(self._network.forwarder.turn.deferred, self._check_due())

    def _check_due(self) -> Iterator[None]:
        """Check each link that is being given up, has failed, or may be idle."""
        turn = self._network.forwarder.turn
        for _ in range(len(self.leaving)):
            if not self.leaving:
                break
            link = next(iter(self.leaving))
            self.leaving.move_to_end(link)
            link.end_if_quiet()
            yield
        while self._moments and self._moments[0][0] <= turn.now:
            moment, _, key = heapq.heappop(self._moments)
            self._check_retry(moment, key)
            yield
        while self._idle:
            address, due = next(iter(self._idle.items()))
            if due > turn.now:
                break
            self._check_idle(address, turn.now)
            yield
        yield from self.lanes.check_due()

    def _check_retry(self, moment: float, key: Way) -> None:
        """Try a failed link again, or forget that it has failed."""
        # the link may have failed once more, and been delayed again
        due, wait_s = self._retries.get(key, (moment + 1, 0.0))
        if moment == due:
            self._network.address_changed(key[0])
            self._at(due + max(wait_s, LASTING_S), key)
        elif moment == due + max(wait_s, LASTING_S):
            # the link has lasted since, or is no longer wanted
            del self._retries[key]

    def _check_idle(self, address: Address, now: float) -> None:
        """Give up the links of an address that have sent no messages for a while."""
        self._idle[address] = now + CHECK_S
        self._idle.move_to_end(address)
        if self.has_senders(address):
            # `update_links` handles it at the end of this turn
            return
        for link in self.links(address):
            idle_s = link.idle_s(now)
            if idle_s >= IDLE_S and not link.lanes and not address.waiting:
                self.give_up(link)
