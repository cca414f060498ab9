"""The stamp of when a message was sent: written over an encoded message, and found again."""

from __future__ import annotations

import attrs
import pytest

from router.amqp.message import AmqpValue, Data, Message, decode_message, encode_message
from router.amqp.performatives import Header, Properties
from router.amqp.types import Symbol, ULong
from router.client.stamp import SENT_NS, StampedMessage, find_sent_ns

NOW_NS = 1_790_000_000_123_456_789

BARE = Message(body=(AmqpValue("hello"),))
FULL = Message(
    header=Header(durable=True, ttl=5),
    delivery_annotations={Symbol("x-opt-d"): 1},
    message_annotations={Symbol("x-opt-a"): "a"},
    properties=Properties(to="q"),
    application_properties={"k": "v"},
    body=(Data(b"x" * 300),),
    footer={Symbol("x-opt-f"): 2},
)


@pytest.mark.parametrize("message", [BARE, FULL])
def test_a_stamp_is_one_annotation_more(message: Message) -> None:
    stamped = StampedMessage(message)
    octets = bytes(stamped.at(NOW_NS))
    annotations = {**(message.message_annotations or {}), SENT_NS: ULong(NOW_NS)}
    read = decode_message(octets)
    assert read.message_annotations == annotations
    assert attrs.evolve(read, message_annotations=message.message_annotations) == message
    assert find_sent_ns(octets) == NOW_NS


def test_each_stamp_replaces_the_one_before() -> None:
    stamped = StampedMessage(BARE)
    assert find_sent_ns(bytes(stamped.at(1))) == 1
    assert find_sent_ns(bytes(stamped.at(NOW_NS))) == NOW_NS
    assert find_sent_ns(bytes(stamped.at(0))) == 0


@pytest.mark.parametrize(
    "message",
    [
        BARE,
        FULL,
        # where the name stands outside of the annotations, or has another value
        Message(application_properties={str(SENT_NS): NOW_NS}, body=(AmqpValue(None),)),
        Message(body=(Data(bytes(StampedMessage(BARE).at(NOW_NS))),)),
        Message(message_annotations={SENT_NS: "yesterday"}, body=(AmqpValue(None),)),
        Message(message_annotations={SENT_NS: ULong(7)}, body=(AmqpValue(None),)),
    ],
)
def test_a_message_without_a_stamp_has_none(message: Message) -> None:
    assert find_sent_ns(encode_message(message)) is None


def test_octets_that_are_no_message_have_none() -> None:
    octets = bytes(StampedMessage(FULL).at(NOW_NS))
    for end in range(octets.index(SENT_NS.encode()) + len(SENT_NS)):
        assert find_sent_ns(octets[:end]) is None
    for octets in (b"", b"\x00", b"hello", b"\xff" * 40):
        assert find_sent_ns(octets) is None
