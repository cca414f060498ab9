"""Transfers and dispositions of a session, and every way a peer can break one with them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from router.amqp.composite import encode_composite
from router.amqp.constants import Descriptor
from router.amqp.performatives import (
    Accepted,
    Attach,
    Close,
    Detach,
    Disposition,
    End,
    Error,
    Flow,
    Modified,
    Open,
    Rejected,
    Released,
    Source,
    Target,
    Transfer,
)
from router.amqp.types import Symbol
from router.engine import attaching
from router.engine.delivery import Delivery
from router.engine.link import PEER_OVERDRAFT
from router.errors import AmqpError

from support.examples import examples
from support.flow_talks import credit, flow, granted, outgoing, send, sent
from support.transcripts import (
    NOTHING,
    OVER,
    On,
    Talk,
    attach_receiver,
    attach_sender,
    begin,
    begun,
    failed,
    like,
    linked,
    message,
    opened,
    session_of,
    wire,
)

TOP = 2**32 - 1
HALF = 2**31
EMPTY = memoryview(b"")


# Transfers in.


@pytest.mark.spec("2.7.5-7")
def test_a_delivery_in_one_frame() -> None:
    talk = granted() >> message(7, b"hello") << NOTHING
    assert talk.recorder.told("transfer") == [(7, True, False)]
    assert talk.recorder.payloads == {7: b"hello"}
    link = talk.recorder.links["sender-0"]
    assert (link.credit, link.delivery_count, link.unsettled) == (99, 1, 1)


def test_a_delivery_in_several_frames() -> None:
    talk = granted() >> message(0, b"a", more=True) >> On(0, Transfer(0, more=True), b"b")
    talk >> message(0, b"c", more=True) >> On(0, Transfer(0), b"") << NOTHING
    assert talk.recorder.payloads == {0: b"abc"}
    assert [about[1] for about in talk.recorder.told("transfer")] == [False, False, False, True]
    assert talk.recorder.links["sender-0"].credit == 99


@pytest.mark.spec("2.6.14-3")
def test_deliveries_of_two_links_may_interleave() -> None:
    talk = granted() >> attach_sender(5)
    session_of(talk).grant(talk.recorder.links["sender-5"], 5, False)
    talk.skip() >> message(0, b"a", more=True) >> message(1, b"x", 5, more=True)
    talk >> On(0, Transfer(0), b"b") >> On(0, Transfer(5), b"y") << NOTHING
    assert talk.recorder.payloads == {0: b"ab", 1: b"xy"}


@pytest.mark.parametrize("start", [0, 5, TOP])
def test_delivery_ids_begin_anywhere_and_go_on_from_there(start: int) -> None:
    talk = granted()
    for step in range(4):
        talk >> message((start + step) & TOP) << NOTHING
    talk >> message((start + 5) & TOP) << failed(End, "amqp:invalid-field")


@pytest.mark.spec("2.7.5-1")
def test_a_delivery_without_its_id_ends_the_session() -> None:
    granted() >> On(0, Transfer(0, delivery_tag=b"t"), b"x") << failed(End, "amqp:invalid-field")


@pytest.mark.spec("2.6.14-1", "2.7.5-2")
def test_another_delivery_may_not_begin_before_one_is_complete() -> None:
    talk = granted() >> message(0, more=True) >> message(1)
    talk << failed(End, "amqp:not-allowed") << NOTHING


@pytest.mark.spec("2.8.7-1")
def test_a_tag_of_more_than_32_octets_is_refused() -> None:
    talk = granted() >> message(0, delivery_tag=b"t" * 32) << NOTHING
    body = bytes.fromhex("005314c02603 43 43 a021") + b"t" * 33
    talk >> (len(body) + 8).to_bytes(4, "big") + b"\x02\0\0\0" + body
    talk << failed(Close, "amqp:decode-error") << OVER


@pytest.mark.parametrize("handle", [1, 2, 65535])
@pytest.mark.spec("2.5.4-1", "2.5.4-2", "2.8.17-2")
def test_a_transfer_on_a_handle_that_cannot_be(handle: int) -> None:
    talk = granted() >> message(0, handle=handle)
    wrong = "amqp:not-allowed" if handle == 1 else "amqp:session:unattached-handle"
    talk << failed(End, wrong) << NOTHING
    # What was under way is ignored until the end is answered; then the channel is free again.
    talk >> message(1) >> flow() >> Disposition(True, 0) >> attach_sender(9) << NOTHING
    talk >> End() << NOTHING >> begin() << like(type(begin()), remote_channel=0)


@pytest.mark.spec("2.6.5-1", "2.6.7-8")
def test_a_transfer_without_credit_costs_the_link_only() -> None:
    talk = granted(1) >> message(0) << NOTHING >> message(1)
    talk << like(Detach, handle=0, closed=True)
    assert str(talk.recorder.events[-1].error.condition) == "amqp:link:transfer-limit-exceeded"
    talk >> attach_sender(5) << Attach
    session_of(talk).grant(talk.recorder.links["sender-5"], 5, False)
    talk.skip() >> message(2, handle=5) << NOTHING
    talk >> Detach(0, True) << NOTHING
    assert talk.recorder.told("transfer")[-1] == (2, True, False)


def attached_by_us(credit: int) -> tuple[Talk, Any]:
    """Attach a link to a peer that gets `credit` on its handle 0."""
    talk = begun()
    frame = Attach("ours", 0, True, source=Source("q"), target=Target())
    link = attaching.attach(session_of(talk), frame)
    talk >> attach_sender(0, name="ours")
    session_of(talk).grant(link, credit, False)
    return talk.skip(), link


def test_a_broker_that_goes_beyond_its_credit_keeps_the_link_that_we_attached() -> None:
    talk, link = attached_by_us(2)
    for number in range(5):
        talk >> message(number) << NOTHING
    assert [about[0] for about in talk.recorder.told("transfer")] == [0, 1, 2, 3, 4]
    assert (link.credit, link.delivery_count) == (0, 5)
    # what it is told next counts from all that came
    session_of(talk).grant(link, 1, False)
    talk << like(Flow, delivery_count=5, link_credit=1)


def test_how_far_beyond_its_credit_is_too_far() -> None:
    talk, link = attached_by_us(1)
    assert link.overdraft == PEER_OVERDRAFT
    link.overdraft = 1
    # what is granted anew may be exceeded anew; less is, where more had been taken back
    session_of(talk).grant(link, 0, False)
    assert link.overdraft == PEER_OVERDRAFT
    link.overdraft = PEER_OVERDRAFT + 1
    session_of(talk).grant(link, 0, False)
    assert link.overdraft == PEER_OVERDRAFT + 1
    link.overdraft = 2
    talk.skip() >> message(0) >> message(1) << NOTHING >> message(2)
    talk << failed(Detach, "amqp:link:transfer-limit-exceeded")


@pytest.mark.spec("2.6.5-3")
def test_who_goes_on_with_a_link_after_its_error_loses_the_session() -> None:
    talk = granted(2)
    attaching.detach(talk.recorder.links["sender-0"], True, AmqpError("amqp:not-allowed", ""))
    talk << Detach
    # as much as there was credit for may have been sent before the peer knew; its ids are used up
    talk >> message(0, more=True) >> On(0, Transfer(0), b"") >> message(1) << NOTHING
    talk >> message(2) << failed(End, "amqp:session:errant-link")


def test_what_was_beyond_the_credit_may_have_been_sent_before_the_peer_knew_of_an_error() -> None:
    talk, link = attached_by_us(1)
    link.overdraft = 1
    attaching.detach(link, True, AmqpError("amqp:not-allowed", ""))
    talk << Detach >> message(0) >> message(1) << NOTHING
    talk >> message(2) << failed(End, "amqp:session:errant-link")


def test_a_link_without_credit_is_errant_at_once() -> None:
    talk = granted(1) >> message(0) >> message(1) << Detach
    talk >> message(2) << failed(End, "amqp:session:errant-link")


def test_a_link_that_we_detach_loses_what_is_under_way_and_nothing_else() -> None:
    talk = granted() >> attach_sender(5)
    session_of(talk).grant(talk.recorder.links["sender-5"], 5, False)
    talk.skip() >> message(0, more=True)
    attaching.detach(talk.recorder.links["sender-0"], True)
    talk << Detach >> message(1, handle=5) >> On(0, Transfer(0), b"") >> message(2)
    talk >> message(3, handle=5) << NOTHING


@pytest.mark.spec("2.5.4-1", "2.8.17-1")
def test_the_incoming_window_binds() -> None:
    talk = granted(window_limit=4)
    for number in range(4):
        talk.read(wire(message(number)))
    talk.read(wire(message(4)))
    # nothing was written in between, so the window could not be opened either
    error = talk.frames()[-1].performative.error
    assert str(error.condition) == "amqp:session:window-violation"


@pytest.mark.spec("B2.3.8-2")
def test_the_window_opens_again_at_the_end_of_each_turn() -> None:
    talk = granted(window_limit=4)
    for number in range(20):
        talk >> message(number)
        talk.frames()
    assert len(talk.recorder.deliveries) == 20


@pytest.mark.spec("2.5.6-4", "2.7.4-1")
def test_held_frames_narrow_the_window() -> None:
    talk = granted(window_limit=8)
    session = session_of(talk)
    session.window.held_frames = 6
    for number in range(6):
        talk.read(wire(message(number)))
    # two more may come, as the peer knows
    talk << NOTHING
    talk.read(wire(message(6)))
    talk << like(Flow, next_incoming_id=7, incoming_window=2, handle=None)
    session.window.held_frames = 8
    talk.read(wire(message(7)))
    talk.read(wire(message(8)))
    talk << NOTHING
    session.window.held_frames = 0
    session.held_frames_gone()
    talk << like(Flow, next_incoming_id=9, incoming_window=8)


@pytest.mark.spec("G1.1-5")
def test_large_frames_narrow_the_window() -> None:
    """About 4 MiB of them may be under way, from the first frame on."""
    for size, most in ((200_000, 20), (1_000_000, 4)):
        talk = granted(500, max_frame_size=1 << 20, window_limit=64)
        assert session_of(talk).window.size == 4
        windows = []
        for number in range(120):
            talk >> message(number, b"x" * size)
            windows += [each.performative.incoming_window for each in talk.frames()]
        assert max(windows) == windows[-1] == most


def test_small_frames_widen_the_window() -> None:
    talk = granted(500)
    assert session_of(talk).window.size == 64
    windows = []
    for number in range(64):
        talk >> message(number, b"x")
        windows += [each.performative.incoming_window for each in talk.frames()]
    assert windows[-1] == 1024


def test_settled_on_the_first_frame() -> None:
    talk = granted() >> message(0, settled=True) << NOTHING
    assert talk.recorder.told("transfer") == [(0, True, True)]
    assert talk.recorder.links["sender-0"].unsettled == 0


@pytest.mark.parametrize("last", [{"settled": True}, {}])
@pytest.mark.spec("2.7.5-8")
def test_settled_on_a_later_frame_settles_it_all(last: dict[str, Any]) -> None:
    talk = granted() >> message(0, more=True, settled=False)
    talk >> On(0, Transfer(0, settled=True, more=True), b"")
    talk >> On(0, Transfer(0, **last), b"") << NOTHING
    assert [about[2] for about in talk.recorder.told("transfer")] == [False, True, True]
    assert talk.recorder.links["sender-0"].unsettled == 0


@pytest.mark.parametrize("more", [True, False])
@pytest.mark.spec("2.7.5-11", "2.7.5-21", "2.7.5-22")
def test_an_aborted_delivery_is_over(more: bool) -> None:
    talk = granted() >> message(0, more=True)
    talk >> On(0, Transfer(0, aborted=True, more=more), b"ignored") << NOTHING
    assert talk.recorder.told("aborted") == [(0,)]
    assert talk.recorder.payloads == {0: b"x"}
    assert talk.recorder.links["sender-0"].unsettled == 0
    talk >> message(1) << NOTHING


def test_a_delivery_may_be_aborted_in_its_first_frame() -> None:
    talk = granted() >> message(0, aborted=True) << NOTHING
    assert talk.recorder.told("aborted") == [(0,)]
    assert talk.recorder.links["sender-0"].unsettled == 0
    talk >> message(1) << NOTHING


@pytest.mark.spec("2.7.3-14")
def test_a_message_that_is_too_large_costs_the_link() -> None:
    for frames in ([message(0, b"x" * 11)], [message(0, b"x" * 9, more=True), message(0, b"xx")]):
        talk = granted()
        talk.recorder.links["sender-0"].max_message_size = 10
        talk >> frames
        talk << like(Detach, handle=0, closed=True) << NOTHING
        error = talk.recorder.events[-1].error
        assert str(error.condition) == "amqp:link:message-size-exceeded"


# Dispositions.


def told(talk: Talk, number: int, code: Descriptor, *, settled: bool = True) -> None:
    delivery = next(d for d in talk.recorder.deliveries if d.incoming_id == number)
    session_of(talk).send_state_to_sender(delivery, settled, int(code), EMPTY, 0, 0)


def test_equal_outcomes_of_neighbours_are_told_together() -> None:
    talk = granted() >> [message(n) for n in range(8)]
    for number, code in enumerate(["ACCEPTED"] * 3 + ["RELEASED"] * 2 + ["ACCEPTED"]):
        told(talk, number, Descriptor[code])
    told(talk, 7, Descriptor.ACCEPTED)
    talk << Disposition(True, 0, 2, True, Accepted()) << Disposition(True, 3, 4, True, Released())
    talk << Disposition(True, 5, 5, True, Accepted())
    talk << Disposition(True, 7, 7, True, Accepted()) << NOTHING
    assert talk.recorder.links["sender-0"].unsettled == 1


def test_neighbours_at_the_wrap() -> None:
    talk = granted() >> [message(n) for n in (TOP - 1, TOP, 0, 1)]
    for number in (TOP - 1, TOP, 0, 1):
        told(talk, number, Descriptor.ACCEPTED)
    talk << Disposition(True, TOP - 1, 1, True, Accepted()) << NOTHING


def test_states_keep_their_order() -> None:
    talk = granted() >> [message(n) for n in range(3)]
    told(talk, 0, Descriptor.ACCEPTED)
    told(talk, 1, Descriptor.ACCEPTED, settled=False)
    told(talk, 1, Descriptor.ACCEPTED)
    told(talk, 1, Descriptor.RELEASED)
    talk << Disposition(True, 0, 0, True, Accepted())
    talk << Disposition(True, 1, 1, False, Accepted()) << Disposition(True, 1, 1, True, Accepted())
    talk << NOTHING


def test_a_state_with_fields_is_told_as_it_came() -> None:
    talk = granted() >> message(0)
    state = Modified(delivery_failed=True, message_annotations={Symbol("a"): "b"})
    octets = b".." + encode_composite(state)
    session_of(talk).send_state_to_sender(
        talk.recorder.deliveries[0], True, 0x27, memoryview(octets), 2, len(octets) - 2
    )
    talk << Disposition(True, 0, 0, True, state)


def test_a_state_larger_than_the_peer_s_frames_is_cut_to_its_outcome() -> None:
    talk = granted(remote=Open("peer", max_frame_size=512)) >> message(0)
    octets = encode_composite(Rejected(Error(Symbol("x"), description="y" * 1000)))
    session_of(talk).send_state_to_sender(
        talk.recorder.deliveries[0], True, 0x25, memoryview(octets), 0, len(octets)
    )
    talk << Disposition(True, 0, 0, True, Rejected()) << NOTHING


@pytest.mark.spec("2.7.6-1", "2.7.6-4")
def test_three_way_settlement() -> None:
    """The receiver tells its outcome, the sender settles, the receiver forgets (section 2.6.12)."""
    talk = sent(2) >> Disposition(True, 0, 1, False, Accepted()) << NOTHING
    assert talk.recorder.told("outcome") == [(0, False, 0x24), (1, False, 0x24)]
    assert outgoing(talk).unsettled == 2
    # and as the receiver
    talk = granted() >> [message(0), message(1)]
    told(talk, 0, Descriptor.ACCEPTED, settled=False)
    talk << Disposition(True, 0, 0, False, Accepted())
    talk >> Disposition(False, 0, 1, True, Accepted()) << NOTHING
    assert talk.recorder.told("settlement") == [(0, True, 0x24), (1, True, 0x24)]
    assert talk.recorder.links["sender-0"].unsettled == 0


@pytest.mark.spec("2.7.6-1")
@pytest.mark.parametrize(
    ("role", "heard", "unsettled"), [(True, "outcome", (0, 1)), (False, "settlement", (1, 0))]
)
def test_a_disposition_is_of_deliveries_of_one_direction(
    role: bool, heard: str, unsettled: tuple[int, int]
) -> None:
    talk = granted() >> credit(5) >> message(0)
    send(talk)
    talk.skip() >> Disposition(role, 0, 0, True, Accepted()) << NOTHING
    assert [about[0] for about in talk.recorder.told(heard)] == [0]
    other = "settlement" if role else "outcome"
    assert talk.recorder.told(other) == []
    assert (outgoing(talk).unsettled, talk.recorder.links["sender-0"].unsettled) == unsettled


@pytest.mark.spec("2.7.6-1")
def test_telling_a_receiver_that_its_delivery_is_settled() -> None:
    talk = sent(1)
    delivery = session_of(talk).outgoing.find(0)
    session_of(talk).send_state_to_receiver(delivery, True, 0x24, EMPTY, 0, 0)
    session_of(talk).send_state_to_receiver(delivery, True, 0x24, EMPTY, 0, 0)
    talk << Disposition(False, 0, 0, True, Accepted()) << NOTHING
    assert outgoing(talk).unsettled == 0


def test_a_sender_s_state_larger_than_the_receiver_s_frames_is_cut_too() -> None:
    talk = linked(remote=Open("peer", max_frame_size=512)) >> credit(1)
    send(talk)
    delivery = session_of(talk).outgoing.find(0)
    octets = encode_composite(Rejected(Error(Symbol("x"), description="y" * 1000)))
    talk.skip()
    session_of(talk).send_state_to_receiver(
        delivery, True, 0x25, memoryview(octets), 0, len(octets)
    )
    talk << Disposition(False, 0, 0, True, Rejected()) << NOTHING


# Transfers out.


@pytest.mark.spec("2.6.7-4", "2.7.5-1", "2.7.5-5")
def test_what_is_sent() -> None:
    talk = linked() >> credit(10) << NOTHING
    send(talk, b"hello")
    send(talk, b"", settled=True)
    made = {"message_format": 0}
    talk << On(0, like(Transfer, handle=1, delivery_id=0, settled=False, **made), b"hello")
    talk << On(0, like(Transfer, handle=1, delivery_id=1, settled=True, **made), b"") << NOTHING
    link = outgoing(talk)
    assert (link.credit, link.delivery_count, link.unsettled) == (8, 2, 1)


@pytest.mark.parametrize("size", [0, 1, 439, 440, 441, 880, 881, 5000])
def test_a_message_is_cut_to_the_peer_s_frames(size: int) -> None:
    talk = linked(remote=Open("peer", max_frame_size=512)) >> credit(1)
    payload = bytes(n % 251 for n in range(size))
    send(talk, payload)
    frames = talk.frames()
    assert b"".join(frame.payload or b"" for frame in frames) == payload
    assert [frame.performative.more for frame in frames] == [True] * (len(frames) - 1) + [False]
    assert [frame.performative.delivery_id for frame in frames] == [0] + [None] * (len(frames) - 1)


@pytest.mark.spec("2.5.6-2")
def test_sending_stops_where_the_window_ends() -> None:
    talk = linked(remote=Open("peer", max_frame_size=512), begin={"incoming_window": 2})
    talk >> credit(5, incoming_window=2)
    session, delivery, payload = session_of(talk), Delivery(), memoryview(bytes(2000))
    session.begin_outgoing(outgoing(talk), delivery)
    at = session.send(delivery, payload, 0, 2000, False)
    assert 0 < at < 2000
    assert len(talk.frames()) == 2
    assert not session.can_send(outgoing(talk))
    talk >> flow(next_incoming_id=2, incoming_window=1)
    assert talk.recorder.told("room") == [()]
    at = session.send(delivery, payload, at, 2000, False)
    talk >> flow(next_incoming_id=3, incoming_window=100)
    assert session.send(delivery, payload, at, 2000, False) == 2000
    frames = talk.frames()
    assert frames[-1].performative.more is False


@pytest.mark.spec("2.5.6-2", "2.5.6-7", "2.5.6-8")
def test_a_window_told_before_what_is_under_way_arrived() -> None:
    talk = linked() >> credit(10)
    for _ in range(6):
        send(talk)
    talk.skip() >> flow(next_incoming_id=2, incoming_window=5)
    assert session_of(talk).remote_incoming_window == 1
    talk >> flow(next_incoming_id=2, incoming_window=3)
    assert not session_of(talk).can_send(outgoing(talk))
    talk >> flow(next_incoming_id=None, incoming_window=10)
    assert session_of(talk).remote_incoming_window == 4


@pytest.mark.spec("2.7.3-4", "2.7.5-9", "2.8.2-1")
def test_a_link_that_wants_everything_settled() -> None:
    talk = begun() >> attach_receiver(snd_settle_mode=1)
    talk.skip() >> credit(5)
    send(talk)
    talk << like(Transfer, settled=True)
    assert outgoing(talk).unsettled == 0


def test_a_closed_socket_buffer_stops_sending() -> None:
    talk = linked() >> credit(5)
    session = session_of(talk)
    assert session.can_send(outgoing(talk))
    talk.connection.outbox.output.append(bytes(600_000))
    talk.connection.outbox.touch()
    assert not session.can_send(outgoing(talk))
    talk.connection.sent(600_000)
    assert session.can_send(outgoing(talk))
    assert talk.recorder.told("room") == [()]


# Any frames at all.


FRAMES = st.one_of(
    st.builds(
        message,
        st.integers(0, 6),
        st.binary(max_size=5),
        st.integers(0, 3),
        more=st.booleans(),
        aborted=st.booleans(),
        settled=st.sampled_from([None, True, False]),
    ),
    st.builds(
        Disposition,
        st.booleans(),
        st.sampled_from([0, 1, 5, TOP]),
        st.sampled_from([None, 0, 3, HALF]),
        st.booleans(),
        st.sampled_from([None, Accepted(), Rejected(Error(Symbol("x")))]),
    ),
    st.builds(
        flow,
        next_incoming_id=st.sampled_from([None, 0, 3, HALF, TOP]),
        incoming_window=st.sampled_from([0, 3, TOP]),
        handle=st.sampled_from([None, 0, 1, 2]),
        delivery_count=st.sampled_from([None, 0, 3, HALF, TOP]),
        link_credit=st.sampled_from([None, 0, 3, HALF, TOP]),
        drain=st.booleans(),
        echo=st.booleans(),
    ),
    st.builds(attach_sender, st.integers(0, 3)),
    st.builds(attach_receiver, st.integers(0, 3)),
    st.builds(Detach, st.integers(0, 3), st.booleans()),
    st.sampled_from([End(), begin(), begin(remote_channel=0), Close()]),
)


@examples(300)
@given(st.lists(FRAMES, max_size=25), st.integers(0, 6))
def test_any_frames_in_any_order_are_answered_with_frames(frames: list[Any], credit: int) -> None:
    talk = granted(credit)
    for frame in frames:
        talk >> frame
        for said in talk.frames():
            assert said.performative is not None
    for link in talk.recorder.links.values():
        assert link.unsettled >= 0
        assert 0 <= link.credit <= TOP


def test_frames_for_a_session_that_was_never_begun_close() -> None:
    for frame in (message(0), flow(), Disposition(True, 0), attach_sender(), Detach(0), End()):
        opened() >> frame << failed(Close, "amqp:not-allowed") << OVER
