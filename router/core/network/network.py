"""Part of the core that forwards messages to other routers of a network.

`Network` notes all changes that may affect where an address leads, and acts on them at the end of
the turn: it attaches links to the next routers (`outbound_links`, `out_links`), updates transits
(`transit`), and announces addresses that have receivers at this router (`interest`). The state of
the network is in `reach`, which the routing protocol writes. Nothing here runs per message.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from router.core.addresses import management_access, node_names, related
from router.core.addresses.next_hops import NextHops
from router.core.addresses.table import address_name
from router.core.deliveries import redelivery
from router.core.model.address import (
    BALANCED,
    CLOSEST,
    FALLBACK,
    HERE,
    MESH,
    MULTICAST,
    Address,
    Consumer,
    Producer,
)
from router.core.network import attaching as attaches
from router.core.network.farther_receivers import FartherReceivers
from router.core.network.idle_links import UnservedLinks
from router.core.network.interest import LocalInterest
from router.core.network.lane_numbers import Lane
from router.core.network.multicast import Multicast
from router.core.network.outbound_links import OutboundLinks
from router.core.network.transit import Transit
from router.core.routers import router_traffic
from router.core.routers.names import (
    address_in,
    edge_key_in,
    is_management_elsewhere,
    key_at,
    key_of,
    router_in,
)
from router.core.routers.routing_state import FALLBACK_PHASE, MOBILE, RoutingState
from router.engine.deferred import ITEMS_PER_STEP, DeferredPass

if TYPE_CHECKING:
    from router.core.ports import Core
    from router.engine.connection import Connection
    from router.engine.link import Link

# How many addresses are examined in a turn at most. Attaching a link counts as WORK_OF_LINK
# addresses; ROUTERS_AT_ONCE routers with receivers count as one address.
MOST_AT_ONCE = 128
WORK_OF_LINK = 8
ROUTERS_AT_ONCE = 64
# The treatments that other routers may announce; all of them exist at this router as well.
ANNOUNCED_TREATMENTS = (CLOSEST, BALANCED, MULTICAST)


class Network:
    """Interface of the core to the other routers; it is inactive unless `is_on`."""

    def __init__(self, forwarder: Core, reach: RoutingState) -> None:
        self.forwarder = forwarder
        self.reach = reach
        self.is_on = False
        self.interest = LocalInterest(forwarder)
        self.outward = OutboundLinks(self)
        self.farther = FartherReceivers(self)
        # a `Multicast`, and the object for edges (`control.edge`); None if there is none
        self.multicast: Any = None
        self.edges: Any = None
        # the sides of connections that lead to edges
        self.edge_sides: dict[Connection, int] = {}
        # applies to an address its rule or, without one, the treatment that other routers announce
        self.treat: Callable[[Address], None] = lambda _: None
        # links of other routers to addresses without a receiver, or without a path onward
        self.unserved = UnservedLinks(forwarder.turn)
        self.transit_counts = router_traffic.TransitCounts(self.reach.wanted)
        # how many links of other routers send to addresses here
        self._from_mesh: dict[Address, int] = {}
        # transits without incoming links in which messages still wait
        self.emptying: dict[Transit, None] = {}
        self._noted: OrderedDict[Address, None] = OrderedDict()
        self._tied = NextHops()
        # addresses to examine after paths have changed, and whether paths have changed again since
        self._again: list[Address] = []
        self._once_more = False
        self._have_paths_changed = False
        self._check = DeferredPass(ITEMS_PER_STEP)
        # how many links to other routers have been attached
        self.links_made = 0

    def turn_on(self) -> None:
        """Join the network, and announce this router's addresses that already have receivers."""
        if self.is_on:
            return
        self.is_on = True
        self.multicast = Multicast(self.forwarder)
        table = self.forwarder.table
        table.hint = self.hint
        self.reach.on_paths.append(self.paths_changed)
        self.reach.on_wanted.append(self.wanted_changed)
        for address in table.addresses():
            for consumer in address.consumers:
                self.interest.joined(consumer)
            self.address_changed(address)

    def next_number(self) -> int:
        """Return a number that no other link of this router has in its name."""
        self.links_made += 1
        return self.links_made

    def side_of(self, connection: Connection) -> int:
        """Return the side of the network that the peer of a connection is on."""
        if attaches.is_between_routers(connection):
            return MESH
        return self.edge_sides.get(connection, HERE)

    def attach_received(self, link: Link) -> bool:
        """Answer or refuse an attach if it comes from another router; return whether it does."""
        if not attaches.is_of_router(link):
            return False
        attaches.attach_received(self.forwarder, link)
        return True

    def takes(self, link: Link, text: str, *, is_sender: bool) -> bool:
        """Return whether a peer may attach a link; an edge refuses some of its interior's links."""
        connection = link.session.connection
        return self.edges is None or self.edges.takes(connection, text, is_sender=is_sender)

    # Changes.

    def consumer_joined(self, consumer: Consumer) -> None:
        """Note that a consumer has joined its address."""
        if self.is_on:
            self.interest.joined(consumer)
        if self.edge_sides:
            self.outward.lanes.consumer_joined(consumer)
        self.address_changed(consumer.address)

    def consumer_left(self, consumer: Consumer) -> None:
        """Note that a consumer has left its address."""
        if self.is_on:
            self.interest.left(consumer)
        self.outward.lanes.consumer_left(consumer)
        self.address_changed(consumer.address)

    def producer_joined(self, address: Address, producer: Producer) -> None:
        """Note that a producer has joined its address."""
        if producer.side == MESH:
            self._from_mesh[address] = self._from_mesh.get(address, 0) + 1
        self.address_changed(address)

    def producer_left(self, address: Address, producer: Producer) -> None:
        """Note that a producer has left its address."""
        if producer.side == MESH:
            left = self._from_mesh.get(address, 0) - 1
            if left > 0:
                self._from_mesh[address] = left
            else:
                self._from_mesh.pop(address, None)
        if address.transit is not None:
            address.transit.remove(producer)
        elif self.multicast is not None:
            self.multicast.sender_left(producer)
        self.address_changed(address)

    def address_changed(self, address: Address) -> None:
        """Note that the senders, receivers or treatment of an address have changed."""
        if self.is_on and address not in self._noted:
            self._noted[address] = None
            self._note()
        if self.edges is not None:
            self.edges.address_changed(address)

    def rules_applied(self, address: Address) -> None:
        """Note that rules were applied to an address, so its links to edges may have to change."""
        if self.edges is not None:
            self.edges.address_changed(address)

    def wanted_changed(self, key: str) -> None:
        """Note that other routers have started or stopped receiving from an address."""
        if self.multicast is not None:
            self.multicast.wanted_changed(key)
        told = address_in(key)
        if told is None:
            return
        table = self.forwarder.table
        name, phase = told
        for at in {phase, 0} if phase == FALLBACK else {phase}:
            address = table.in_use(name, at)
            if address is not None:
                self.treat(address)
                self.address_changed(address)

    def paths_changed(self) -> None:
        """Note that paths or neighbours have changed."""
        self._have_paths_changed = True
        self._note()
        if self.multicast is not None:
            self.multicast.paths_changed()

    def note_trees(self) -> None:
        """Note a change that concerns multicast trees."""
        self._note()

    def note_edges(self) -> None:
        """Note a change that concerns edges, or the uplinks of this edge."""
        self._note()

    def _note(self) -> None:
        if not self.forwarder.network_due:
            self.forwarder.network_due.append(self)

    # Work.

    def finish(self) -> None:
        """Act on the changes of this turn at its end; if there are many, over several turns."""
        left = MOST_AT_ONCE
        while self.forwarder.network_due:
            self.forwarder.network_due.clear()
            if self._have_paths_changed:
                self._have_paths_changed = False
                self.outward.paths_changed()
                self._once_more = True
            if self._once_more and not self._again:
                left -= self._look_again(left)
            if self.multicast is not None and left > 0:
                # leave room for the other work
                left -= self.multicast.finish((left + 1) // 2)
            while left > 0 and (self._noted or self._tied):
                made = self.links_made
                if self._noted:
                    address, _ = self._noted.popitem(last=False)
                    self._update_links(address)
                else:
                    address = self._tied.take()
                    self._update_tied(address)
                left -= 1 + WORK_OF_LINK * (self.links_made - made) + self._take_work()
                left -= self.reach.count(_key_at_routers(address)) // ROUTERS_AT_ONCE
            if self.edges is not None:
                self.edges.finish()

    @property
    def is_behind(self) -> bool:
        """Return whether there are noted changes that have not been acted on yet."""
        if self.multicast is not None and self.multicast.is_behind:
            return True
        return bool(self._noted or self._tied or self._again) or self._once_more

    def go_on(self) -> None:
        """Schedule more of the remaining changes for the end of this turn."""
        if self.is_behind:
            if len(self._noted) < MOST_AT_ONCE:
                self._look_again(MOST_AT_ONCE)
            self._note()

    def _take_work(self) -> int:
        """Return the work done for trees since the last call, measured in addresses."""
        return 0 if self.multicast is None else self.multicast.take_work()

    def _look_again(self, most: int) -> int:
        """Note up to `most` addresses whose paths may have changed; return the count examined."""
        if self._once_more and not self._again:
            self._once_more = False
            self._again = self.forwarder.table.all_addresses()
            self._again.reverse()
        count = min(most, len(self._again))
        for _ in range(count):
            # taken from the end, where no others have to be moved: the list is reversed
            address = self._again.pop()
            if self._is_in_use(address):
                self._noted[address] = None
        return count

    def _is_in_use(self, address: Address) -> bool:
        table, way = self.forwarder.table, address.transit
        if way is None:
            return bool(table.is_in_use(address))
        return table.transit.get((way.destination, key_of(address), way.lane)) is address

    def _update_links(self, address: Address) -> None:
        if address.transit is not None:
            address.transit.update()
            return
        self.interest.announce(address)
        if address.remote_ends and address.treatment != MULTICAST:
            self.unserved.update(address)
        if self.multicast is not None:
            self.multicast.address_changed(address)
        self.outward.update_links(address)
        if address.treatment == CLOSEST:
            address.keeps_octets = redelivery.keeps_messages(address) or self.farther.may_serve(
                address
            )
        self._note_tied(address)
        # the kept place of a lost link may have been the last use of the address
        self.forwarder.table.leave(address)

    def _note_tied(self, address: Address) -> None:
        """Note the addresses to which an address passes messages on, such as its fallback."""
        table = self.forwarder.table
        fallback_key = key_at(address.name, FALLBACK)
        if address.phase == 0 and self.reach.wanted.get(fallback_key):
            rule = table.rule_of(address.name)
            if rule is not None and rule.fallback:
                table.enter(address.name, is_fallback=True)
        self._tied.note(address)

    def _update_tied(self, address: Address) -> None:
        if self._is_in_use(address):
            self.outward.update_links(address)
            self.multicast.address_changed(address)
            self.forwarder.table.leave(address)

    def has_senders(self, address: Address) -> bool:
        """Return whether an address has senders whose messages may have to go to other routers."""
        if address.related_addresses is None:
            # the producers are not examined, because other routers may have very many links
            return len(address.producers) > self._from_mesh.get(address, 0)
        return related.has_senders(address)

    def open_route(self, address: Address, side: int) -> bool:
        """Open a link to receivers at other routers or edges; return whether there is such a link.

        `side` is the side of the network that the message to forward came from.
        """
        if self.edges is not None and self.edges.open_route(address, side):
            return True
        if not self.is_on or side == MESH:
            return False
        if address.treatment == MULTICAST:
            return bool(self.multicast.open_route(address))
        if address.transit is not None:
            return False
        self.outward.update_links(address, is_asked=True)
        return bool(self.outward.links(address))

    def is_denied(self, connection: Connection, name: str) -> bool:
        """Return whether a name is another router's management node that a connection may not use.

        This router checks that, because the other router cannot know the client's rights.
        """
        return management_access.is_denied_elsewhere(connection, name, self.reach.me)

    def phase_of(self, link: Link, name: str, phase: int) -> int:
        """Return the phase for a peer's link to a name, given the phase that its attach declares.

        Senders that may make changes at another router's management node have a phase of their own.
        """
        is_member = self.is_on or self.edges is not None
        if not is_member or self.forwarder.table.is_own_node(name):
            return phase
        return management_access.phase_of(link, name, self.reach.me, phase)

    def check_receiver(self, connection: Connection, name: str) -> None:
        """Raise `AmqpError` if a peer may not receive from a name, judging by the name alone."""
        is_edge = self.edges is not None and not self.is_on
        is_member = self.is_on or is_edge
        me = self.reach.me
        node_names.check_receiver(connection, name, me, is_member=is_member, is_edge=is_edge)

    def is_answered_elsewhere(self, text: str) -> bool:
        """Return whether an address is the management node of another router."""
        is_member = self.is_on or self.edges is not None
        return is_member and is_management_elsewhere(address_name(text), self.reach.me)

    def address_for(self, name: str, phase: int) -> Address | None:
        """Return the address for an anonymous sender's message that goes to other routers.

        Return None if no other router has receivers for it.
        """
        is_at_edge = self.edges is not None and self.edges.is_known(name)
        if not is_at_edge and not (self.is_on and self._is_known(name, phase)):
            return None
        address: Address | None = self.forwarder.table.enter(name, phase)
        return address

    def _is_known(self, name: str, phase: int) -> bool:
        router = router_in(name)
        if router is not None:
            return router != self.reach.me and self.reach.path(router) is not None
        reach = self.reach
        return any(
            reach.wanted.get(key)
            for key in (edge_key_in(name), key_at(name, phase), f"{MOBILE}{FALLBACK_PHASE}{name}")
            if key is not None
        )

    def hint(self, name: str) -> int | None:
        """Return the treatment that other routers announce for a name without a rule, or None."""
        wanted = self.reach.wanted
        for phase in range(10) if wanted else ():
            for _, _, interest in self.reach.nearest(key_at(name, phase)):
                if interest.treatment in ANNOUNCED_TREATMENTS:
                    return interest.treatment
        return None

    # Transits.

    def transit_to(self, destination: str, name: str, phase: int, lane: Lane) -> Address:
        """Return the address of a transit; make the transit if there is none."""
        transit = self.forwarder.table.transit
        key = destination, key_at(name, phase), lane
        address: Address | None = transit.get(key)
        if address is None:
            address = transit[key] = Transit.make(self, destination, name, phase, lane)
            self.transit_counts.add_transit(address)
        return address

    def forget_transit(self, way: Transit) -> None:
        """Forget a transit without links and deliveries."""
        address, table = way.address, self.forwarder.table
        key = way.destination, key_of(address), way.lane
        if table.transit.get(key) is address:
            del table.transit[key]
            router_traffic.add(table.retired, address)
            self.transit_counts.remove_transit(address)
            # the latency of deliveries of this turn is counted at its end
            address.successor = table.retired

    def tick(self, now: float) -> None:
        """Do all work that is due; called at each periodic check."""
        if not self.is_on:
            return
        self.farther.tick()
        self.outward.tick()
        if self.unserved or self.emptying:
            self._check.start(self.forwarder.turn.deferred, self._check_due())
        if self.multicast is not None:
            self.multicast.tick(now)

    def _check_due(self) -> Iterator[None]:
        """Check links without receivers and emptying transits, one in each step."""
        ways, self.emptying = self.emptying, {}
        for way in ways:
            self.address_changed(way.address)
            yield
        yield from self.unserved.due()


def _key_at_routers(address: Address) -> str:
    """Return the key under which other routers announce receivers of an address."""
    return edge_key_in(address.name) or key_of(address)
