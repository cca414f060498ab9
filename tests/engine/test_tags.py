"""Delivery-tags: kept where that is proved to be unique, and never twice among the unsettled."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from router.amqp.performatives import Accepted, Transfer
from router.amqp.reading import TransferFrame
from router.engine import tags
from router.engine.delivery import Delivery

from support.flow_talks import credit, outgoing
from support.transcripts import Talk, linked, session_of

OWN = b"\xfe"


def sent(talk: Talk, tag: bytes, *, settled: bool = False) -> Delivery:
    """Send on a delivery that came with a tag; the one it has on its way out is `told`."""
    delivery = Delivery()
    delivery.settled = settled
    delivery.tag_size = len(tag)
    if len(tag) > 8:
        delivery.incoming_tag = tag
    else:
        delivery.tag_word = int.from_bytes(tag, "big")
    session_of(talk).begin_outgoing(outgoing(talk), delivery)
    session_of(talk).send(delivery, memoryview(b""), 0, 0, False)
    return delivery


@pytest.mark.parametrize("size", range(12))
def test_a_tag_is_taken_from_its_frame(size: int) -> None:
    octets = bytes(range(255, 200, -1))
    frame = TransferFrame()
    frame.octets = memoryview(octets)
    frame.tag_at, frame.tag_end = 20 - size, 20
    delivery = Delivery()
    delivery.incoming = session_of(linked()).incoming_link(0)
    tags.take(delivery, frame)
    assert delivery.tag_size == size
    tag = octets[20 - size : 20]
    if size > 8:
        assert delivery.incoming_tag == tag
    else:
        assert delivery.tag_word == int.from_bytes(tag, "big")


def told(talk: Talk) -> list[Any]:
    """Return the tags of the transfers that the peer hears."""
    frames = [on.performative for on in talk.frames()]
    return [frame.delivery_tag for frame in frames if isinstance(frame, Transfer)]


def kept(made: list[bytes], *, settled: bool = False) -> list[bytes]:
    """Which of the tags are kept of deliveries that are sent one after the other."""
    talk = linked() >> credit(1000)
    for tag in made:
        sent(talk, tag, settled=settled)
    heard = told(talk)
    assert len(heard) == len(made)
    return [tag for tag, other in zip(made, heard, strict=True) if tag == other]


def counters(width: int, order: Any, count: int = 600) -> list[bytes]:
    return [number.to_bytes(width, order) for number in range(1, count)]


@pytest.mark.parametrize(
    "made",
    [
        counters(4, "big"),
        counters(4, "little"),
        counters(8, "big"),
        counters(8, "little"),
        counters(2, "little"),
        [b"%d" % number for number in range(600)],
        [b"tag-%03d" % number for number in range(600)],
        [number.to_bytes((number.bit_length() + 7) // 8 or 1, "big") for number in range(600)],
        [bytes([number % 251]) * 16 + b"%d" % number for number in range(600)],
        [b"\xff" * 8],
        [b"\xff" * 32],
    ],
)
@pytest.mark.spec("2.6.12-1")
def test_the_tags_of_a_sender_that_counts_are_kept(made: list[bytes]) -> None:
    assert kept(made) == made


@pytest.mark.parametrize("size", [1, 4, 5, 8, 9, 16, 32])
def test_a_tag_that_is_in_use_is_not_kept(size: int) -> None:
    assert kept([b"t" * size] * 3) == [b"t" * size]


@pytest.mark.parametrize("size", [1, 4, 5, 8, 9, 16, 32])
def test_a_tag_may_come_again_once_it_is_settled(size: int) -> None:
    talk = linked() >> credit(10)
    for _ in range(3):
        session_of(talk).close_outgoing(sent(talk, b"t" * size))
    assert told(talk) == [b"t" * size] * 3
    assert not outgoing(talk).long_tags


def test_a_long_tag_may_come_again_while_others_are_unsettled() -> None:
    talk = linked() >> credit(10)
    first = sent(talk, b"a" * 16)
    sent(talk, b"b" * 16)
    session_of(talk).send_state_to_receiver(first, True, Accepted.CODE, b"", 0, 0)
    sent(talk, b"a" * 16)
    sent(talk, b"b" * 16)
    heard = told(talk)
    assert heard[:3] == [b"a" * 16, b"b" * 16, b"a" * 16]
    assert heard[3] not in heard[:3]


@pytest.mark.parametrize("tag", [b"", OWN + b"\0\0\0\7", OWN + b"\xff" * 4])
def test_what_could_be_a_tag_made_here_is_not_kept(tag: bytes) -> None:
    assert kept([tag]) == []


def test_tags_of_settled_deliveries_need_not_be_unique() -> None:
    made = [b"t", b"t", b"t" * 16, b"t" * 16, b"s"]
    assert kept(made, settled=True) == made


def test_a_delivery_without_a_sender_gets_a_tag_of_its_id() -> None:
    talk = linked() >> credit(2)
    for _ in range(2):
        session_of(talk).send(sent(talk, b""), memoryview(b""), 0, 0, False)
    heard = [tag for tag in told(talk) if tag is not None]
    assert heard == [OWN + b"\0\0\0\0", OWN + b"\0\0\0\1"]


def test_the_octets_of_each_kind_of_tag() -> None:
    talk = linked() >> credit(10)
    for tag in (b"t", b"t" * 8, b"t" * 16):
        assert tags.octets_of(sent(talk, tag)) == tag
    again = sent(talk, b"t")
    assert tags.octets_of(again) == OWN + again.outgoing_id.to_bytes(4, "big")


STEPS = st.lists(
    st.tuples(
        st.binary(max_size=2) | st.sampled_from([b"a" * 9, b"b" * 9, OWN + b"\0\0\0\1"]),
        st.booleans(),
        st.integers(0, 5),
    ),
    max_size=40,
)


@given(STEPS)
@pytest.mark.spec("2.6.12-1")
def test_unsettled_tags_are_unique_whatever_senders_choose(
    steps: list[tuple[bytes, bool, int]],
) -> None:
    talk = linked() >> credit(1000)
    unsettled: dict[bytes, Delivery] = {}
    for tag, settled, settles in steps:
        delivery = sent(talk, tag, settled=settled)
        (heard,) = told(talk)
        assert tags.octets_of(delivery) == heard
        if not settled:
            assert heard not in unsettled
            unsettled[heard] = delivery
        for other in list(unsettled)[:settles]:
            session_of(talk).close_outgoing(unsettled.pop(other))
    assert outgoing(talk).unsettled == len(unsettled)
    assert len(outgoing(talk).long_tags or ()) == sum(len(tag) > 8 for tag in unsettled)
