"""Which octets are a batch of messages, and which messages are in it."""

from __future__ import annotations

import pytest

from router.amqp.batches import messages_in
from router.amqp.message import AmqpValue, Data, Message, Properties, encode_message
from router.errors import AmqpError

from support.waypoints import message

DATA = b"\x00\x53\x75"


def batch(*bodies: bytes) -> bytes:
    return encode_message(
        Message(properties=Properties(message_id="b"), body=tuple(map(Data, bodies)))
    )


def test_each_data_section_is_a_message() -> None:
    one, two = message("one"), message("x" * 300)
    assert list(messages_in(batch(one, two))) == [one, two]


def test_what_comes_before_and_after_is_no_part_of_the_messages() -> None:
    octets = encode_message(
        Message(
            message_annotations={},
            application_properties={"k": "v"},
            body=(Data(b"a"), Data(b"")),
            footer={},
        )
    )
    assert list(messages_in(octets)) == [b"a", b""]


@pytest.mark.parametrize(
    ("octets", "problem"),
    [
        (b"", "no data section"),
        (encode_message(Message(body=(AmqpValue("x"),))), "no data"),
        (batch(b"a") + batch(b"b"), "out of order"),
        (batch(b"a") + b"\x00\x53\x77\x40", "out of order"),
        (b"\x00\x53\x78\xc1\x01\x00" + batch(b"a"), "out of order"),
        (DATA + b"\x40", "null"),
        (DATA + b"\xa1\x01a", "where a binary is expected"),
        (DATA + b"\xa0\x05a", "past the end"),
        (b"nonsense", "out of order"),
    ],
)
def test_anything_else_is_an_error(octets: bytes, problem: str) -> None:
    with pytest.raises(AmqpError, match=problem) as caught:
        list(messages_in(octets))
    assert caught.value.condition == "amqp:decode-error"
