"""Queue deliveries that cannot be sent, and send them when a consumer has room.

A delivery waits at its address if any consumer may take it, and in a consumer's own queue if each
consumer gets a copy. `model.waiting_queue` defines the order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from router.amqp import codes
from router.core.deliveries import (
    dead_letters,
    draining,
    max_message_size,
    missing_headers,
    router_annotations,
    sides,
    trace_context,
    unconfirmed_durable,
)
from router.core.forwarding.credit_sharing import CreditSharing
from router.core.forwarding.settlement import Settler
from router.core.link_routes import routed_ttl
from router.core.model.address import Address, Consumer
from router.engine import flows, rare_transfers
from router.engine.blocking import block
from router.engine.delivery import Delivery
from router.engine.link import UNLIMITED, OutgoingLink
from router.engine.states import Settling

if TYPE_CHECKING:
    from router.core.ports import Core

ROUTED = int(Settling.ROUTED)
# A message that waits this long, in seconds, has a lower ttl (which is in milliseconds).
HELD_S = 0.001
# the default priority of a message
ORDINARY = 4
# How many waiting messages are sent to a receiver in one turn, and in each step of later turns; and
# the work of sending one, as a number of frames (`Connection.deduct_work`).
MOST_SENT = 512
A_STEP = 32
MESSAGE_WORK = 64


class QueueService:
    """Part of the core that queues deliveries, and sends them when there is room again.

    `serve` is called for a receiver that has new credit or room, `wait` for a delivery that no
    receiver can take now. Both run once per message, and are long on purpose: a call costs as much
    as most of their steps.
    """

    def __init__(self, core: Core, settlement: Settler, credit: CreditSharing) -> None:
        self.core = core
        self.turn = core.turn
        self.backlog = core.backlog
        self.redelivery = core.redelivery
        self.outcomes = core.outcomes
        self.settlement = settlement
        self.credit = credit
        # receivers whose drain waits for messages of their senders, and until when
        self.drains: dict[Consumer, float] = {}
        # the least priority of messages that the next `serve` sends (`unblocking`), and whether
        # `serve` has stopped because of it
        self.floor = 0
        self.is_cut_short = False
        # the receiver that is being sent the rest of an earlier turn's messages
        self.going_on: Consumer | None = None

    def serve(self, consumer: Consumer) -> None:
        """Send a consumer the messages that wait for it, as long as there is room.

        If very many messages wait, the last ones are sent in later turns.
        """
        # the floor does not apply to other receivers that are served meanwhile, such as those of
        # dead letters
        floor = self.floor
        self.floor = 0
        if consumer.is_later:
            return
        link = consumer.link
        session = link.session
        delivery = link.current
        if delivery is not None:
            if delivery.discarded:
                # its sender aborted it while the window was closed
                if session.remote_incoming_window <= 0:
                    block(session, link)
                    return
                rare_transfers.abort(delivery)
            else:
                if delivery.chunks is None or not self.backlog.send(session, delivery):
                    return
                if not delivery.complete:
                    return
                if link.presettles:
                    self.accept_presettled(delivery)
            link.current = None
        waiting = consumer.waiting
        has_any = True
        sides_meant: set[int] | None = None
        count = 0
        most = MOST_SENT if self.going_on is not consumer else A_STEP
        while waiting.count and session.can_send(link):
            if count >= most:
                consumer.is_later = True
                if self.going_on is not consumer:
                    self.turn.deferred.add(_Later(self, consumer))
                break
            count += 1
            if floor and self._level(consumer) < floor:
                # another link has something more urgent
                self.is_cut_short = True
                break
            if link.max_message_size == UNLIMITED and consumer.address.remote_ends == 0:
                delivery = waiting.popleft()
            else:
                delivery = None
                if sides_meant is not None:
                    delivery = waiting.take_matching(
                        consumer.lane_mask, sides_meant, link.max_message_size
                    )
                    count += waiting.examined // MESSAGE_WORK
                if delivery is None and (sides_meant is None or not waiting.is_unfinished):
                    delivery = max_message_size.take(self.core, consumer)
                    count += waiting.examined // MESSAGE_WORK
                if delivery is None:
                    if waiting.is_unfinished:
                        continue
                    has_any = False
                    break
                if (
                    sides_meant is None
                    and waiting.count
                    and max_message_size.chooses_by_sides(consumer)
                ):
                    # no consumer comes or goes, and nothing is queued, during this loop
                    sides_meant = sides.taken_by(consumer)
            if (
                delivery.settling == ROUTED
                and not delivery.discarded
                and self.turn.now - delivery.arrived >= HELD_S
            ):
                routed_ttl.apply_ttl(self.core, delivery)
            if delivery.discarded:
                # given up by its sender, or expired; the receiver gets an abort nevertheless
                session.begin_outgoing(link, delivery)
                rare_transfers.abort_whole(delivery)
                # the link has counted it as well; its latency is not measured
                consumer.address.counters.egress += 1
                consumer.address.egress_mark += 1
                continue
            if delivery.deadline and delivery.deadline <= self.turn.now:
                dead_letters.expire(self.core, delivery)
                continue
            self.note_dequeued(delivery)
            if delivery.ttl_at:
                self.backlog.write_remaining_ttl(delivery)
            whole = None
            if consumer.address.keeps_octets and delivery.complete and len(delivery.chunks) == 1:
                whole = delivery.chunks[0]
            if consumer.rejects_durable:
                head = delivery.chunks[0]
                if unconfirmed_durable.refuse(self.core, delivery, head, 0, len(head)):
                    self.backlog.drop(delivery)
                    continue
            if delivery.sample is not None or consumer.shows_passage or consumer.needs_header:
                octets = self.annotated(consumer, delivery, bytes(delivery.chunks[0]))
                self.backlog.replace_first(delivery, octets)
            session.begin_outgoing(link, delivery)
            consumer.address.counters.egress += 1
            if delivery.arrived != self.turn.now or not consumer.address.is_active:
                self.count_wait(consumer, delivery)
            if not self.backlog.send(session, delivery) or not delivery.complete:
                link.current = delivery
            elif link.presettles:
                self.accept_presettled(delivery)
            elif whole is not None:
                self.redelivery.keep(delivery, whole, 0, len(whole))
        if count:
            session.connection.deduct_work(MESSAGE_WORK * count)
        if link.blocked_in is not None and waiting.count:
            self.raise_priority(link, self._level(consumer))
        if link.drain and link.current is None:
            if link.credit == 0:
                flows.answer_drain(link)
            elif not (has_any and waiting.count):
                draining.answer(self.core, consumer)

    def count_wait(self, consumer: Consumer, delivery: Delivery) -> None:
        """Count how long a delivery waited before it was sent.

        Deliveries sent in the turn of their arrival are counted at the end of that turn
        (`Forwarder.sent`).
        """
        address = consumer.address
        counters = address.counters
        age_s = self.turn.now - delivery.arrived
        address.egress_mark += 1
        counters.count_forwarded(age_s, 1)
        if age_s > 1 and not delivery.outgoing_open:
            # no outcome follows that could be counted later
            link = consumer.link
            link.count_delay(age_s, 1)
            if delivery.settled and delivery.parent is None:
                counters.count_delay(age_s, 1)
                sender = delivery.incoming
                sender.count_delay(age_s, 1)

    def wait(self, address: Address, delivery: Delivery) -> None:
        """Queue a delivery at its address, for the first consumer that has room."""
        waiting = address.waiting
        is_urgent = False
        if delivery.priority > ORDINARY:
            lane = 1
            lane <<= delivery.lane
            is_urgent = delivery.priority > waiting.top(lane)
        waiting.append(delivery)
        if is_urgent:
            for consumer in address.consumers:
                if consumer.lane_mask >> delivery.lane & 1:
                    self.raise_priority(consumer.link, delivery.priority)
        if waiting.count > 1 and address.remote_ends == 0:
            self._offer_behind(address, delivery)

    def _offer_behind(self, address: Address, delivery: Delivery) -> None:
        """Offer a delivery to a consumer that cannot take the larger ones queued before it."""
        for consumer in address.consumers:
            link = consumer.link
            if link.max_message_size == UNLIMITED or delivery.size > link.max_message_size:
                continue
            session = link.session
            if session.can_send(link):
                # a peer may send very many such messages in one turn
                sender = delivery.incoming
                sender.session.connection.deduct_work(MESSAGE_WORK)
                self.serve(consumer)
                break

    def _level(self, consumer: Consumer) -> int:
        """Return the priority of the next delivery for a consumer.

        If the consumer is for a single lane, this is the priority of the lane.
        """
        takes = consumer.lane_mask
        if consumer.sibling_lanes is not None and takes & (takes - 1) == 0:
            level: int = consumer.link.urgency
            return level
        return consumer.waiting.top(takes)

    def raise_priority(self, link: OutgoingLink, level: int) -> None:
        """Raise the priority at which a link waits for room to at least `level`."""
        if link.blocked_in is not None and link.blocked_level < level:
            link.blocked_in.add(link, level)

    def serve_next(self, link: OutgoingLink) -> None:
        """Serve the consumer of a link whose current message has been sent completely."""
        consumer = link.owner
        if consumer is not None and (consumer.waiting.count or link.drain):
            self.serve(consumer)

    def annotated(self, consumer: Consumer, delivery: Delivery, octets: bytes) -> bytes:
        """Return a message with all that the router adds for this consumer.

        `octets` must contain the message's header and all its annotations.
        """
        if delivery.sample is not None and self.note_leaving(consumer, delivery):
            octets = trace_context.write(delivery, octets)
        if consumer.shows_passage:
            octets = router_annotations.with_annotations(consumer, delivery, octets)
        if consumer.needs_header:
            octets = missing_headers.with_header(consumer, delivery, octets)
        return octets

    def note_leaving(self, consumer: Consumer, delivery: Delivery) -> bool:
        """Record that a sampled delivery leaves; return whether to send its trace context along."""
        if self.outcomes.sampler is not None:
            self.outcomes.sampler.leaves(delivery)
        return trace_context.is_passed_on(consumer, delivery)

    def accept_presettled(self, delivery: Delivery) -> None:
        """Settle a delivery as accepted, because it was sent to its receiver as settled."""
        if not delivery.settled:
            address = delivery.address
            address.counters.count_outcome(codes.ACCEPTED)
            self.settlement.settle(delivery, codes.ACCEPTED, b"")

    def note_dequeued(self, delivery: Delivery) -> None:
        """Note that a delivery left its queue, so that an anonymous sender may get new credit."""
        producer = delivery.incoming.owner
        parent = delivery.parent
        is_copy = parent is not None and not parent.is_batch
        if parent is not None and parent.is_batch and parent.settled:
            self.core.batches.left_queue(delivery)
        if producer is not None and producer.address is None and not is_copy:
            producer.waiting -= 1
            self.credit.note(None, producer)


class _Later:
    """Deferred task that sends a receiver the rest of its waiting messages."""

    def __init__(self, service: QueueService, consumer: Consumer) -> None:
        self._service = service
        self._consumer = consumer

    def step(self) -> bool:
        """Send a few messages; return whether to continue in another step."""
        service, consumer = self._service, self._consumer
        consumer.is_later = False
        service.going_on = consumer
        try:
            if consumer.link.owner is consumer:
                service.serve(consumer)
        finally:
            service.going_on = None
        return consumer.is_later
