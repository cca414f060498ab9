"""Octets in, however they come: frames, damaged frames, no frames; octets out, once a turn."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, strategies as st

from router.amqp.composite import encode_composite
from router.amqp.framing import AMQP_HEADER, SASL_HEADER, encode_frame
from router.amqp.performatives import (
    Accepted,
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    Error,
    Flow,
    Open,
    Received,
    Rejected,
    Released,
    Transfer,
)
from router.amqp.reading import Cursor
from router.amqp.types import Symbol
from router.engine import beginning
from router.engine.delivery import Delivery
from router.engine.events import ConnectionClosed
from router.engine.settings import TURN_WORK
from router.errors import AmqpError

from support.examples import examples
from support.transcripts import (
    NOTHING,
    OVER,
    On,
    Recorder,
    Talk,
    attach_receiver,
    attach_sender,
    begin,
    begun,
    cuts,
    failed,
    linked,
    message,
    opened,
    wire,
)

FRAMING = "amqp:connection:framing-error"


def frame(size: int, doff: int, kind: int, body: bytes, channel: int = 0) -> bytes:
    return size.to_bytes(4, "big") + bytes((doff, kind)) + channel.to_bytes(2, "big") + body


@pytest.mark.parametrize(
    "octets",
    [
        frame(0, 2, 0, b""),
        frame(7, 2, 0, b""),
        frame(8, 0, 0, b""),
        frame(8, 1, 0, b""),
        frame(8, 3, 0, b""),
        frame(20, 6, 0, bytes(12)),
        frame(8, 255, 0, b""),
        frame(8, 2, 1, b""),
        frame(8, 2, 2, b""),
        frame(8, 2, 255, b""),
        frame(65537, 2, 0, b""),
        frame(2**31, 2, 0, b""),
        frame(2**32 - 1, 2, 0, b""),
        AMQP_HEADER,
        b"GET / HT",
    ],
)
@pytest.mark.spec("2.3.1-2", "2.3.1-3", "2.3.1-4", "2.7.1-5", "B2.3.4-2")
def test_what_can_be_no_frame_closes(octets: bytes) -> None:
    talk = opened() >> octets << failed(Close, FRAMING) << OVER
    assert len(talk.recorder.of(ConnectionClosed)) == 1


@pytest.mark.spec("2.7.1-5")
def test_a_frame_too_large_is_refused_by_its_first_octets() -> None:
    talk = opened(max_frame_size=512) >> frame(513, 2, 0, b"")[:8]
    talk << failed(Close, FRAMING) << OVER


@pytest.mark.spec("2.7.1-5", "2.7.1-6")
def test_the_largest_frame_is_taken() -> None:
    talk = linked(max_frame_size=512)
    talk.connection.local_sessions[0].grant(talk.recorder.links["sender-0"], 5, False)
    empty = len(wire(message(0, b"")))
    talk.skip() >> message(0, b"x" * (512 - empty)) << NOTHING
    assert len(talk.recorder.payloads[0]) == 512 - empty
    talk >> message(1, b"x" * (513 - empty)) << failed(Close, FRAMING) << OVER


@pytest.mark.spec("2.3-1")
def test_an_extended_header_is_stepped_over() -> None:
    body = encode_composite(begin())
    talk = opened() >> frame(len(body) + 20, 5, 0, b"\xff" * 12 + body) << Begin << NOTHING
    assert talk.connection.frames_received == 2


@pytest.mark.spec("2.4.5-6")
def test_an_empty_frame_says_nothing() -> None:
    begun() >> encode_frame(0) >> encode_frame(9) >> frame(12, 3, 0, b"abcd") << NOTHING


@pytest.mark.parametrize(
    "body",
    [
        b"\x00",
        b"\x00\x53",
        b"\x00\x53\x11",
        b"\x40",
        b"\x00\x53\x99\x45",
        b"\x00\xa3\x04nope\x45",
        b"\x00\x53\x11\xc0\xff\x01",
        b"\x00\x53\x10\x45",
        b"\x00\x53\x14\x45",
        b"\x00\x53\x15\x45",
        b"\x00\x53\x13\x45",
        b"\xff" * 20,
        b"\x00" * 200,
        b"\xc0" * 200,
        b"\x00\x53\x12\xc0\x05\x01\xa1\x02\xff\xfe",
        b"\x00\x53\x24\x45",
        b"\x00\x53\x18\xc0\x02\x02\x40",
    ],
)
@pytest.mark.parametrize("octets_a_read", [0, 1])
@pytest.mark.spec("2.3.2-1", "B2.3.4-2")
def test_a_body_that_cannot_be_read_closes(body: bytes, octets_a_read: int) -> None:
    talk = linked(octets_a_read=octets_a_read)
    talk >> frame(len(body) + 8, 2, 0, body) << Close << OVER
    assert talk.recorder.of(ConnectionClosed)[0].error is not None


@pytest.mark.spec("2.3.2-2")
def test_symbolic_descriptors_are_performatives_too() -> None:
    octets = encode_composite(begin())
    assert octets[:3] == b"\x00\x53\x11"
    body = b"\x00\xa3\x0famqp:begin:list" + octets[3:]
    opened() >> frame(len(body) + 8, 2, 0, body) << Begin << NOTHING


EVERYTHING: list[Any] = [
    AMQP_HEADER,
    Open("c"),
    begin(),
    attach_sender(),
    attach_receiver(),
    encode_frame(3),
    Flow(
        next_incoming_id=0,
        incoming_window=9,
        next_outgoing_id=1,
        outgoing_window=9,
        handle=1,
        delivery_count=0,
        link_credit=5,
    ),
]


def played(octets: list[bytes]) -> tuple[Any, Any]:
    """Return what is said and heard when octets come in these pieces."""
    recorder = Recorder()
    talk = Talk(recorder, sasl_mechanisms=())
    for piece in octets:
        talk >> piece
    talk << AMQP_HEADER
    return talk.frames(), recorder.heard


@pytest.mark.spec("2.1.2-1")
def test_pieces_make_no_difference() -> None:
    whole = wire(EVERYTHING)
    expected = played([whole])
    assert expected[1][-1].what == "credit"
    for pieces in cuts(whole):
        assert played(list(pieces)) == expected
    assert played([whole[at : at + 1] for at in range(len(whole))]) == expected


def test_octets_behind_a_frame_are_kept_and_not_more() -> None:
    talk = opened()
    octets = wire(begin())
    talk >> octets + octets[:5] << Begin
    assert talk.connection.kept == octets[:5]
    talk >> octets[5:]
    assert talk.connection.kept == b""
    talk >> b"\x00" * 8 + b"x" * 500
    assert talk.connection.kept == b""


@pytest.mark.spec("2.1.2-2")
def test_an_error_of_one_session_leaves_what_follows_in_the_same_read() -> None:
    talk = opened() >> [On(0, begin()), On(1, begin())]
    talk.skip() >> [message(0, handle=9), On(1, attach_sender()), On(2, begin())]
    said = [type(each.performative).__name__ for each in talk.frames()]
    assert said == ["End", "Attach", "Begin"]


@pytest.mark.spec("2.4.6-2")
def test_what_follows_a_close_in_the_same_read_is_not_read() -> None:
    talk = opened() >> [Close(), begin(), b"\xff" * 50] << Close() << OVER
    assert talk.connection.kept == b""


def test_a_connection_that_is_paused_keeps_what_comes() -> None:
    talk = Talk() >> SASL_HEADER
    init = b"\x00\x53\x41\xc0\x0c\x01\xa3\x09ANONYMOUS"
    talk >> frame(len(init) + 8, 2, 1, init) + AMQP_HEADER[:4]
    assert talk.connection.paused
    talk >> AMQP_HEADER[4:]
    talk.connection.sasl_outcome(True, "u")
    talk.skip() >> Open("c") << Open << NOTHING


def test_a_turn_sends_each_connection_once() -> None:
    talk = begun()
    talk.turn.touched.clear()
    for _ in range(3):
        talk.read(wire(attach_sender(talk.connection.frames_received)))
    assert talk.turn.touched == [talk.connection]
    talk << Attach << Attach << Attach << NOTHING


def test_an_address_of_another_type_is_no_attach() -> None:
    source = b"\x00\x53\x28\xc0\x03\x01\x52\x05"
    items = b"\xa1\x01n\x43\x41\x40\x40" + source
    body = b"\x00\x53\x12\xc0" + bytes((len(items) + 1, 6)) + items
    begun() >> frame(len(body) + 8, 2, 0, body) << Close << OVER


OCTETS = st.one_of(
    st.binary(max_size=60),
    st.builds(
        frame,
        st.integers(0, 80),
        st.integers(0, 4),
        st.integers(0, 2),
        st.binary(max_size=80),
        st.integers(0, 2),
    ),
    st.binary(max_size=60).map(lambda body: frame(len(body) + 8, 2, 0, body)),
    st.tuples(st.sampled_from(range(0x10, 0x19)), st.binary(max_size=30)).map(
        lambda pair: frame(
            len(pair[1]) + 13, 2, 0, b"\x00\x53" + bytes((pair[0], 0xC0, len(pair[1]))) + pair[1]
        )
    ),
)


@examples(400)
@given(st.lists(OCTETS, max_size=6), st.sampled_from([0, 1, 7]))
@example([frame(12, 2, 0, b"\x00\x53\x15\xc0")], 0)
def test_any_octets_are_answered_with_frames(pieces: list[bytes], octets_a_read: int) -> None:
    for talk in (Talk(), opened(), linked()):
        talk._octets_a_read = octets_a_read
        for piece in pieces:
            talk >> piece
            said = bytes(talk.connection.outbox.output.waiting())
            if said.startswith(b"AMQP"):
                talk.skip()
            talk.frames()
        assert len(talk.recorder.of(ConnectionClosed)) <= 1


@examples(300)
@given(st.data())
def test_a_damaged_conversation_is_answered_with_frames(data: st.DataObject) -> None:
    octets = bytearray(wire(EVERYTHING))
    for _ in range(data.draw(st.integers(1, 4))):
        octets[data.draw(st.integers(8, len(octets) - 1))] = data.draw(st.integers(0, 255))
    talk = Talk(sasl_mechanisms=()) >> bytes(octets) << AMQP_HEADER
    talk.frames()
    assert len(talk.recorder.of(ConnectionClosed)) <= 1


# Much work in few octets.


def give(talk: Talk, octets: bytes) -> None:
    """Have the connection read octets, and do what it does of them in one turn."""
    talk.connection.receive(memoryview(bytearray(octets)), len(octets))


def unsettled(count: int) -> Talk:
    """Return a peer with `count` deliveries that it has not settled."""
    talk = linked()
    talk >> Flow(
        next_incoming_id=0, incoming_window=2**31 - 1, next_outgoing_id=0, outgoing_window=1,
        handle=1, delivery_count=0, link_credit=count,
    )  # fmt: skip
    link = talk.recorder.links["receiver-1"]
    for _ in range(count):
        delivery = Delivery()
        link.session.begin_outgoing(link, delivery)
        assert link.session.send(delivery, memoryview(b"x"), 0, 1, False) == 1
    return talk.skip()


# How many deliveries of a disposition are taken in within one turn: 2 frames' worth each.
MOST_DELIVERIES = TURN_WORK // 2


def cursor_at(disposition: Disposition) -> Cursor:
    """Return a cursor at the fields of a disposition."""
    octets = encode_composite(disposition)
    cursor = Cursor()
    cursor.octets, cursor.end = octets, len(octets)
    cursor.take_descriptor()
    return cursor


def about(last: int, state: Any, *, settled: bool = False) -> Disposition:
    return Disposition(True, 0, last, settled, state)


def outcomes(talk: Talk) -> int:
    return len(talk.recorder.told("outcome"))


def test_others_have_their_turn_when_a_read_is_much_work() -> None:
    talk = unsettled(1000)
    give(talk, wire(about(999, Received(0, 0))) * 100)
    turns = [outcomes(talk)]
    while talk.connection.is_behind:
        talk.connection.resume()
        turns.append(outcomes(talk) - sum(turns))
    assert max(turns) <= MOST_DELIVERIES
    assert len(turns) <= 2 * -(-100_000 // MOST_DELIVERIES)
    assert sum(turns) == 100_000
    assert talk.connection.kept == b""


def test_one_disposition_may_take_several_turns() -> None:
    count = 2 * MOST_DELIVERIES + 1
    talk = unsettled(count)
    rejected = Rejected(Error(Symbol("x:mine")))
    give(talk, wire([about(count - 1, rejected, settled=True), about(count - 1, Accepted())]))
    turns = [outcomes(talk)]
    while talk.connection.is_behind:
        # what is read meanwhile is not what it says any more
        talk.connection.disposition.read(cursor_at(about(0, Released())))
        talk.connection.resume()
        turns.append(outcomes(talk) - sum(turns))
    # and what was read behind it has a turn of its own
    assert turns == [MOST_DELIVERIES, MOST_DELIVERIES, 1, 0]
    heard = talk.recorder.told("outcome")
    assert [number for number, *_ in heard] == list(range(count))
    assert {state for _, _, state in heard} == {0x25}


def test_a_session_that_ends_in_the_middle_of_a_disposition() -> None:
    talk = unsettled(2 * MOST_DELIVERIES)
    give(talk, wire(about(2 * MOST_DELIVERIES - 1, Accepted(), settled=True)))
    beginning.end(talk.connection.sessions.find(0), None)
    talk.connection.resume()
    assert bool(talk.connection.is_behind) is False
    assert outcomes(talk) == MOST_DELIVERIES


def test_what_comes_after_much_work_comes_after_it() -> None:
    talk = unsettled(1000)
    said = wire([about(999, Received(0, 0))] * 40 + [about(999, Accepted(), settled=True), Close()])
    give(talk, said[:-1])
    assert bool(talk.connection.is_behind) is True
    talk << NOTHING
    while talk.connection.is_behind:
        talk.connection.resume()
    # half a frame is left, and nothing to go on with
    assert outcomes(talk) == 41_000
    talk.read(said[-1:])
    talk << Close() << OVER


def test_a_read_that_ends_with_much_work_leaves_nothing_behind() -> None:
    talk = unsettled(MOST_DELIVERIES)
    give(talk, wire(about(MOST_DELIVERIES - 1, Accepted(), settled=True)))
    assert outcomes(talk) == MOST_DELIVERIES
    assert bool(talk.connection.is_behind) is False
    assert talk.connection.kept == b""


def test_ordinary_reads_are_done_in_one_turn() -> None:
    talk = linked(link_capacity=10_000)
    talk.recorder.links["sender-0"].session.grant(talk.recorder.links["sender-0"], 10_000, False)
    talk.skip()
    # as many as a read of 256 KiB can bring
    for first in range(0, 6000, 1000):
        talk.skip()
        give(talk, wire([message(n, b"") for n in range(first, first + 1000)]))
        assert bool(talk.connection.is_behind) is False
    give(talk, frame(8, 2, 0, b"") * (TURN_WORK - 1))
    assert bool(talk.connection.is_behind) is False


def test_frames_that_tables_decode_count_for_more() -> None:
    talk = begun()
    links = [attach_receiver(n) for n in range(200)]
    give(talk, wire(links))
    assert bool(talk.connection.is_behind) is True
    some = len(talk.recorder.links)
    assert 5 < some < 10
    while talk.connection.is_behind:
        talk.connection.resume()
    assert len(talk.recorder.links) == 200


def test_a_word_that_says_nothing_costs_nothing() -> None:
    talk = unsettled(1000)
    give(talk, wire([about(999, None)] * 1000))
    assert bool(talk.connection.is_behind) is False
    assert outcomes(talk) == 0


def test_much_work_and_a_close_in_the_middle_of_it() -> None:
    talk = unsettled(1000)
    give(talk, wire([about(999, Received(0, 0))] * 40 + [Close()]))
    talk.connection.close(AmqpError("amqp:internal-error", "meanwhile"))
    said = outcomes(talk)
    while talk.connection.is_behind:
        talk.connection.resume()
    assert outcomes(talk) == said
    assert talk.connection.kept == b""


@pytest.mark.parametrize("frame", [encode_frame(8), encode_frame(8, Close()), On(8, begin())])
@pytest.mark.spec("2.7.1-8")
def test_a_channel_beyond_the_highest_ends_the_connection(frame: Any) -> None:
    opened(channel_max=7) >> frame << failed(Close, "amqp:connection:framing-error") << OVER


@pytest.mark.parametrize(
    "performative",
    [
        Transfer(8, delivery_id=0, delivery_tag=b"t"),
        Flow(
            handle=8, incoming_window=1, next_outgoing_id=0, outgoing_window=1, next_incoming_id=0
        ),
        Detach(8),
    ],
)
@pytest.mark.spec("2.7.2-4")
def test_a_handle_beyond_the_highest_ends_the_connection(performative: Any) -> None:
    talk = begun(handle_max=7)
    talk >> performative << failed(Close, "amqp:connection:framing-error") << OVER


def test_what_ends_within_a_frame_or_a_delivery_is_followed_by_more() -> None:
    talk = linked()
    connection = talk.connection
    connection.local_sessions[0].grant(talk.recorder.links["sender-0"], 5, False)
    expected = []
    whole = wire(message(0, b"x" * 50))
    for octets in (whole[:5], whole[5:60], whole[60:], wire(message(1, more=True))):
        talk.read(octets)
        expected.append(bool(connection.expects_more()))
    talk.read(wire(On(0, Transfer(0), b"")))
    assert expected == [True, True, False, True]
    assert not connection.expects_more()
