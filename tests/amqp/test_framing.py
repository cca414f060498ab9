"""Protocol headers and frames, whole and in pieces."""

from __future__ import annotations

from typing import Any

import pytest

from router.amqp.constants import SASL_FRAME
from router.amqp.encode import encode_value
from router.amqp.framing import (
    AMQP_HEADER,
    AMQP_PROTOCOL,
    SASL_HEADER,
    SASL_PROTOCOL,
    TLS_HEADER,
    TLS_PROTOCOL,
    FrameHeader,
    ProtocolHeader,
    decode_frame_body,
    decode_frame_header,
    encode_frame,
    parse_protocol_header,
)
from router.amqp.performatives import Accepted, Close, Composite, End, Open, SaslInit, Transfer
from router.amqp.types import Described, ULong
from router.errors import AmqpError

from support.wire import cut_short


@pytest.mark.parametrize(
    ("octets", "header"),
    [
        (AMQP_HEADER, AMQP_PROTOCOL),
        (TLS_HEADER, TLS_PROTOCOL),
        (SASL_HEADER, SASL_PROTOCOL),
        (b"AMQP\x00\x00\x09\x01", ProtocolHeader(0, 0, 9, 1)),
        (b"AMQP\xff\xff\xff\xffmore", ProtocolHeader(255, 255, 255, 255)),
    ],
)
def test_protocol_headers_are_read(octets: bytes, header: ProtocolHeader) -> None:
    assert parse_protocol_header(octets) == header
    assert parse_protocol_header(b"x" + octets, 1) == header


def test_protocol_headers_are_as_the_specification_has_them() -> None:
    assert AMQP_HEADER == b"AMQP\x00\x01\x00\x00"
    assert TLS_HEADER == b"AMQP\x02\x01\x00\x00"
    assert SASL_HEADER == b"AMQP\x03\x01\x00\x00"


@pytest.mark.parametrize("octets", [*cut_short(AMQP_HEADER), b"AMQQ\x00\x01\x00\x00", b"GET / HT"])
def test_what_is_no_protocol_header_is_refused(octets: bytes) -> None:
    with pytest.raises(AmqpError) as caught:
        parse_protocol_header(octets)
    assert caught.value.condition == "amqp:connection:framing-error"


@pytest.mark.parametrize(
    ("frame", "text"),
    [
        (encode_frame(0), "00000008 02 00 0000"),
        (encode_frame(65535, End()), "0000000e 02 00 ffff 005317c0020140"),
        (
            encode_frame(1, Transfer(0), b"pay"),
            "0000001c 02 00 0001 005314c00c0b4340404040424040424242 706179",
        ),
        (
            encode_frame(0, SaslInit("A"), frame_type=SASL_FRAME),
            "00000013 02 01 0000 005341c00603a301414040",
        ),
    ],
)
@pytest.mark.spec("2.3.1-1", "2.3.1-4", "5.3.1-1", "5.3.1-2")
def test_frames_are_written(frame: bytes, text: str) -> None:
    expected = bytearray.fromhex(text)
    expected[:4] = len(expected).to_bytes(4, "big")
    assert frame.hex() == expected.hex()


@pytest.mark.parametrize("performative", [None, End(), Open("c"), Transfer(1), SaslInit("PLAIN")])
@pytest.mark.parametrize("before", [b"", b"before"])
def test_frames_are_read(performative: Composite | None, before: bytes) -> None:
    payload = b"payload" if isinstance(performative, Transfer) else b""
    frame = before + encode_frame(7, performative, payload)
    header = decode_frame_header(frame, len(before))
    assert header == FrameHeader(len(frame) - len(before), 8, 0, 7)
    found, payload_at = decode_frame_body(frame, len(before) + header.body_offset)
    assert found == performative
    assert frame[payload_at:] == payload


@pytest.mark.parametrize("performative", [End(), Open("c"), Transfer(1), SaslInit("PLAIN")])
def test_a_frame_cut_short_is_refused(performative: Composite) -> None:
    frame = encode_frame(7, performative)
    for part in cut_short(frame):
        if len(part) < 8:
            with pytest.raises(AmqpError):
                decode_frame_header(part)
        elif len(part) > 8:
            with pytest.raises(AmqpError):
                decode_frame_body(part, 8)
            with pytest.raises(AmqpError):
                decode_frame_body(frame, 8, len(part))


@pytest.mark.spec("2.3-1")
def test_an_extended_header_is_stepped_over() -> None:
    frame = bytes.fromhex("00000012 03 00 0000 aabbccdd 005317c0020140")
    header = decode_frame_header(frame)
    assert header.body_offset == 12
    assert decode_frame_body(frame, header.body_offset)[0] == End()


@pytest.mark.parametrize(
    "text",
    [
        "00000007 02 00 0000",
        "00000000 02 00 0000",
        "00000008 01 00 0000",
        "00000008 00 00 0000",
        "00000008 03 00 0000",
        "00000010 ff 00 0000",
        "00000008 02 02 0000",
    ],
)
def test_what_is_no_frame_header_is_refused(text: str) -> None:
    with pytest.raises(AmqpError) as caught:
        decode_frame_header(bytes.fromhex(text))
    assert caught.value.condition == "amqp:connection:framing-error"


def test_a_frame_header_beyond_the_octets_is_refused() -> None:
    for at in (-1, 1, 100):
        with pytest.raises(AmqpError):
            decode_frame_header(bytes(8), at)


@pytest.mark.parametrize(
    ("body", "condition"),
    [
        (encode_value(Accepted()), "amqp:decode-error"),
        (encode_value("open"), "amqp:decode-error"),
        (encode_value(Described(ULong(0x19), [])), "amqp:not-implemented"),
    ],
)
def test_a_body_that_is_no_performative_is_refused(body: Any, condition: str) -> None:
    with pytest.raises(AmqpError) as caught:
        decode_frame_body(body)
    assert caught.value.condition == condition


@pytest.mark.parametrize("channel", [-1, 65536])
def test_a_channel_has_16_bits(channel: int) -> None:
    with pytest.raises(ValueError, match="not a channel number"):
        encode_frame(channel, Close())
