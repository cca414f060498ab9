"""Neighbours of the router: connect the routing protocol to the connections and the core.

The protocol itself knows neither connections nor core. This module passes messages and notices of
connections to the protocol, sends the messages that the protocol makes, and enters the changes of
the network into `RoutingState` for the core. The messages of a turn are sent together, at the end
of the turn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import count
from typing import Final

from router.control.network.changes import (
    Change,
    Conflict,
    InterestChanged,
    LimitReached,
    LinkFailed,
    PathsChanged,
    Send,
)
from router.control.network.edge_ids import EdgeIds
from router.control.network.endpoint_costs import Endpoint, EndpointCosts
from router.control.network.incoming import Incoming
from router.control.network.interest_queue import InterestQueue
from router.control.network.last_anomalies import LastAnomalies
from router.control.network.limits import Limits
from router.control.network.outboxes import STUCK_S, Outboxes
from router.control.network.path_news import PathNews
from router.control.network.peerings import ControlEvents, EdgeConnections, Peering
from router.control.network.protocol import Protocol
from router.control.network.recurring import OccurrenceCounter
from router.control.network.timing import Timing
from router.core.forwarding.forward import Forwarder
from router.core.links import control_links
from router.core.routers.membership import EDGE, ROLES, Membership, Peer, check_peer
from router.core.routers.news import (
    AnnouncementsIgnored,
    DuplicateRouterId,
    NeighbourMeasured,
    News,
    TableChanged,
)
from router.core.routers.routing_state import Interest
from router.engine import opening
from router.engine.connection import Connection
from router.engine.events import ConnectionClosed, ConnectionOpened, OpenReceived
from router.engine.failures import NetworkCondition
from router.engine.link import Link
from router.engine.states import ConnectionState
from router.errors import AmqpError, Scope

# Most keys wanted here to advertise at a time.
MOST_TOLD: Final = 1024
# After a stall of this length, peers get more time to accept messages. The protocol itself gives
# neighbours more time to send them.
STALL_S: Final = 1.0
DEFAULTS: Final = Limits()
OPEN_RCVD = int(ConnectionState.OPEN_RCVD)


class Neighbours:
    """Handler of the connections to other routers; `membership` is the identity of this router."""

    def __init__(
        self,
        forwarder: Forwarder,
        membership: Membership,
        timing: Timing,
        now: float,
        limits: Limits = DEFAULTS,
    ) -> None:
        self.forwarder = forwarder
        self.reach = forwarder.reach
        self.membership = membership
        self.timing = timing
        self.protocol: Protocol | None = None
        if membership.mode == "interior":
            self.protocol = Protocol(
                membership.router, membership.instance, timing, now, membership.features, limits
            )
            self.protocol.links.is_full = lambda link: (
                (peering := self.peerings.get(link.number)) is not None and peering.is_full
            )
            self.protocol.links.is_behind = lambda link: (
                (peering := self.peerings.get(link.number)) is not None and peering.is_behind
            )
        self.edges: EdgeConnections | None = None
        self.peerings: dict[int, Peering] = {}
        # observers of the network's news, for logs
        self.seen = LastAnomalies(forwarder.turn)
        self.watchers: list[Callable[[News], None]] = [self.seen.heard]
        self.conflicts = 0
        # number of changes of the paths
        self.changes = 0
        self.refused = 0
        self._edge_ids = EdgeIds(self.reach, self._fail, self._conflict_seen, lambda: self.now)
        self._recurring = OccurrenceCounter()
        self._costs = EndpointCosts()
        self._path_news = PathNews()
        self._looked_at = now
        self._by_connection: dict[Connection, Peering] = {}
        self._numbers = count(1)
        self.outboxes = Outboxes()
        # whether to ask the protocol for changes at the end of the turn
        self._is_due = True
        # keys wanted elsewhere that are not noted yet; and whether this turn may note some
        self._news = InterestQueue(self.reach, self._interest)
        self._may_want = False
        # messages of neighbours to process; and whether this turn may process some
        self.incoming = Incoming(
            forwarder,
            self.protocol,
            lambda: self.edges,
            self._news,
            partial(self.outboxes.count, "in"),
            lambda peering, error: self._fail(peering, error.condition, error.description),
        )
        self._may_go_on = False
        # schedules a call of `go_on`, because work is left
        self.schedule_network_work: Callable[[], None] = lambda: None
        # connections to close at the end of the turn, with condition and reason
        self._failing: list[tuple[Peering, str, str]] = []
        self.reach.on_own_change = self._note

    @property
    def now(self) -> float:
        """Return the turn's time."""
        return float(self.forwarder.turn.now)

    def set_timing(self, timing: Timing) -> None:
        """Set the intervals and time limits of the routing protocol."""
        self.timing = timing
        if self.protocol is not None:
            self.protocol.set_timing(timing, self.now)
            self._note()

    def set_limits(self, limits: Limits) -> None:
        """Set the limits on the data kept from neighbours' advertisements."""
        if self.protocol is not None:
            self.protocol.set_limits(limits)

    def change_costs(self, costs: Mapping[Endpoint, int | None]) -> None:
        """Change costs by endpoint (listener or connector); None means that it was removed."""
        self._costs.change(costs)
        if self.protocol is not None:
            for peering in self.peerings.values():
                cost = self._costs.of(peering.connection)
                self.protocol.links.set_cost(peering.number, cost, self.now)
            self._note()

    def _note(self) -> None:
        self._is_due = True

    def _interest(self, router: str, key: str) -> Interest | None:
        assert self.protocol is not None
        return self.protocol.mobile.interest(router, key)

    @property
    def is_synced(self) -> bool:
        """Return whether all connected neighbours have sent their view of the network."""
        protocol = self.protocol
        if protocol is None:
            return True
        # of two connections to one neighbour only one is compared
        synced = {
            peering.peer.router
            for peering in self.peerings.values()
            if protocol.in_sync(peering.number)
        }
        return all(
            peering.is_edge or peering.peer.router in synced for peering in self.peerings.values()
        )

    # Events of connections.

    def event_received(self, connection: Connection, event: object) -> None:
        """Handle a connection's event, such as its open, after the core has handled the event."""
        if connection.settings.role not in ROLES:
            return
        if isinstance(event, OpenReceived):
            if connection.state == OPEN_RCVD:
                self._judge_open(connection)
        elif isinstance(event, ConnectionOpened):
            self._opened(connection)
        elif isinstance(event, ConnectionClosed):
            self._closed(connection, event)

    def _judge(self, connection: Connection) -> Peer:
        """Return the peer's identity; raise `AmqpError` if the peer cannot be a neighbour."""
        peer = check_peer(
            self.membership, connection.settings, connection.is_client, connection.remote_open
        )
        if peer.mode == EDGE:
            self._edge_ids.judge(peer)
        return peer

    def _judge_open(self, connection: Connection) -> None:
        try:
            self._judge(connection)
        except AmqpError as error:
            self._refused(connection, error)
            opening.refuse(connection, error)

    def _refused(self, connection: Connection, error: AmqpError) -> None:
        self.refused += 1
        if error.condition == NetworkCondition.DUPLICATE_ID:
            where = f" (refused: {connection.name})"
            self._conflict_seen(connection.remote_open.container_id, error.description, where)

    def _conflict_seen(self, router: str, why: str, where: str = "") -> None:
        self.conflicts += 1
        times = self._recurring.count((router, why), self.now)
        self._tell(DuplicateRouterId(router, why + where, times))

    def _opened(self, connection: Connection) -> None:
        try:
            peer = self._judge(connection)
        except AmqpError as error:
            self._refused(connection, error)
            connection.close(error)
            return
        peering = Peering(next(self._numbers), connection, peer, self.now)
        heard = ControlEvents(peering, self._received, self._lost)
        peering.control = control_links.ControlLink(connection, self.membership.router, heard)
        self.incoming.resting.came(peering)
        self.peerings[peering.number] = self._by_connection[connection] = peering
        if peer.mode == EDGE:
            self._edge_ids.came(peering)
        try:
            peering.control.begin()
        except AmqpError as error:
            self._fail(peering, error.condition, error.description)
            return
        if peering.is_edge:
            if self.edges is not None:
                self.edges.connection_came(connection, peer.router, peer.features)
        elif self.protocol is not None:
            self.protocol.link_up(
                peering.number,
                peer.router,
                peer.instance,
                self._costs.of(connection),
                self.now,
                peer.version,
                peer.cost,
            )
        self._note()

    def _closed(self, connection: Connection, event: ConnectionClosed) -> None:
        peering = self._by_connection.pop(connection, None)
        if peering is None:
            return
        peering.is_over = True
        self.incoming.inboxes.drop(peering)
        del self.peerings[peering.number]
        self._edge_ids.left(peering)
        if peering.is_edge:
            if self.edges is not None:
                self.edges.connection_left(connection)
        elif self.protocol is not None:
            self.protocol.link_down(peering.number, self.now)
        self._note()

    def fail(self, connection: Connection, error: AmqpError) -> None:
        """Close a connection to another router with an error, at the end of the turn."""
        peering = self._by_connection.get(connection)
        if peering is not None:
            self._fail(peering, error.condition, error.description)

    def _fail(self, peering: Peering, condition: str, why: str) -> None:
        self._failing.append((peering, condition, why))
        self._note()

    # Control links.

    def attach_received(self, link: Link) -> None:
        """Answer a control link that a peer has attached; raise `AmqpError` to refuse it."""
        peering = self._by_connection.get(link.session.connection)
        if peering is None:
            control_links.refuse(link)
            return
        peering.control.attach_received(self.forwarder, link)

    def send(self, connection: Connection, octets: bytes) -> None:
        """Queue an encoded message on the control link of a connection."""
        peering = self._by_connection.get(connection)
        if peering is not None:
            most = control_links.MAX_QUEUED_TO_EDGE
            self.outboxes.add(peering, lambda: octets, self.now, most)

    def _received(self, peering: Peering, octets: bytes) -> None:
        if not peering.is_over:
            self._may_go_on |= self.incoming.received(peering, octets)
            self._note()

    def _lost(self, peering: Peering, why: str) -> None:
        self._fail(peering, NetworkCondition.CONTROL_LINK, why)

    # The end of a turn.

    def finish(self) -> bool:
        """Send the messages of this turn; return whether there are changes for the core."""
        has_changed, was_due, may_go_on = False, self._is_due, self._may_go_on
        may_tell, self._may_go_on = was_due, False
        if may_go_on:
            has_changed = self._go_on()
        while self._is_due:
            self._is_due = False
            self._close_failed()
            if self.protocol is None:
                continue
            if may_tell and self.incoming.may_tell(len(self.reach.own_changes), self.now):
                may_tell = False
                self.protocol.want(self.reach.take_own_changes(MOST_TOLD), self.now)
            for change in self.protocol.take(self.now):
                has_changed |= self._act(change)
        if self._may_want:
            self._may_want = False
            self.incoming.resting.caused_by_teller()
            has_changed |= self._news.note(self.incoming.resting.most_noted()) > 0
        for peering in self.outboxes.flush(self.now, is_all=may_go_on):
            if self.protocol is not None:
                self.protocol.has_room_again(peering.number)
                self._note()
        if may_go_on or was_due or self.outboxes or self.forwarder.network.is_behind:
            if self.is_behind:
                self.schedule_network_work()
        if not has_changed:
            self.incoming.resting.end_turn()
        return has_changed

    def _go_on(self) -> bool:
        """Do some of the deferred work; return whether the core has to act on it."""
        # messages first, so that their effects are advertised in the same turn
        has_changed = self.incoming.process(self.now)
        if self.protocol is not None:
            self.protocol.work(self.now, self.incoming.resting.most_at_once())
        self._note()
        # messages of edges may have changed what the core has to do
        return has_changed or bool(self.forwarder.network_due)

    @property
    def is_behind(self) -> bool:
        """Return whether work is left for later turns."""
        if self._news or self.incoming or self.forwarder.network.is_behind:
            return True
        if self.protocol is not None and (self.protocol.is_behind or self.reach.own_changes):
            return True
        return self.outboxes.can_flush

    def go_on(self, now: float) -> None:
        """Allow `finish` to do some of the deferred work in this turn."""
        self._may_want = bool(self._news)
        self._may_go_on = True
        if self.protocol is not None and self.reach.own_changes:
            self._note()

    def _close_failed(self) -> None:
        failing, self._failing = self._failing, []
        for peering, condition, why in failing:
            if not peering.is_over:
                peering.connection.close(AmqpError(condition, why, Scope.CONNECTION))

    def _act(self, change: Change) -> bool:
        """Put an output of the protocol into effect; return whether it concerns the core."""
        if isinstance(change, Send):
            peering = self.peerings.get(change.link)
            if peering is not None and peering.admit(change.message):
                self.outboxes.say(peering, change.message, self.now)
        elif isinstance(change, PathsChanged):
            self._paths_changed(change)
            return True
        elif isinstance(change, InterestChanged):
            # if other keys wait already, these have to wait for the next `go_on`
            self._may_want = self._may_want or not self._news
            self._news.add(change.router, change.keys, whole=change.whole)
            self.incoming.resting.has_news()
            self._tell(TableChanged(change.router, len(change.keys)))
        elif isinstance(change, LimitReached):
            told = AnnouncementsIgnored(
                change.what, change.of, change.kept, change.most, change.in_octets
            )
            self._tell(told)
        elif isinstance(change, LinkFailed):
            peering = self.peerings.get(change.link)
            if peering is not None:
                self._fail(peering, change.condition, change.why)
        elif isinstance(change, Conflict):
            self._conflict_seen(change.router, change.words)
        return False

    def _paths_changed(self, change: PathsChanged) -> None:
        self.changes += 1
        peerings = {router: self.peerings[link] for router, link in change.neighbours.items()}
        self.reach.set_paths(
            {router: peering.connection for router, peering in peerings.items()},
            change.paths,
            change.tree_of,
        )
        assert self.protocol is not None
        links = self.protocol.links.by_number
        neighbours = {
            router: (self.peerings[link].connection.number, links[link].cost)
            for router, link in change.neighbours.items()
        }
        for news in self._path_news.compare(neighbours, change.paths):
            self._tell(news)

    def _tell(self, news: News) -> None:
        for watcher in self.watchers:
            watcher(news)

    # The clock.

    def tick(self, now: float) -> None:
        """Do all work that is due at `now`, in seconds of the turn's clock."""
        self.go_on(now)
        self.incoming.tick(now)
        missed_s, self._looked_at = now - self._looked_at, now
        if missed_s > STALL_S:
            self.outboxes.extend_deadlines(now)
        self._edge_ids.tick(now)
        if self.protocol is not None and now >= self.protocol.next_due:
            self.protocol.tick(now)
            self._note()
            for link, trip_s in self.protocol.links.measured():
                self._tell(NeighbourMeasured(link.router, link.cost, trip_s))
        for peering in self.outboxes.stuck(now):
            why = f"the peer has accepted no control message for {STUCK_S:g} s"
            self._fail(peering, NetworkCondition.SILENT, why)
