"""Forwarding: send each received frame on a link that its address leads to.

This module shows the program in miniature. The first frame of a delivery is given to a consumer of
its address and written straight into the output of the consumer's connection; the later frames
follow. A delivery that cannot be written now (no credit, a closed session window, a congested
socket) waits at its address, assigned to no consumer, and the first consumer with room takes it
(`relaying`, `queue_service`).

Outcomes return through `settlement`. `links.attach` decides which link is attached to which
address, and `credit` decides how much senders may send.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from router.amqp.peek import find_to
from router.amqp.reading import TransferFrame
from router.amqp.reading_disposition import DispositionFrame
from router.core.addresses import nodes
from router.core.addresses.exchanges import Exchanges
from router.core.addresses.link_names import LinkNames
from router.core.addresses.reply_nodes import ReplyNodes
from router.core.addresses.sources import SourceRules
from router.core.addresses.table import AddressTable, address_name
from router.core.deliveries import max_message_size
from router.core.deliveries.outcomes import OutcomeCounter
from router.core.deliveries.redelivery import Redelivery
from router.core.forwarding import unblocking
from router.core.forwarding.batches import Batches
from router.core.forwarding.credit_sharing import CreditSharing
from router.core.forwarding.distribution import Distributor
from router.core.forwarding.intake import Intake
from router.core.forwarding.pending_copies import PendingCopies
from router.core.forwarding.queue_service import QueueService
from router.core.forwarding.relaying import Relay
from router.core.forwarding.settlement import Settler
from router.core.link_routes.link_routes import LinkRoutes
from router.core.link_routes.remote_link_routes import RemoteLinkRoutes
from router.core.link_routes.routed_links import RoutedLinks
from router.core.links import attach, control_links, detach, refusals, resuming
from router.core.links.cbs_answers import ReplyEnd
from router.core.links.message_end import MessageEnd
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
from router.engine.events import ConnectionOpened
from router.engine.handler import Handler
from router.engine.link import IncomingLink, OutgoingLink
from router.engine.outbox import Turn
from router.engine.session import Session

if TYPE_CHECKING:
    from router.core.ports import Observer
    from router.engine.connection import Connection
    from router.engine.events import Event
    from router.engine.link import Link
    from router.errors import AmqpError

MULTICAST = 2
# the same value as in `amqp.batches`
BATCH_FORMAT = 0x80013700
# The work of an address with more receivers than this is counted (docs/decisions/0022).
MANY_CONSUMERS = 32
# The work of making a multicast's copy, as a number of frames (`Connection.deduct_work`).
COPY_WORK = 4


class Forwarder(Handler):
    """Core of one router, shared by all its connections.

    The engine calls it, and its parts do the work: `distribution` and `relay` send the frames of a
    delivery, `queues` keeps deliveries that wait, `settlement` returns the outcome, and `credit`
    lets senders send again.
    """

    def __init__(
        self,
        table: AddressTable,
        turn: Turn,
        observer: Observer,
        limit_bytes: int,
        link_names: LinkNames | None = None,
        terminus_limit_s: int = 0,
        router_id: str = "",
    ) -> None:
        self.turn = turn
        self.table = table
        self.redelivery = Redelivery(turn, limit_bytes)
        self.backlog = Backlog(turn, limit_bytes)
        self.outcomes = OutcomeCounter(turn)
        self.credit = CreditSharing(self)
        self.settlement = Settler(self, self.credit)
        self.queues = QueueService(self, self.settlement, self.credit)
        self.relay = Relay(self, self.queues)
        self.distribution: Distributor = Distributor(self, self.settlement, self.queues, self.relay)
        self.distribution.pending_copies = PendingCopies(self)
        self.batches = Batches(self)
        self.link_names = LinkNames() if link_names is None else link_names
        self.suspended = SuspendedTermini(turn, self.link_names, terminus_limit_s)
        self.sources = SourceRules()
        # whether an anonymous sender's link is detached if a settled message has no usable address
        self.detaches_unroutable = False
        self.link_routes = LinkRoutes(table, turn)
        self.routed = RoutedLinks()
        self.reach = RoutingState(router_id)
        RemoteLinkRoutes(self.reach, self.link_routes)
        self.network = Network(self, self.reach)
        # the network, if it has work at the end of the turn
        self.network_due: list[Network] = []
        self.exchanges = Exchanges(table, self)
        # receivers of answers of the router's management node
        self.reply_nodes = ReplyNodes()
        # addresses that lost a receiver which may have accepted larger messages than the others
        self.sizes_due: dict[Address, None] = {}
        # dynamic nodes that are deleted once they have no message any more, each with a receiver
        # that had an unsettled one at the last check
        self.dying_nodes: dict[Address, Consumer | None] = {}
        # the account that is charged for each dynamic node, by the key of the node's address
        self.node_accounts: SplitTable[str, Account] = SplitTable()
        # the router's own sessions that end at the end of the turn
        self.idle_sessions: list[Session] = []
        # accepts the control links of other routers
        self.on_control: Callable[[Link], None] = control_links.refuse
        # decides about peers' opens: it may set a connection's access, or return why the
        # connection is refused or, if this router has opened it, closed
        self.on_open: Callable[[Connection], AmqpError | None] = lambda _: None
        # decides whether a peer may learn where the host of its open has moved
        self.may_redirect: Callable[[Connection], bool] = lambda _: True
        # is notified of attaches, closes and similar events for logs and metrics; not of deliveries
        self.observer = observer
        self.intake = Intake(limit_bytes)

    # Deliveries on their way to a receiver.

    def transfer_received(self, delivery: Delivery, frame: TransferFrame) -> None:
        """Forward a received frame, or hold it until it can be sent."""
        if delivery.discarded:
            if delivery.parent is not None and delivery.settled:
                resuming.transfer_settled(self, delivery)
            return
        address = delivery.address
        if address is None:
            self._begin(delivery, frame)
            return
        if delivery.is_batch:
            self.batches.take(delivery, frame)
            return
        address.counters.bytes_in += frame.end - frame.payload_at
        if delivery.scan is not None:
            sound = self.intake.follow(delivery, frame)
            if sound is None:
                refusals.reject_malformed(self, address, delivery)
                return
            frame = sound
        if delivery.copies is not None:
            if len(delivery.copies) > self.distribution.copies_at_once:
                self.distribution.pending_copies.follow(delivery, frame)
            else:
                self.distribution.follow_some(delivery, delivery.copies, frame)
            if delivery.complete and delivery.settled:
                delivery.copies = None
        else:
            self.relay.follow(delivery, frame)

    def _begin(self, delivery: Delivery, frame: TransferFrame) -> None:
        """Start forwarding a delivery once the header and annotations have been received.

        This runs once per message, and is long on purpose: a call costs as much as most of its
        steps.
        """
        link = delivery.incoming
        producer = link.owner
        address = producer.address
        if (frame.resume or link.terminus is not None) and delivery.scan is None:
            if link.is_routed and address is not None:
                self.relay.begin_routed(address, delivery, frame)
                return
            if isinstance(link.terminus, MessageEnd):
                link.terminus.take(self, delivery, frame)
                return
            if resuming.handle_resumed_transfer(self, delivery, frame):
                return
        if delivery.message_format == BATCH_FORMAT and producer.splits_batches:
            self.batches.take(delivery, frame)
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
        if not address.is_active:
            self.relay.note_active(address)
        if self.outcomes.sampler is not None:
            self.outcomes.sampler.begin(delivery)
        address.counters.ingress += 1
        address.counters.bytes_in += delivery.size
        if delivery.settled:
            address.counters.presettled += 1
            link.presettled += 1
        if link.credit <= producer.low_mark:
            self.credit.note(address, producer)
        if sound is None:
            refusals.reject_malformed(self, address, delivery)
            return
        frame = sound
        if producer.checks_user_id and refusals.reject_other_user(self, address, delivery, frame):
            return
        if address.related_addresses is not None:
            address = self.distribution.follow_ties(address, delivery, producer, frame)
            if address is None:
                return
        if address.treatment == MULTICAST:
            if len(address.consumers) > MANY_CONSUMERS:
                # each gets a copy
                link.session.connection.deduct_work(COPY_WORK * len(address.consumers))
            self.distribution.fan_out(address, delivery, frame)
            return
        consumer = None
        if len(address.consumers) > MANY_CONSUMERS:
            # each of them may have to be examined
            link.session.connection.deduct_work(len(address.consumers))
        if address.remote_ends:
            if address.lanes:
                delivery.lane = self.distribution.lane_for(address, delivery, producer, frame)
            consumer = self.distribution.choose_across(
                address, delivery.size, producer.side, delivery.lane
            )
        elif address.waiting.count == 0:
            consumer = self.distribution.choose(address, delivery.size)
        if consumer is None:
            if not self.distribution.has_receiver(address, producer.side):
                self.distribution.no_destination(address, delivery)
                return
            if not self.distribution.has_taker(address, delivery.size, producer.side):
                max_message_size.refuse(self, address, delivery)
                return
            if address.lanes and delivery.lane == 0:
                # there may have been no link to another router until now
                delivery.lane = self.distribution.lane_for(address, delivery, producer, frame)
            self.backlog.hold(delivery, frame.octets, frame.payload_at, frame.end)
            if producer.address is None:
                producer.waiting += 1
            self.queues.wait(address, delivery)
            return
        self.relay.start(consumer, delivery, frame)
        if address.keeps_octets and delivery.complete:
            self.redelivery.keep(delivery, frame.octets, frame.payload_at, frame.end)

    def _address_of_message(
        self, delivery: Delivery, producer: Producer, frame: TransferFrame | None
    ) -> Address | None:
        """Return the address of an anonymous sender's message; None if the message is rejected.

        The address is in the message's `to` field, unless another router has named it in an
        annotation. A malformed message (`frame` is None) gets the placeholder `table.unused`.
        """
        link = delivery.incoming
        if link.credit <= producer.low_mark:
            self.credit.note(None, producer)
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
        shown = name
        access = link.session.connection.access
        if access is not None:
            inside = refusals.address_inside(self, delivery, access, name)
            if inside is None:
                return None
            name = inside
        tenant = None if access is None else access.tenant
        redirected = self.table.redirect_message(name, shown, tenant=tenant)
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

    def outcome_received(self, delivery: Delivery, frame: DispositionFrame) -> None:
        """Pass a receiver's disposition of a delivery to its sender."""
        self.settlement.outcome_received(delivery, frame)

    def settlement_received(self, delivery: Delivery, frame: DispositionFrame) -> None:
        """Pass a sender's disposition, usually a settlement, to the receiver."""
        self.settlement.settlement_received(delivery, frame)

    def transfer_aborted(self, delivery: Delivery) -> None:
        """Abort a delivery towards each receiver that got a part of it."""
        detach.transfer_aborted(self, delivery)

    # Credit, room and rare events.

    def credit_received(self, link: OutgoingLink) -> None:
        """Serve a receiver whose credit has changed, and note its address for a credit check."""
        consumer = link.owner
        if consumer is not None:
            if consumer.resuming is not None:
                attach.go_on(self, consumer)
            elif consumer.waiting.count or link.current is not None or link.drain:
                self.queues.serve(consumer)
            self.credit.note(consumer.address, None)
        elif isinstance(link.terminus, ReplyEnd):
            link.terminus.flush(self)

    def sent(self, now: float) -> None:
        """Count the latency of deliveries that were received and sent in this turn.

        Deliveries that had to wait are counted when they are sent (`QueueService.count_wait`).
        """
        age_s = now - self.turn.now
        for address in self.relay.active_addresses:
            address.is_active = False
            # `egress_mark` was raised for each delivery that had to wait
            count = address.counters.egress - address.egress_mark
            if count:
                counters = address.counters if address.successor is None else address.successor
                counters.count_forwarded(age_s, count)
        self.relay.active_addresses.clear()
        if self.outcomes.sampler is not None:
            self.outcomes.sampler.sent(now)

    def finish_turn(self) -> None:
        """Do what is due once all input of a turn is processed, such as granting credit."""
        self.outcomes.end_run()
        if self.network_due:
            self.network.finish()
        if self.sizes_due:
            max_message_size.refuse_too_large(self)
        self.credit.share()
        if self.dying_nodes:
            nodes.delete_empty(self)
        if self.idle_sessions:
            own_links.end_idle(self)

    def flow_received(self, link: IncomingLink) -> None:
        """Mark a sender for a credit check, because its flow ends a drain or returns credit."""
        self.settlement.note_sender(link)

    def available(self, link: OutgoingLink) -> int:
        """Return how many deliveries wait for a receiver, at its address or in its own queue."""
        consumer = link.owner
        if consumer is None:
            return 0
        count = int(consumer.waiting.count)
        return count + link.terminus.available() if link.is_routed else count

    def room_made(self, connection: Connection, session: Session | None) -> None:
        """Serve links that waited for room in a socket or a session's window."""
        unblocking.room_made(self, connection, session)

    def event_received(self, connection: Connection, event: Event) -> None:
        """Handle attaches, detaches and other events, then report them to the observer."""
        self.outcomes.end_run()
        attach.event_received(self, connection, event)
        self.observer.event_received(connection, event)
        if isinstance(event, ConnectionOpened) and connection.is_client:
            # all observers know that it is open, so it may be closed
            attach.opened_by_us(self, connection)
