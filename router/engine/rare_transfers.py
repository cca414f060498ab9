"""Rare transfers: settle modes, delivery states, aborted and resumed deliveries (section 2.7.5).

In a transfer, a sender may ask for a settle mode other than the link's, or set a delivery state,
which is passed on to the receiver in the first transfer. The router itself writes rare transfers to
abort a delivery, or to resume a delivery of a suspended link.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from router.amqp.constants import Descriptor
from router.amqp.framing import encode_frame
from router.amqp.outcomes import MAX_KEPT_BYTES, check_state, kept_state
from router.amqp.performatives import Transfer
from router.amqp.reading import Cursor, TransferFrame
from router.amqp.reading_disposition import DispositionFrame
from router.amqp.writing import write_transfer
from router.engine import serial, tags, transactions, violations
from router.engine.delivery import Delivery
from router.engine.states import Settling

if TYPE_CHECKING:
    from router.amqp.composite import Composite
    from router.amqp.types import Octets
    from router.engine.link import OutgoingLink
    from router.engine.session import Session

FIRST = 0
SECOND = 1
# as in `codes`, whose compiled module keeps it in C
UNREAD_STATE = 0xFF
WIDER = 8
NULL = b"\x40"
# the bits of a delivery's `transfer_flags`
SETTLED_FIRST = 1
SETTLED_SECOND = 2
RESUMED = 4


def note_first_transfer(delivery: Delivery, frame: TransferFrame) -> bool:
    """Note the state and settle mode of an incoming delivery from its first transfer.

    If the transfer has no settle mode, the link's mode applies. Returns False if the transfer was
    not allowed, so that the link was detached.
    """
    link = delivery.incoming
    if link.is_routed:
        return _keep_transfer_fields(delivery, frame)
    if frame.state_end:
        state = _state_of(frame)
        delivery.state = None if state is None else kept_state(state, _code_of(state))
        if transactions.is_transactional(delivery.state) and transactions.refuse(link):
            return False
    if frame.settled:
        # the mode only matters for unsettled deliveries
        return True
    if link.settles_second:
        if frame.rcv_settle_mode != FIRST:
            delivery.settling = int(Settling.SECOND)
    elif frame.rcv_settle_mode == SECOND:
        link.session.connection.fail_link(link, violations.settles_first())
        return False
    return True


def _keep_transfer_fields(delivery: Delivery, frame: TransferFrame) -> bool:
    """Keep the settle mode, state and resume flag of a routed link's transfer, to pass them on.

    Returns False if the state was too large to keep, so that the link was detached.
    """
    delivery.state = NULL
    if frame.state_end:
        state = bytes(memoryview(frame.octets)[frame.state_at : frame.state_end])
        check_state(state)
        if len(state) > MAX_KEPT_BYTES:
            # a shortened state would differ from the one that the peer has sent
            link = delivery.incoming
            link.session.connection.fail_link(link, violations.state_too_large(len(state)))
            return False
        delivery.state = state
    if frame.rcv_settle_mode >= 0:
        delivery.transfer_flags = (
            SETTLED_SECOND if frame.rcv_settle_mode == SECOND else SETTLED_FIRST
        )
    if frame.resume:
        delivery.transfer_flags |= RESUMED
    return True


def ignore(session: Session, frame: TransferFrame) -> None:
    """Ignore a transfer on a link that is being detached.

    Raises amqp:session:errant-link if the peer must have known of the detach when it sent the
    transfer.
    """
    expected = session.expected_delivery_id
    if frame.has_delivery_id and (expected < 0 or frame.delivery_id == expected):
        # an ignored delivery still uses up its id
        session.expected_delivery_id = serial.add(frame.delivery_id, 1)
        violations.check_errant(session.links.find(frame.handle))


def check_later_transfer(delivery: Delivery, frame: TransferFrame) -> bool:
    """Check a later transfer of a delivery, and treat its state like that of a disposition.

    Returns False if the state is transactional and the link was detached for that. Raises AmqpError
    at session scope if the transfer belongs to another delivery.
    """
    violations.check_continuation(delivery, frame)
    state = _state_of(frame, delivery.incoming.is_routed) if frame.state_end else None
    if transactions.is_transactional(state) and transactions.refuse(delivery.incoming):
        return False
    if state is not None and not frame.aborted:
        disposition = DispositionFrame()
        disposition.first = disposition.last = delivery.incoming_id
        disposition.octets = state
        disposition.state_code = _code_of(state)
        disposition.state_end = len(state)
        disposition.plain = False
        delivery.incoming.session.handler.settlement_received(delivery, disposition)
    return True


def _state_of(frame: TransferFrame, has_received: bool = False) -> bytes | None:
    """Return the encoded delivery state in a transfer, or None if it is the state `received`.

    With `has_received`, the state `received` is returned as well.

    Raises amqp:decode-error if the octets are not a state.
    """
    state = bytes(memoryview(frame.octets)[frame.state_at : frame.state_end])
    check_state(state)
    # only a resumed delivery may be in the state received (section 3.4.1)
    return None if _code_of(state) == Descriptor.RECEIVED and not has_received else state


def _code_of(state: bytes) -> int:
    cursor = Cursor()
    cursor.move(state, 0, len(state))
    code = cursor.take_descriptor()
    return code if code <= Descriptor.TRANSACTIONAL_STATE else UNREAD_STATE


def send_stated(delivery: Delivery, view: Octets, start: int, end: int, more: bool) -> int:
    """Write a delivery as `Session.send` does, but with a delivery state in the first transfer.

    A state that is too long for a frame is omitted. Returns the offset reached.
    """
    link = delivery.outgoing
    session = link.session
    # with a state the list may need a wider encoding
    state = delivery.state or b""
    room = session.max_frame_payload - len(state) - WIDER
    if room < 0:
        delivery.state = NULL
        return int(session.send(delivery, view, start, end, more))
    count = min(end - start, room)
    _write_first(delivery, state, more or count < end - start, False, view, start, count)
    start += count
    return start if start == end else int(session.send(delivery, view, start, end, more))


def _write_first(
    delivery: Delivery,
    state: bytes,
    more: bool,
    aborted: bool,
    view: Octets,
    start: int,
    count: int,
) -> None:
    """Write the first transfer of a delivery with every field that it may have."""
    link = delivery.outgoing
    session = link.session
    tag = tags.octets_of(delivery)
    flags = delivery.transfer_flags
    mode = NULL
    if flags & (SETTLED_FIRST | SETTLED_SECOND):
        mode = bytes((0x50, SECOND if flags & SETTLED_SECOND else FIRST))
    fields = [
        _uint(link.handle), _uint(delivery.outgoing_id), b"\xa0", bytes((len(tag),)), tag,
        _uint(delivery.message_format), _boolean(delivery.settled or link.presettles),
        _boolean(more), mode, state or NULL, _boolean(bool(flags & RESUMED)),
        _boolean(aborted), _boolean(delivery.batchable),
    ]  # fmt: skip
    listed = b"".join(fields)
    head = b"\x00\x53\x14\xd0" + (len(listed) + 4).to_bytes(4, "big") + b"\0\0\0\x0b"
    size = 8 + len(head) + len(listed) + count
    output = session.outbox.output
    output.append(size.to_bytes(4, "big") + b"\2\0" + int(session.channel).to_bytes(2, "big"))
    output.append(head + listed)
    output.append(memoryview(view)[start : start + count])
    _written(session)
    delivery.started = True


def _uint(number: int) -> bytes:
    return b"\x70" + int(number).to_bytes(4, "big")


def _boolean(value: bool) -> bytes:
    return b"\x41" if value else b"\x42"


def _written(session: Session) -> None:
    """Count a written transfer in the session's windows."""
    session.remote_incoming_window -= 1
    session.next_outgoing_id = serial.add(session.next_outgoing_id, 1)
    session.outbox.touch()


def abort(delivery: Delivery) -> None:
    """Abort a delivery of which a part has been sent."""
    link = delivery.outgoing
    session = link.session
    session.close_outgoing(delivery)
    write_transfer(
        session.outbox.output, session.channel, link.handle, False, delivery.outgoing_id, None,
        0, 0, 0, True, False, True, b"", 0, 0,
    )  # fmt: skip
    _written(session)


def abort_whole(delivery: Delivery) -> None:
    """Abort a delivery of which nothing has been sent, by one transfer without payload."""
    link = delivery.outgoing
    session = link.session
    session.close_outgoing(delivery)
    state = delivery.state or NULL
    if len(state) + WIDER > session.max_frame_payload:
        state = NULL
    _write_first(delivery, state, False, True, b"", 0, 0)


def resume(
    session: Session,
    link: OutgoingLink,
    delivery: Delivery,
    state: Composite | None,
    *,
    settled: bool = False,
    aborted: bool = False,
    payload: bytes = b"",
) -> int:
    """Write the first transfer of a resumed delivery (section 2.6.13).

    The delivery keeps its tag and gets a new id. The link must be able to send. Returns how many
    octets of the payload were written; `Session.send` writes the rest. A state that is too long for
    a frame is omitted.
    """
    session.begin_outgoing(link, delivery)
    if settled or aborted:
        session.close_outgoing(delivery)
    transfer = Transfer(
        link.handle,
        delivery.outgoing_id,
        delivery.tag,
        delivery.message_format,
        settled=settled or link.presettles,
        state=state,
        resume=True,
        aborted=aborted,
    )
    limit: int = session.connection.remote_max_frame_size
    room = limit - len(encode_frame(session.channel, transfer))
    if room < 0:
        transfer = attrs.evolve(transfer, state=None)
        room = limit - len(encode_frame(session.channel, transfer))
    count = min(room, len(payload))
    transfer = attrs.evolve(transfer, more=count < len(payload))
    session.outbox.output.append(encode_frame(session.channel, transfer, payload[:count]))
    delivery.started = True
    _written(session)
    return count
