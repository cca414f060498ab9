"""What one receiver gave back is offered to another, before its sender hears of it.

Where an address has several receivers, the octets of a small message are kept until it is settled.
If its receiver releases or modifies it, another one that has room at that moment and has not had it
yet gets it; the last outcome is the sender's. Nothing waits for this: without room the sender is
told at once, as with a single receiver.
(docs/decisions/0029-redelivery.md.)
"""

from __future__ import annotations

from typing import Any

from router.amqp import codes
from router.amqp.composite import decode_composite
from router.amqp.performatives import Modified
from router.amqp.reading_disposition import DispositionFrame
from router.amqp.revision import revise
from router.core import passage, unconfirmed
from router.core.address import CLOSEST, HERE, MULTICAST, Address, Consumer
from router.core.network import sides
from router.engine.delivery import Delivery
from router.engine.outbox import Turn

# Larger messages are not kept: copying them would cost more than sending them.
MAX_BYTES = 32768
# So many receivers may give a message back; what all of them refuse is not worth more of them.
MAX_ATTEMPTS = 8
# This part of what the router may hold may be kept besides.
PART_KEPT = 8
# What an attempt takes, and each receiver that is asked, in frames that come once a message
# (`Connection.count_work`).
WORK = 80
ASKING = 2
# So many receivers of an address are asked whether they take it; of more, others each time.
MOST_ASKED = 64
EMPTY = b""


class Kept:
    """The octets of a message as it was sent last, when that was, and who has given it back.

    Made by `Kept.__new__(Kept)`.
    """

    octets: bytes
    since: float
    had: Any


class Redelivery:
    """What is kept of all messages of a router."""

    def __init__(self, turn: Turn, limit_bytes: int) -> None:
        self.turn = turn
        self.kept_bytes = 0
        self.limit_bytes = limit_bytes // PART_KEPT

    def keep(self, delivery: Delivery, view: Any, start: int, end: int) -> None:
        """Keep `view[start:end]`, all that there is of a delivery that has been sent whole."""
        count = end - start
        if (
            not delivery.outgoing_open
            or not delivery.incoming_open
            or count > MAX_BYTES
            or self.kept_bytes + count > self.limit_bytes
        ):
            return
        kept = Kept.__new__(Kept)
        kept.octets = bytes(memoryview(view)[start:end])
        kept.since = self.turn.now
        kept.had = None
        delivery.kept = kept
        self.kept_bytes += count

    def drop(self, delivery: Delivery) -> None:
        """Keep nothing of a delivery any longer: it is settled, or its outcome is known."""
        kept = delivery.kept
        if kept is not None:
            delivery.kept = None
            self.kept_bytes -= len(kept.octets)

    def take_back(self, core: Any, delivery: Delivery, frame: DispositionFrame) -> bool:
        """Look at what a receiver says of a delivery; whether it goes to another one instead."""
        code = frame.state_code
        if (code == codes.RELEASED or code == codes.MODIFIED) and _offer(
            self, core, delivery, frame
        ):
            return True
        if frame.settled or codes.ACCEPTED <= code <= codes.MODIFIED:
            self.drop(delivery)
        return False


def keeps(address: Address) -> bool:
    """Whether what is sent to this address may have to be sent once more.

    That is to another receiver, if one gives it back, or to one that resumes its link.
    """
    if address.treatment == MULTICAST:
        return False
    if address.redelivers and _has_several(address):
        return True
    return address.resumable > 0


def _has_several(address: Address) -> bool:
    """Return whether an address has more than one receiver, without a look at all of them."""
    receivers = 0
    for consumer in address.consumers:
        # lanes to the same router are one receiver
        receivers += consumer.takes & 1
        if receivers > 1:
            return True
    return False


def _offer(redelivery: Redelivery, core: Any, delivery: Any, frame: Any) -> bool:
    """Send a delivery that its receiver gives back to another one, if there is one for it."""
    address = delivery.address
    kept = delivery.kept
    had = [*(kept.had or ()), delivery.outgoing]
    if (
        not address.redelivers
        or _may_be_lost(delivery, frame)
        or not delivery.incoming_open
        or delivery.chunks is not None
        or len(had) >= MAX_ATTEMPTS
    ):
        return False
    is_released = frame.state_code == codes.RELEASED
    giver = delivery.outgoing.session
    giver.connection.count_work(ASKING * min(MOST_ASKED, len(address.consumers)))
    consumer = _other(address, delivery, had, kept.octets, is_released=is_released)
    farther = core.network.farther
    if consumer is None and not (is_released and farther.takes(delivery, had)):
        return False
    giver.connection.count_work(WORK)
    octets = _revised(delivery, frame, redelivery.turn.now)
    if octets is None:
        return False
    core.outcomes.receiver_told(delivery, frame.state_code)
    if not frame.settled:
        # it waits for its sender to settle, who is not going to hear of it
        count = 0 if frame.plain else frame.state_end - frame.state_at
        giver.tell_receiver(delivery, True, frame.state_code, frame.octets, frame.state_at, count)
    kept.had = had
    if consumer is None:
        farther.wait(delivery)
    else:
        _send_again(redelivery, core, consumer, delivery, octets)
    return True


def go_on(core: Any, delivery: Any) -> bool:
    """Send on a delivery that has been released and waits; whether it waits no more.

    One whose ttl has ended is released towards its sender.
    """
    kept = delivery.kept
    consumer = _other(delivery.address, delivery, kept.had, kept.octets, is_released=True)
    if consumer is None:
        return False
    octets: bytes | None = kept.octets
    if not delivery.message_format:
        elapsed_ms = int((core.turn.now - kept.since) * 1000)
        octets = revise(kept.octets, elapsed_ms, failed=False, annotations={})
    if octets is None:
        core.settle(delivery, codes.RELEASED, EMPTY)
    else:
        _send_again(core.redelivery, core, consumer, delivery, octets)
    return True


def _send_again(
    redelivery: Redelivery, core: Any, consumer: Consumer, delivery: Any, octets: bytes
) -> None:
    """Send a delivery to a receiver that has not had it, and remember who has."""
    had = delivery.kept.had
    redelivery.drop(delivery)
    _send(redelivery, core, consumer, delivery, octets)
    if delivery.kept is not None:
        delivery.kept.had = had
    core.note_credit(delivery.address, None)


def _may_be_lost(delivery: Any, frame: Any) -> bool:
    """Whether what is told of a delivery may be what another router says where a link is lost that
    the message had left by: somebody may have got it, and only the sender may send it again.
    """
    owner = delivery.outgoing.owner
    return bool(frame.state_code == codes.MODIFIED and owner is not None and owner.side != HERE)


def _other(
    address: Address, delivery: Any, had: list[Any], octets: bytes, *, is_released: bool
) -> Consumer | None:
    """Return the consumer with the least to do that has room and has not had it; with closest, of
    the nearest of these. Only what is released goes farther than it was.
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
        if consumer.link not in had
        and consumer.takes >> delivery.lane & 1
        and sides.serves(consumer, delivery.incoming.side)
        and size <= consumer.link.max_message_size
        and (farthest is None or consumer.cost <= farthest)
        and consumer.link.session.can_send(consumer.link)
        and not (consumer.rejects_durable and unconfirmed.is_durable_message(delivery, octets))
    ]
    return min(
        able, key=lambda each: (each.cost if is_closest else 0, each.link.unsettled), default=None
    )


def _asked(address: Address) -> list[Consumer]:
    """The consumers that a delivery may be offered to: some of very many, others each time."""
    consumers = address.consumers
    count = len(consumers)
    # with sides there are near ones and far ones, and few of either
    if count <= MOST_ASKED or address.sided:
        return consumers
    start = address.rotation % count
    address.rotation = (start + MOST_ASKED) % count
    asked = consumers[start : start + MOST_ASKED]
    return asked + consumers[: MOST_ASKED - len(asked)]


def _revised(delivery: Any, frame: Any, now: float) -> bytes | None:
    """The message as it goes out next; None where it cannot."""
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
        # it has no header that we know of: what is to be changed cannot be
        is_same = not modified.delivery_failed and not modified.message_annotations
        return octets if is_same else None
    return revise(
        octets,
        int((now - kept.since) * 1000),
        failed=bool(modified.delivery_failed),
        annotations=_users(modified.message_annotations),
    )


def _users(annotations: dict[Any, Any] | None) -> dict[Any, Any]:
    """Those that a receiver may write: not the router's own."""
    return {key: value for key, value in (annotations or {}).items() if not passage.is_own(key)}


def _send(
    redelivery: Redelivery, core: Any, consumer: Consumer, delivery: Any, octets: bytes
) -> None:
    link = consumer.link
    session = link.session
    counters = delivery.address.counters
    counters.redelivered += 1
    counters.egress += 1
    # of its way through the router the first attempt was counted
    delivery.address.egress_mark += 1
    delivery.started = False
    delivery.outcome = codes.NO_STATE
    delivery.tag = None
    session.begin_outgoing(link, delivery)
    outgoing = core.annotated(consumer, delivery, octets)
    sent = session.send(delivery, outgoing, 0, len(outgoing), False)
    counters.bytes_out += sent
    if sent < len(outgoing):
        link.current = delivery
        core.backlog.hold(delivery, outgoing, sent, len(outgoing))
    elif link.presettles:
        counters.count_outcome(codes.ACCEPTED)
        core.settle(delivery, codes.ACCEPTED, EMPTY)
    redelivery.keep(delivery, octets, 0, len(octets))
