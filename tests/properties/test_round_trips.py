"""Whatever can be said is read again as it was: values, composites, frames, messages."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from router.amqp.composite import Composite, decode_composite, encode_composite
from router.amqp.decode import decode_value, skip_value
from router.amqp.encode import encode_value
from router.amqp.framing import decode_frame_body, decode_frame_header, encode_frame
from router.amqp.message import (
    Message,
    bare_message,
    decode_message,
    encode_message,
    section_spans,
)

from support.wire import COMPOSITES, VALUES, composites, messages, providing, same


@given(VALUES, st.binary(max_size=3), st.binary(max_size=3))
def test_values(value: Any, before: bytes, after: bytes) -> None:
    octets = before + encode_value(value) + after
    found, end = decode_value(octets, len(before))
    assert same(found, value)
    assert end == len(octets) - len(after)
    assert skip_value(octets, len(before)) == end
    assert encode_value(found) == encode_value(value)


@pytest.mark.parametrize("cls", COMPOSITES, ids=lambda cls: cls.__name__)
def test_composites_with_every_field(cls: type[Composite]) -> None:
    @given(composites(cls))
    def check(value: Composite) -> None:
        octets = encode_composite(value)
        found, end = decode_composite(octets)
        assert found == value
        assert end == len(octets)
        assert encode_composite(found) == octets

    check()


@given(st.integers(0, 65535), st.none() | providing("frame") | providing("sasl-frame"), st.binary())
def test_frames(channel: int, performative: Composite | None, payload: bytes) -> None:
    payload = b"" if performative is None else payload
    frame = encode_frame(channel, performative, payload)
    header = decode_frame_header(frame)
    assert (header.size, header.channel) == (len(frame), channel)
    found, payload_at = decode_frame_body(frame, header.body_offset)
    assert found == performative
    assert frame[payload_at:] == payload


@given(messages())
def test_messages(message: Message) -> None:
    octets = encode_message(message)
    found = decode_message(octets)
    assert found == message
    assert encode_message(found) == octets
    begin, end = bare_message(octets)
    bare = Message(
        properties=message.properties,
        application_properties=message.application_properties,
        body=message.body,
    )
    assert octets[begin:end] == encode_message(bare)
    assert len(section_spans(octets)) == sum(
        section is not None
        for section in (
            message.header,
            message.delivery_annotations,
            message.message_annotations,
            message.properties,
            message.application_properties,
            *message.body,
            message.footer,
        )
    )
