"""Transfers that say how they are to be settled, or that nothing more comes."""

from __future__ import annotations

from typing import Any

import pytest

from router.amqp.composite import encode_composite
from router.amqp.constants import ReceiverSettleMode
from router.amqp.encode import encode_value
from router.amqp.performatives import (
    Accepted,
    Attach,
    Close,
    Detach,
    Disposition,
    Error,
    Flow,
    Modified,
    Open,
    Received,
    Rejected,
    Transfer,
)
from router.amqp.types import Described, Symbol, ULong
from router.engine import rare_transfers
from router.engine.delivery import Delivery
from router.engine.states import Settling

from support.transcripts import (
    NOTHING,
    OVER,
    On,
    Talk,
    attach_receiver,
    attach_sender,
    begun,
    failed,
    like,
    linked,
    message,
    session_of,
)

FIRST = ReceiverSettleMode.FIRST
SECOND = ReceiverSettleMode.SECOND


def granted(mode: ReceiverSettleMode) -> Talk:
    """Return a session whose peer may send on handle 0 and asked for this mode."""
    talk = begun() >> attach_sender(rcv_settle_mode=mode)
    talk << like(Attach, rcv_settle_mode=mode)
    session_of(talk).grant(talk.recorder.links["sender-0"], 10, False)
    return talk.skip()


@pytest.mark.spec("2.7.5-14")
@pytest.mark.parametrize(
    ("link", "transfer", "settling"),
    [
        (FIRST, None, Settling.FIRST),
        (FIRST, FIRST, Settling.FIRST),
        (SECOND, None, Settling.SECOND),
        (SECOND, FIRST, Settling.FIRST),
        (SECOND, SECOND, Settling.SECOND),
    ],
)
@pytest.mark.parametrize("more", [True, False])
def test_a_transfer_s_own_mode_goes_before_that_of_its_link(
    link: ReceiverSettleMode, transfer: ReceiverSettleMode | None, settling: Settling, more: bool
) -> None:
    talk = granted(link) >> message(0, rcv_settle_mode=transfer, more=more) << NOTHING
    (delivery,) = talk.recorder.deliveries
    assert delivery.settling == settling


@pytest.mark.spec("2.7.5-15")
@pytest.mark.parametrize("more", [True, False])
def test_a_transfer_must_not_ask_for_second_where_its_link_is_first(more: bool) -> None:
    talk = granted(FIRST) >> message(0, rcv_settle_mode=SECOND, more=more)
    talk << failed(Detach, "amqp:not-allowed") << NOTHING
    assert talk.recorder.deliveries == []
    # what was on its way is ignored
    talk >> On(0, Transfer(0), b"y") << NOTHING
    assert session_of(talk).incoming.count == 0


@pytest.mark.parametrize("link", ReceiverSettleMode)
def test_a_mode_is_not_looked_at_in_what_comes_settled(link: ReceiverSettleMode) -> None:
    talk = granted(link) >> message(0, settled=True, rcv_settle_mode=SECOND) << NOTHING
    (delivery,) = talk.recorder.deliveries
    assert delivery.settling == Settling.FIRST


def test_unsettled_states_are_told_with_their_neighbours() -> None:
    talk = granted(SECOND) >> [message(number) for number in range(4)]
    session = session_of(talk)
    for delivery, settled in zip(talk.recorder.deliveries, (0, 0, 1, 0), strict=True):
        session.send_state_to_sender(delivery, bool(settled), 0x24, b"", 0, 0)
    heard = [
        (each.performative.first, each.performative.last, each.performative.settled)
        for each in talk.frames()
        if isinstance(each.performative, Disposition)
    ]
    assert heard == [(0, 1, False), (2, 2, True), (3, 3, False)]
    assert session.incoming.count == 3


@pytest.mark.spec("2.7.5-12", "2.7.5-22")
def test_an_abort_ends_a_delivery() -> None:
    talk = linked() >> Flow(
        1000, 0, 1000, next_incoming_id=0, handle=1, delivery_count=0, link_credit=5
    )
    session, delivery, link = session_of(talk), Delivery(), talk.recorder.links["receiver-1"]
    session.begin_outgoing(link, delivery)
    session.send(delivery, memoryview(b"half"), 0, 4, True)
    rare_transfers.abort(delivery)
    talk << On(0, like(Transfer, more=True), b"half")
    talk << On(0, like(Transfer, aborted=True, more=False, delivery_id=None), b"") << NOTHING
    assert link.unsettled == 0


# States.

MINE = Described(Symbol("x:mine:list"), ["whatever", 1])
STATES = [
    Accepted(),
    Rejected(Error(Symbol("x:y"))),
    Modified(True, None, {Symbol("k"): "v" * 300}),
    MINE,
]


def outgoing_handle(talk: Talk) -> int:
    return int(talk.recorder.links["receiver-1"].handle)


def octets_of(state: Any) -> bytes:
    return encode_value(state) if isinstance(state, Described) else encode_composite(state)


def deliver(talk: Talk, delivery: Delivery, payload: bytes, *, more: bool = False) -> int:
    """Send this much of a delivery on the peer's receiver at handle 1."""
    session = session_of(talk)
    if delivery.outgoing is None:
        session.begin_outgoing(talk.recorder.links["receiver-1"], delivery)
    sent: int = session.send(delivery, memoryview(payload), 0, len(payload), more)
    return sent


def receiving(talk: Talk) -> Talk:
    """Give the router credit to send to the peer on handle 1."""
    credit: Any = {"handle": 1, "delivery_count": 0, "link_credit": 100}
    return (talk >> Flow(1000, 0, 1000, next_incoming_id=0, **credit)).skip()


@pytest.mark.spec("2.7.5-16")
@pytest.mark.parametrize("settled", [True, False])
@pytest.mark.parametrize("state", STATES)
def test_a_state_is_taken_from_a_transfer(state: Any, settled: bool) -> None:
    talk = granted(FIRST) >> message(0, state=state, settled=settled) << NOTHING
    (delivery,) = talk.recorder.deliveries
    assert delivery.state == octets_of(state)
    assert talk.recorder.payloads == {0: b"x"}


@pytest.mark.spec("3.4.1-1")
def test_how_far_a_message_was_received_is_for_resumed_deliveries() -> None:
    talk = granted(FIRST) >> message(0, state=Received(1, 2), more=True)
    talk >> On(0, Transfer(0, state=Received(1, 2)), b"y") << NOTHING
    (delivery,) = talk.recorder.deliveries
    assert delivery.state is None
    assert talk.recorder.told("settlement") == []


def test_a_state_that_is_none_closes_the_connection() -> None:
    talk = granted(FIRST) >> On(0, Transfer(0, 0, b"t", 0, state=Described(ULong(0x24), 5)), b"")
    talk << failed(Close, "amqp:decode-error") << OVER


@pytest.mark.spec("2.7.5-16")
@pytest.mark.parametrize("state", STATES)
def test_a_later_transfer_s_state_is_a_disposition_s(state: Any) -> None:
    talk = granted(FIRST) >> message(0, more=True) >> On(0, Transfer(0, state=state), b"y")
    talk << NOTHING
    ((number, settled, code),) = talk.recorder.told("settlement")
    assert (number, settled) == (0, False)
    assert code == int(getattr(state, "CODE", 0xFF))
    assert talk.recorder.payloads == {0: b"xy"}


@pytest.mark.spec("2.7.5-16")
@pytest.mark.parametrize("more", [True, False])
@pytest.mark.parametrize("settled", [True, False])
@pytest.mark.parametrize("tag", [None, b"t" * 32])
@pytest.mark.parametrize("state", STATES)
def test_a_state_goes_with_the_first_transfer(
    state: Any, tag: bytes | None, settled: bool, more: bool
) -> None:
    talk = receiving(linked())
    delivery = Delivery()
    delivery.state = octets_of(state)
    delivery.tag = tag
    delivery.settled = settled
    delivery.message_format = 7
    assert deliver(talk, delivery, b"payload", more=more) == 7
    first = Transfer(
        outgoing_handle(talk), 0, tag or b"\xfe" + bytes(4), 7, settled=settled, more=more,
        state=state, batchable=False,
    )  # fmt: skip
    talk << On(0, first, b"payload")
    if more:
        assert deliver(talk, delivery, b"", more=False) == 0
        talk << On(0, like(Transfer, delivery_id=None, state=None, more=False), b"")
    talk << NOTHING
    session = session_of(talk)
    assert session.next_outgoing_id == (2 if more else 1)
    assert session.remote_incoming_window == 1000 - session.next_outgoing_id
    assert session.outgoing.count == (0 if settled else 1)


@pytest.mark.parametrize("size", range(300, 420, 7))
def test_a_state_takes_room_in_its_frame(size: int) -> None:
    """Frames of 512 octets; what no frame has room for is left out, and the message goes on."""
    talk = receiving(linked(remote=Open("peer", max_frame_size=512)))
    state = Described(Symbol("x:mine:list"), ["." * size])
    delivery = Delivery()
    delivery.state = octets_of(state)
    payload = bytes(range(256)) * 4
    assert deliver(talk, delivery, payload) == len(payload)
    talk.drain()
    frames = talk.frames()
    assert b"".join(frame.payload or b"" for frame in frames) == payload
    told = frames[0].performative.state
    assert told == (None if size > 400 else state)
    assert [frame.performative.more for frame in frames] == [True] * (len(frames) - 1) + [False]


def test_a_state_without_a_message() -> None:
    talk = receiving(linked())
    delivery = Delivery()
    delivery.state = octets_of(Accepted())
    assert deliver(talk, delivery, b"") == 0
    talk << On(0, like(Transfer, state=Accepted(), more=False), b"") << NOTHING


# A delivery is resumed.

TAG = b"before"


def resuming(**settings: Any) -> tuple[Talk, Any, Any]:
    talk = begun(**settings) >> attach_receiver(0)
    talk.skip()
    (link,) = talk.recorder.links.values()
    link.credit = 5
    return talk, talk.connection.local_sessions[0], link


def remembered() -> Delivery:
    delivery = Delivery()
    delivery.tag = TAG
    return delivery


@pytest.mark.parametrize("state", [None, Accepted(), Received(1, 2)])
@pytest.mark.spec("2.6.13-5", "2.7.5-19")
def test_a_delivery_is_resumed_under_its_tag(state: Any) -> None:
    talk, session, link = resuming()
    delivery = remembered()
    rare_transfers.resume(session, link, delivery, state)
    told = like(Transfer, delivery_id=0, delivery_tag=TAG, state=state, resume=True, more=False)
    talk << On(0, told, b"") << NOTHING
    assert session.outgoing.find(0) is delivery
    assert (link.credit, link.delivery_count, session.next_outgoing_id) == (4, 1, 1)


@pytest.mark.parametrize("field", ["settled", "aborted"])
def test_what_is_settled_or_aborted_is_not_awaited(field: str) -> None:
    talk, session, link = resuming()
    fields: dict[str, Any] = {field: True}
    rare_transfers.resume(session, link, remembered(), None, **fields)
    talk << On(0, like(Transfer, resume=True, **{field: True}), b"") << NOTHING
    assert session.outgoing.count == 0
    assert link.unsettled == 0


def test_its_payload_goes_along() -> None:
    talk, session, link = resuming()
    assert rare_transfers.resume(session, link, remembered(), None, payload=b"payload") == 7
    talk << On(0, like(Transfer, resume=True, more=False), b"payload") << NOTHING


def test_as_much_of_its_payload_goes_along_as_there_is_room_for() -> None:
    talk, session, link = resuming(remote=Open("peer", max_frame_size=512))
    delivery = remembered()
    payload = bytes(range(250)) * 4
    sent = rare_transfers.resume(session, link, delivery, None, payload=payload)
    assert 400 < sent < 512
    assert session.send(delivery, memoryview(payload), sent, 1000, False) == 1000
    first, *others = talk.frames()
    assert (first.performative.resume, first.performative.more) == (True, True)
    assert first.payload == payload[:sent]
    assert b"".join(frame.payload or b"" for frame in others) == payload[sent:]
    assert not others[-1].performative.more


def test_a_state_too_long_for_a_frame_is_left_out() -> None:
    talk, session, link = resuming(remote=Open("peer", max_frame_size=512))
    state = Rejected(error=Error(Symbol("x"), "y" * 600))
    rare_transfers.resume(session, link, remembered(), state, settled=True)
    talk << On(0, like(Transfer, resume=True, state=None, settled=True), b"") << NOTHING
