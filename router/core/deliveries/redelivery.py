"""Redelivery: offer a message to another receiver after one receiver has released it.

If an address has several receivers, the octets of a small message are kept until it is settled. If
its receiver releases or modifies the message, it goes to another receiver that has room and has not
had it yet. The sender gets only the last outcome. If no receiver has room at that moment, the
sender gets the outcome immediately, as with a single receiver. Only a message for receivers that
are farther away may wait (`network.farther_receivers`). (docs/decisions/0029-redelivery.md.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from router.amqp import codes
from router.amqp.composite import decode_composite
from router.amqp.performatives import Modified
from router.amqp.reading_disposition import DispositionFrame
from router.amqp.revision import revise
from router.core.deliveries import router_annotations, sides, unconfirmed_durable
from router.core.model.address import CLOSEST, HERE, MULTICAST, Address, Consumer
from router.engine.delivery import Delivery
from router.engine.outbox import Turn

if TYPE_CHECKING:
    from router.amqp.types import DecodedMap, Octets
    from router.core.ports import Core
    from router.engine.link import OutgoingLink

# Larger messages are not kept: copying them costs more than sending them.
MAX_BYTES = 32768
# At most this many receivers are tried for one message.
MAX_ATTEMPTS = 8
# The limit of kept octets is the router's memory limit divided by this, and in addition to it.
PART_KEPT = 8
# Work of an attempt, and of each receiver that is asked, counted in frames
# (`Connection.deduct_work`).
WORK = 80
ASKING = 2
# At most this many receivers of an address are asked for one message; if it has more, they take
# turns.
MOST_ASKED = 64


class KeptMessage:
    """Octets of a message that may have to be sent again, as they were last sent.

    `since` is the time at which they were sent. `tried` contains the links whose receivers have
    returned the message. Instances are created with `KeptMessage.__new__(KeptMessage)`, because
    calling the class takes longer.
    """

    octets: bytes
    since: float
    tried: list[OutgoingLink] | None


class Redelivery:
    """Store of the octets that a router keeps for redelivery, with a limit on them."""

    def __init__(self, turn: Turn, limit_bytes: int) -> None:
        self.turn = turn
        self.kept_bytes = 0
        self.limit_bytes = limit_bytes // PART_KEPT

    def keep(self, delivery: Delivery, view: Octets, start: int, end: int) -> None:
        """Keep a delivery's whole message, `view[start:end]`, for redelivery.

        The message is kept only if it is small, the limit allows it, and neither the sender nor the
        receiver has settled.
        """
        count = end - start
        if (
            not delivery.outgoing_open
            or not awaits_outcome(delivery)
            or count > MAX_BYTES
            or self.kept_bytes + count > self.limit_bytes
        ):
            return
        kept = KeptMessage.__new__(KeptMessage)
        kept.octets = bytes(memoryview(view)[start:end])
        kept.since = self.turn.now
        kept.tried = None
        delivery.kept = kept
        self.kept_bytes += count

    def drop(self, delivery: Delivery) -> None:
        """Drop the kept octets of a delivery, if there are any."""
        kept = delivery.kept
        if kept is not None:
            delivery.kept = None
            self.kept_bytes -= len(kept.octets)

    def handle_disposition(self, core: Core, delivery: Delivery, frame: DispositionFrame) -> bool:
        """Handle a receiver's disposition for a delivery whose octets are kept.

        Return whether the delivery goes to another receiver. If not, the outcome goes to the
        sender.
        """
        code = frame.state_code
        if (code == codes.RELEASED or code == codes.MODIFIED) and _offer(
            self, core, delivery, frame
        ):
            return True
        if frame.settled or codes.ACCEPTED <= code <= codes.MODIFIED:
            self.drop(delivery)
        return False


def awaits_outcome(delivery: Delivery) -> bool:
    """Return whether the sender of a delivery, or of the batch it came in, awaits its outcome.

    For a copy the answer is False: its outcome is only one of several.
    """
    parent: Delivery | None = delivery.parent
    if parent is not None and parent.is_batch:
        return parent.incoming_open
    return delivery.incoming_open


def keeps_messages(address: Address) -> bool:
    """Return whether messages that are sent to this address may have to be sent again.

    This may happen after one of several receivers releases them, or when a receiver resumes its
    link.
    """
    if address.treatment == MULTICAST:
        return False
    if address.redelivers and _has_several(address):
        return True
    return address.resumable > 0


def _has_several(address: Address) -> bool:
    """Return whether an address has more than one receiver, without examining all of them."""
    receivers = 0
    for consumer in address.consumers:
        # all lanes to the same router count as one receiver
        receivers += consumer.lane_mask & 1
        if receivers > 1:
            return True
    return False


def _offer(redelivery: Redelivery, core: Core, delivery: Delivery, frame: DispositionFrame) -> bool:
    """Offer a delivery to another receiver, after its receiver has released or modified it.

    Return False if its outcome goes to the sender. Otherwise the delivery has been sent to another
    receiver, or waits for one that is farther away.
    """
    address = delivery.address
    kept = delivery.kept
    tried = [*(kept.tried or ()), delivery.outgoing]
    if (
        not address.redelivers
        or _may_be_lost(delivery, frame)
        or not awaits_outcome(delivery)
        or delivery.chunks is not None
        or len(tried) >= MAX_ATTEMPTS
    ):
        return False
    is_released = frame.state_code == codes.RELEASED
    giver = delivery.outgoing.session
    giver.connection.deduct_work(ASKING * min(MOST_ASKED, len(address.consumers)))
    consumer = _other(address, delivery, tried, kept.octets, is_released=is_released)
    farther = core.network.farther
    if consumer is None and not (is_released and farther.takes(delivery, tried)):
        return False
    giver.connection.deduct_work(WORK)
    octets = _revised(delivery, frame, redelivery.turn.now)
    if octets is None:
        return False
    core.outcomes.count_for_receiver(delivery, frame.state_code)
    if not frame.settled:
        # the receiver waits for settlement, and the sender will not be told of this outcome
        count = 0 if frame.plain else frame.state_end - frame.state_at
        giver.send_state_to_receiver(
            delivery, True, frame.state_code, frame.octets, frame.state_at, count
        )
    kept.tried = tried
    if consumer is None:
        farther.wait(delivery)
    else:
        _send_again(redelivery, core, consumer, delivery, octets)
    return True


def retry(core: Core, delivery: Delivery) -> bool:
    """Try again to send a released delivery that waits for a receiver farther away.

    Return whether the delivery has stopped waiting. If its ttl has ended, it is settled as
    released.
    """
    kept = delivery.kept
    consumer = _other(delivery.address, delivery, kept.tried, kept.octets, is_released=True)
    if consumer is None:
        return False
    octets: bytes | None = kept.octets
    if not delivery.message_format:
        elapsed_ms = int((core.turn.now - kept.since) * 1000)
        octets = revise(kept.octets, elapsed_ms, failed=False, annotations={})
    if octets is None:
        core.settlement.settle(delivery, codes.RELEASED, b"")
    else:
        _send_again(core.redelivery, core, consumer, delivery, octets)
    return True


def _send_again(
    redelivery: Redelivery, core: Core, consumer: Consumer, delivery: Delivery, octets: bytes
) -> None:
    """Send a delivery to another receiver, and remember which receivers have already had it."""
    tried = delivery.kept.tried
    redelivery.drop(delivery)
    _send(redelivery, core, consumer, delivery, octets)
    if delivery.kept is not None:
        delivery.kept.tried = tried
    core.credit.note(delivery.address, None)


def _may_be_lost(delivery: Delivery, frame: DispositionFrame) -> bool:
    """Return whether an outcome may mean that the message was lost at another router.

    A router answers `modified` if it loses the link on which it sent the message. The receiver may
    have got the message, so only the sender may decide to send it again.
    """
    owner = delivery.outgoing.owner
    return bool(frame.state_code == codes.MODIFIED and owner is not None and owner.side != HERE)


def _other(
    address: Address,
    delivery: Delivery,
    tried: list[OutgoingLink],
    octets: bytes,
    *,
    is_released: bool,
) -> Consumer | None:
    """Return the least busy consumer that has room and has not had the delivery, or None.

    If the treatment is closest, only the nearest of these consumers are considered. A modified
    message never goes to a consumer that is farther away than the one that modified it.
    """
    size = len(octets)
    is_closest = address.treatment == CLOSEST
    giver = delivery.outgoing.owner
    farthest = None
    if is_closest and not is_released:
        farthest = 0 if giver is None else giver.cost
    able = [
        consumer
        for consumer in _asked(address)
        if consumer.link not in tried
        and consumer.lane_mask >> delivery.lane & 1
        and sides.serves(consumer, delivery.incoming.side)
        and size <= consumer.link.max_message_size
        and (farthest is None or consumer.cost <= farthest)
        and consumer.link.session.can_send(consumer.link)
        and not (
            consumer.rejects_durable and unconfirmed_durable.is_durable_message(delivery, octets)
        )
    ]
    return min(
        able, key=lambda each: (each.cost if is_closest else 0, each.link.unsettled), default=None
    )


def _asked(address: Address) -> list[Consumer]:
    """Return the consumers to which a delivery may be offered.

    If there are very many, each call returns the next MOST_ASKED of them, in rotation.
    """
    consumers = address.consumers
    count = len(consumers)
    # an address with sides has few consumers, near ones and far ones
    if count <= MOST_ASKED or address.remote_ends:
        return consumers
    start = address.rotation % count
    address.rotation = (start + MOST_ASKED) % count
    asked = consumers[start : start + MOST_ASKED]
    return asked + consumers[: MOST_ASKED - len(asked)]


def _revised(delivery: Delivery, frame: DispositionFrame, now: float) -> bytes | None:
    """Return the message to send again, or None if it cannot be sent again.

    Its ttl is reduced, and the changes of a modified outcome are made. It cannot be sent again if
    its ttl has ended, for example.
    """
    kept = delivery.kept
    octets: bytes = kept.octets
    modified = Modified()
    if frame.state_code == codes.MODIFIED and not frame.plain:
        state, _ = decode_composite(
            bytes(memoryview(frame.octets)[frame.state_at : frame.state_end])
        )
        assert isinstance(state, Modified)
        modified = state
    if delivery.message_format:
        # the header of another message format is unknown, so it cannot be changed
        is_same = not modified.delivery_failed and not modified.message_annotations
        return octets if is_same else None
    return revise(
        octets,
        int((now - kept.since) * 1000),
        failed=bool(modified.delivery_failed),
        annotations=_users(modified.message_annotations),
    )


def _users(annotations: DecodedMap | None) -> DecodedMap:
    """Return the annotations of a modified outcome, without those that only routers may write."""
    return {
        key: value
        for key, value in (annotations or {}).items()
        if not router_annotations.is_own(key)
    }


def _send(
    redelivery: Redelivery, core: Core, consumer: Consumer, delivery: Delivery, octets: bytes
) -> None:
    link = consumer.link
    session = link.session
    counters = delivery.address.counters
    counters.redelivered += 1
    counters.egress += 1
    # the time that the message took through the router was counted for the first attempt
    delivery.address.egress_mark += 1
    delivery.started = False
    delivery.outcome = codes.NO_STATE
    delivery.tag = None
    session.begin_outgoing(link, delivery)
    outgoing = core.queues.annotated(consumer, delivery, octets)
    sent = session.send(delivery, outgoing, 0, len(outgoing), False)
    counters.bytes_out += sent
    if sent < len(outgoing):
        link.current = delivery
        core.backlog.hold(delivery, outgoing, sent, len(outgoing))
    elif link.presettles:
        counters.count_outcome(codes.ACCEPTED)
        core.settlement.settle(delivery, codes.ACCEPTED, b"")
    redelivery.keep(delivery, octets, 0, len(octets))
