"""Write frames to the consumers of their deliveries, and hold frames that have to wait.

`distribution` chooses the consumers. A routed link (`routed_links`) has only its two ends, so no
consumer is chosen for its deliveries, and the sections of its messages are not read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from router.amqp.reading import TransferFrame
from router.core.deliveries import (
    max_message_size,
    missing_headers,
    router_annotations,
    trace_context,
    unconfirmed_durable,
)
from router.core.forwarding.queue_service import QueueService
from router.core.model.address import Address, Consumer
from router.engine import flows
from router.engine.blocking import block
from router.engine.delivery import Delivery
from router.engine.link import OutgoingLink
from router.engine.session import Session
from router.engine.states import Settling

if TYPE_CHECKING:
    from router.core.ports import Core

ROUTED = int(Settling.ROUTED)


class Relay:
    """Part of the core that sends frames on as they arrive.

    The forwarder and the distributor call it, with the receiver that a delivery goes to.
    """

    def __init__(self, core: Core, queues: QueueService) -> None:
        self.core = core
        self.turn = core.turn
        self.backlog = core.backlog
        self.queues = queues
        # addresses that have received a delivery in this turn
        self.active_addresses: list[Address] = []

    def begin_routed(self, address: Address, delivery: Delivery, frame: TransferFrame) -> None:
        """Send a delivery unchanged to the other end of its routed link, or queue it."""
        counters = address.counters
        delivery.address = address
        delivery.arrived = self.turn.now
        delivery.settling = ROUTED
        delivery.tag = delivery.incoming_tag
        delivery.batchable = frame.batchable
        if not address.is_active:
            self.note_active(address)
        counters.ingress += 1
        counters.bytes_in += delivery.size
        if delivery.settled:
            link = delivery.incoming
            counters.presettled += 1
            link.presettled += 1
        consumer = address.consumers[0]
        outgoing = consumer.link
        session = outgoing.session
        if address.waiting.count == 0 and session.can_send(outgoing):
            self.start(consumer, delivery, frame)
        else:
            self.backlog.hold(delivery, frame.octets, frame.payload_at, frame.end)
            address.waiting.append(delivery)

    def start(self, consumer: Consumer, delivery: Delivery, frame: TransferFrame) -> None:
        """Start sending a delivery on a consumer's link; `frame` is its first frame."""
        link = consumer.link
        session = link.session
        if not (
            consumer.rejects_durable
            and unconfirmed_durable.refuse(
                self.core, delivery, frame.octets, frame.payload_at, frame.end
            )
        ):
            session.begin_outgoing(link, delivery)
            consumer.address.counters.egress += 1
            if delivery.sample is not None or consumer.shows_passage or consumer.needs_header:
                self._write(session, link, delivery, self._annotated(consumer, delivery, frame))
            else:
                self._write(session, link, delivery, frame)

    def _annotated(
        self, consumer: Consumer, delivery: Delivery, frame: TransferFrame
    ) -> TransferFrame:
        """Return the first frame of a delivery with all that the router adds."""
        if delivery.sample is not None and self.queues.note_leaving(consumer, delivery):
            payload = bytes(memoryview(frame.octets)[frame.payload_at : frame.end])
            frame = frame.with_payload(trace_context.write(delivery, payload))
        if consumer.shows_passage:
            frame = router_annotations.annotate_frame(consumer, delivery, frame)
        if consumer.needs_header:
            frame = missing_headers.complete_frame(consumer, delivery, frame)
        return frame

    def _write(
        self, session: Session, link: OutgoingLink, delivery: Delivery, frame: TransferFrame
    ) -> None:
        start = frame.payload_at
        address = delivery.address
        address.counters.bytes_out += frame.end - start
        start = session.send(delivery, frame.octets, start, frame.end, frame.more)
        if start < frame.end:
            link.current = delivery
            self.backlog.hold(delivery, frame.octets, start, frame.end)
            address.counters.bytes_out -= frame.end - start
        elif frame.more:
            link.current = delivery
        else:
            if link.presettles:
                self.queues.accept_presettled(delivery)
            if link.current is not None:
                link.current = None
                self.queues.serve_next(link)
            elif link.drain_due:
                flows.answer_drain(link)

    def follow(self, delivery: Delivery, frame: TransferFrame) -> None:
        """Send a later frame of a delivery, or hold it until the earlier frames have been sent."""
        link = delivery.outgoing
        if link is None:
            self.backlog.hold(delivery, frame.octets, frame.payload_at, frame.end)
            max_message_size.recheck_grown(self.core, delivery)
            return
        if delivery.size > link.max_message_size:
            max_message_size.abort_outgrown(self.core, delivery)
            return
        if delivery.chunks is not None:
            self.backlog.hold(delivery, frame.octets, frame.payload_at, frame.end)
            return
        session = link.session
        if session.remote_incoming_window <= 0 or session.outbox.congested:
            block(session, link)
            self.backlog.hold(delivery, frame.octets, frame.payload_at, frame.end)
            return
        self._write(session, link, delivery, frame)

    def note_active(self, address: Address) -> None:
        """Note that an address has got its first delivery of this turn, for `Forwarder.sent`."""
        address.is_active = True
        address.egress_mark = address.counters.egress
        self.active_addresses.append(address)
