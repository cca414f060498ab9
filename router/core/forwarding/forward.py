"""Forwarding: send each frame that comes in by the link that its address leads to.

This is the program in miniature. A delivery's first frame is given to a consumer of its address
and written straight into that consumer's output; the frames after it follow. What cannot be
written now (no credit, a closed session window, a congested socket) waits, unassigned, at its
address, where the first consumer with room takes it (`relaying`, `queue_service`).

Outcomes return through `settlement`. `links.attach` decides which link is attached to which
address, and `credit` how much senders may send.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from router.amqp.peek import find_to
from router.amqp.reading import TransferFrame
from router.core.addresses import nodes
from router.core.addresses.exchanges import Exchanges
from router.core.addresses.link_names import LinkNames
from router.core.addresses.sources import SourceRules
from router.core.addresses.table import AddressTable, address_name
from router.core.deliveries import across, max_message_size, related_credit
from router.core.deliveries.credit import replenish, replenish_anonymous
from router.core.deliveries.redelivery import Redelivery
from router.core.forwarding import unblocking
from router.core.forwarding.distribution import Distributor
from router.core.forwarding.intake import Intake
from router.core.forwarding.pending_copies import PendingCopies
from router.core.link_routes.link_routes import LinkRoutes
from router.core.link_routes.remote_link_routes import RemoteLinkRoutes
from router.core.link_routes.routed_links import RoutedLinks
from router.core.links import attach, control_links, detach, refusals, resuming
from router.core.links.control_links import ControlEnd
from router.core.links.suspended import SuspendedTermini
from router.core.model import own_links, router_outcomes
from router.core.model.address import Address, Consumer, Producer
from router.core.model.backlog import Backlog
from router.core.model.split_table import SplitTable
from router.core.network.network import Network
from router.core.routers.names import MANAGEMENT
from router.core.routers.routing_state import RoutingState
from router.engine.account import Account
from router.engine.delivery import Delivery
from router.engine.link import IncomingLink, OutgoingLink
from router.engine.outbox import Turn
from router.engine.session import Session

MULTICAST = 2
# From this number of receivers on, an address's work is counted (docs/decisions/0022).
MANY_CONSUMERS = 32
# The work of a multicast's copy, in frames that come once a message.
COPY_WORK = 4


class Forwarder(Distributor):
    """Core of one router, shared by all its connections."""

    def __init__(
        self,
        table: AddressTable,
        turn: Turn,
        observer: Any,
        limit_bytes: int,
        link_names: LinkNames | None = None,
        terminus_limit_s: int = 0,
        router_id: str = "",
    ) -> None:
        super().__init__(Redelivery(turn, limit_bytes), Backlog(turn, limit_bytes))
        self.table = table
        self.spreads = PendingCopies(self)
        self.link_names = LinkNames() if link_names is None else link_names
        self.suspended = SuspendedTermini(turn, self.link_names, terminus_limit_s)
        self.sources = SourceRules()
        self.link_routes = LinkRoutes(table, turn)
        self.routed = RoutedLinks()
        self.reach = RoutingState(router_id)
        RemoteLinkRoutes(self.reach, self.link_routes)
        self.network = Network(self, self.reach)
        # the network, if it has work at the end of the turn
        self.network_due: list[Any] = []
        self.exchanges = Exchanges(table, self)
        # addresses that lost a receiver that may have taken larger messages than the others
        self.sizes_due: dict[Address, None] = {}
        # dynamic nodes that are deleted with their last message, each with a receiver that had one
        self.dying_nodes: dict[Address, Consumer | None] = {}
        # the account that is charged for each dynamic node, by its key
        self.node_accounts: SplitTable[str, Account] = SplitTable()
        # the router's own sessions that end at the end of the turn
        self.idle_sessions: list[Session] = []
        # takes the control links of other routers
        self.on_control: Callable[[Any], None] = control_links.refuse
        # hears of attaches, closes and the like (logs, metrics); never of deliveries
        self.observer = observer
        self.intake = Intake(limit_bytes)

    # Deliveries on their way to a receiver.

    def transfer_received(self, delivery: Delivery, frame: TransferFrame) -> None:
        """Send a frame on, or keep it until it can be sent."""
        if delivery.discarded:
            if delivery.parent is not None and delivery.settled:
                resuming.transfer_settled(self, delivery)
            return
        address = delivery.address
        if address is None:
            self._begin(delivery, frame)
            return
        address.counters.bytes_in += frame.end - frame.payload_at
        if delivery.scan is not None:
            sound = self.intake.follow(delivery, frame)
            if sound is None:
                refusals.reject_malformed(self, address, delivery)
                return
            frame = sound
        if delivery.copies is not None:
            if len(delivery.copies) > self.copies_at_once:
                self.spreads.follow(delivery, frame)
            else:
                self.follow_some(delivery, delivery.copies, frame)
            if delivery.complete and delivery.settled:
                delivery.copies = None
        else:
            self._follow(delivery, frame)

    def _begin(self, delivery: Delivery, frame: TransferFrame) -> None:
        """Start a delivery on its way, once all of its message's head has come."""
        link = delivery.incoming
        producer = link.owner
        address = producer.address
        if (frame.resume or link.terminus is not None) and delivery.scan is None:
            if link.is_routed and address is not None:
                self._begin_routed(address, delivery, frame)
                return
            if isinstance(link.terminus, ControlEnd):
                link.terminus.take(self, delivery, frame)
                return
            if resuming.handle_resumed_transfer(self, delivery, frame):
                return
        sound = self.intake.begin(delivery, frame)
        if sound is None and not self.intake.problem:
            return
        if address is None:
            address = self._address_of_message(delivery, producer, sound)
            if address is None:
                return
        delivery.address = address
        delivery.arrived = self.turn.now
        if not address.is_moving:
            self._note_moving(address)
        if self.outcomes.sampler is not None:
            self.outcomes.sampler.begin(delivery)
        address.counters.ingress += 1
        address.counters.bytes_in += delivery.size
        if delivery.settled:
            address.counters.presettled += 1
            link.presettled += 1
        if link.credit <= producer.low_mark:
            self.note_credit(address, producer)
        if sound is None:
            refusals.reject_malformed(self, address, delivery)
            return
        frame = sound
        if address.related_addresses is not None:
            address = self.elsewhere(address, delivery, producer, frame)
            if address is None:
                return
        if address.treatment == MULTICAST:
            if len(address.consumers) > MANY_CONSUMERS:
                # each gets a copy
                link.session.connection.count_work(COPY_WORK * len(address.consumers))
            self.fan_out(address, delivery, frame)
            return
        consumer = None
        if len(address.consumers) > MANY_CONSUMERS:
            # each of them may have to be examined
            link.session.connection.count_work(len(address.consumers))
        if address.remote_ends:
            if address.lanes:
                delivery.lane = self.lane_for(address, delivery, producer, frame)
            consumer = self.choose_across(address, delivery.size, producer.side, delivery.lane)
        elif address.waiting.count == 0:
            consumer = self.choose(address, delivery.size)
        if consumer is None:
            if not self.has_receiver(address, producer.side):
                self.no_destination(address, delivery)
                return
            if not self.has_taker(address, delivery.size, producer.side):
                max_message_size.refuse(self, address, delivery)
                return
            if address.lanes and delivery.lane == 0:
                # there may have been no link to another router until now
                delivery.lane = self.lane_for(address, delivery, producer, frame)
            self.backlog.hold(delivery, frame.octets, frame.payload_at, frame.end)
            if producer.address is None:
                producer.waiting += 1
            self.wait(address, delivery)
            return
        self._start(consumer, delivery, frame)
        if address.keeps_octets and delivery.complete:
            self.redelivery.keep(delivery, frame.octets, frame.payload_at, frame.end)

    def _address_of_message(
        self, delivery: Delivery, producer: Producer, frame: TransferFrame | None
    ) -> Address | None:
        """Return the address of an anonymous sender's message: its `to` (section 2.6 of the relay).

        A router's annotation takes precedence. A malformed message (no frame) has nowhere to go.
        """
        link = delivery.incoming
        if link.credit <= producer.low_mark:
            self.note_credit(None, producer)
        if frame is None:
            return self.table.unused
        name = None
        phase = 0
        if delivery.passage is not None:
            name = delivery.passage.to
            phase = delivery.passage.phase
        if name is None:
            name = find_to(frame.octets, frame.payload_at, frame.end)
        if name is None:
            refusals.reject_unaddressed(self, delivery, router_outcomes.NO_TO)
            return None
        redirected = self.table.redirect_message(name)
        if redirected is not None:
            refusals.reject_unaddressed(self, delivery, redirected)
            return None
        if name.endswith(MANAGEMENT):
            phase = self.network.phase_of(link, address_name(name), phase)
        address = self.table.find(name, phase)
        if name.endswith(MANAGEMENT) and self.network.is_denied(
            link.session.connection, address_name(name)
        ):
            address = None
        if address is None:
            refusals.reject_unaddressed(self, delivery, router_outcomes.NOT_FOUND)
            return None
        if address is self.table.unused:
            elsewhere = self.network.address_for(address_name(name), phase)
            return address if elsewhere is None else elsewhere
        return address

    def open_route(self, address: Address, side: int) -> bool:
        """Open a link to receivers at another router; return whether there are any."""
        is_open: bool = self.network.open_route(address, side)
        return is_open

    def open_lane(self, address: Address, lane: int) -> bool:
        """Open a lane to each router that an address leads to; return whether it has lanes."""
        is_open: bool = self.network.outward.lanes.open(address, lane)
        return is_open

    def transfer_aborted(self, delivery: Delivery) -> None:
        """Abort a delivery towards each receiver that got a part of it."""
        detach.transfer_aborted(self, delivery)

    # Credit, room and everything rare.

    def credit_received(self, link: OutgoingLink) -> None:
        """Serve a receiver whose credit has changed, and note its senders' credit."""
        consumer = link.owner
        if consumer is not None:
            if consumer.resuming is not None:
                attach.go_on(self, consumer)
            elif consumer.waiting.count or link.current is not None or link.drain:
                self.serve(consumer)
            self.note_credit(consumer.address, None)

    def sent(self, now: float) -> None:
        """Count the latency of deliveries that came in this turn and were sent in it.

        Those that had to wait were counted when they left, and `egress_mark` moved on.
        """
        age_s = now - self.turn.now
        for address in self.moving:
            address.is_moving = False
            count = address.counters.egress - address.egress_mark
            if count:
                counters = address.counters if address.successor is None else address.successor
                counters.count_forwarded(age_s, count)
        self.moving.clear()
        if self.outcomes.sampler is not None:
            self.outcomes.sampler.sent(now)

    def finish_turn(self) -> None:
        """Finish a turn after all that came in: grant credit before outputs are sent."""
        self.outcomes.end_run()
        if self.network_due:
            self.network.finish()
        if self.sizes_due:
            max_message_size.refuse_too_large(self)
        self.share_credit()
        if self.dying_nodes:
            nodes.delete_empty(self)
        if self.idle_sessions:
            own_links.end_idle(self)

    def share_credit(self) -> None:
        """Grant credit to the senders of addresses whose state has changed."""
        due, self.credit_due = self.credit_due, []
        tied_due: list[Address] = []
        for item in due:
            if isinstance(item, Address):
                item.credit_due = False
                if item.related_addresses is None and item.remote_ends == 0:
                    replenish(item)
                elif item.related_addresses is None:
                    across.finish(self, item)
                else:
                    tied_due.append(item)
            else:
                replenish_anonymous(item)
        if tied_due:
            related_credit.finish(self, tied_due)

    def flow_received(self, link: IncomingLink) -> None:
        """Note a sender's flow: a drain is over, or credit was given back."""
        self.note_sender(link)

    def available(self, link: OutgoingLink) -> int:
        """Return how many deliveries wait for a receiver, at its address or for it alone."""
        consumer = link.owner
        if consumer is None:
            return 0
        count = int(consumer.waiting.count)
        return count + link.terminus.available() if link.is_routed else count

    def room_made(self, connection: Any, session: Any) -> None:
        """Serve links that waited for room in a socket or a session's window."""
        unblocking.room_made(self, connection, session)

    def event_received(self, connection: Any, event: Any) -> None:
        """Handle attaches, detaches and the like, then report them to the observer."""
        self.outcomes.end_run()
        attach.event_received(self, connection, event)
        self.observer.event_received(connection, event)
