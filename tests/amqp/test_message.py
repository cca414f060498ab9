"""Messages: their sections, the order of these, and where the bare message lies."""

from __future__ import annotations

import struct

import pytest

from router.amqp.constants import Descriptor
from router.amqp.encode import encode_value
from router.amqp.message import (
    AmqpSequence,
    AmqpValue,
    BodySection,
    Data,
    Message,
    bare_message,
    decode_message,
    encode_message,
    section_spans,
)
from router.amqp.performatives import Error, Header, Properties
from router.amqp.reader import Limits
from router.amqp.types import Described, Symbol, ULong
from router.errors import AmqpError

from support.wire import cut_short

HEADER = bytes.fromhex("005370 c007 05 42 5004 40 42 43")
DELIVERY_ANNOTATIONS = bytes.fromhex("005371 c10602 a30161 5501")
MESSAGE_ANNOTATIONS = bytes.fromhex("005372 c10602 a30162 5502")
PROPERTIES = bytes.fromhex("005373 c003 02 40 40")
APPLICATION_PROPERTIES = bytes.fromhex("005374 c10602 a10163 5503")
DATA = bytes.fromhex("005375 a0024142")
SEQUENCE = bytes.fromhex("005376 c002 01 40")
VALUE = bytes.fromhex("005377 a10176")
FOOTER = bytes.fromhex("005378 c10602 a30164 5504")

FULL = [
    HEADER,
    DELIVERY_ANNOTATIONS,
    MESSAGE_ANNOTATIONS,
    PROPERTIES,
    APPLICATION_PROPERTIES,
    DATA,
    FOOTER,
]


def test_all_sections_are_read() -> None:
    assert decode_message(b"".join(FULL)) == Message(
        Header(), {"a": 1}, {"b": 2}, Properties(), {"c": 3}, (Data(b"AB"),), {"d": 4}
    )


@pytest.mark.parametrize(
    ("octets", "body"),
    [
        (b"", ()),
        (DATA, (Data(b"AB"),)),
        (DATA + DATA, (Data(b"AB"), Data(b"AB"))),
        (SEQUENCE + SEQUENCE, (AmqpSequence([None]), AmqpSequence([None]))),
        (VALUE, (AmqpValue("v"),)),
    ],
)
def test_every_kind_of_body_is_read_and_written(
    octets: bytes, body: tuple[BodySection, ...]
) -> None:
    assert decode_message(octets) == Message(body=body)
    assert encode_message(Message(body=body)) == octets


def test_a_body_of_null_is_a_body() -> None:
    message = Message(body=(AmqpValue(None),))
    assert encode_message(message).hex() == "00537740"
    assert decode_message(encode_message(message)) == message


def test_symbolic_descriptors_are_read() -> None:
    octets = encode_value(Described(Symbol("amqp:header:list"), [True])) + encode_value(
        Described(Symbol("amqp:data:binary"), b"x")
    )
    assert decode_message(octets) == Message(Header(durable=True), body=(Data(b"x"),))


def test_a_rejection_in_the_annotations_is_written() -> None:
    octets = encode_message(Message(delivery_annotations={"rejected": Error("a:b")}))
    read = decode_message(octets).delivery_annotations
    assert read == {"rejected": Described(ULong(0x1D), ["a:b", None, None])}


@pytest.mark.parametrize("missing", range(len(FULL)))
def test_each_section_may_be_missing(missing: int) -> None:
    octets = b"".join(FULL[:missing] + FULL[missing + 1 :])
    spans = section_spans(octets)
    assert len(spans) == 6
    assert encode_message(decode_message(octets)) == octets.replace(
        PROPERTIES, bytes.fromhex("005373 c00e 0d" + "40" * 13)
    )


def test_spans_say_where_the_sections_are() -> None:
    octets = b"".join([b"before", *FULL, b"after"])
    at = len(b"before")
    spans = section_spans(octets, at, len(octets) - len(b"after"))
    assert [span.descriptor for span in spans] == [*range(0x70, 0x76), Descriptor.FOOTER]
    assert [octets[span.begin : span.end] for span in spans] == FULL
    assert all(span.value_at == span.begin + 3 for span in spans)


@pytest.mark.parametrize(
    ("sections", "bare"),
    [
        (FULL, FULL[3:6]),
        ([HEADER, DATA, DATA, FOOTER], [DATA, DATA]),
        ([PROPERTIES, VALUE], [PROPERTIES, VALUE]),
        ([MESSAGE_ANNOTATIONS, SEQUENCE], [SEQUENCE]),
        ([HEADER, FOOTER], []),
        ([], []),
    ],
)
def test_the_bare_message_is_properties_to_body(sections: list[bytes], bare: list[bytes]) -> None:
    octets = b"xy" + b"".join(sections)
    begin, end = bare_message(octets, 2)
    assert octets[begin:end] == b"".join(bare)


def test_what_is_inside_of_a_section_is_not_looked_at() -> None:
    # The list says that it holds 255 items, and does not.
    assert section_spans(bytes.fromhex("005376 c002ff40"))[0].end == 7


@pytest.mark.parametrize(
    "sections",
    [
        [HEADER, HEADER],
        [MESSAGE_ANNOTATIONS, DELIVERY_ANNOTATIONS],
        [PROPERTIES, HEADER],
        [DATA, PROPERTIES],
        [DATA, SEQUENCE],
        [DATA, VALUE],
        [SEQUENCE, DATA],
        [VALUE, VALUE],
        [FOOTER, DATA],
        [FOOTER, FOOTER],
    ],
)
@pytest.mark.spec("3.2-3")
def test_sections_have_an_order_and_are_single(sections: list[bytes]) -> None:
    with pytest.raises(AmqpError, match="section") as caught:
        section_spans(b"".join(sections))
    assert caught.value.condition == "amqp:decode-error"


@pytest.mark.parametrize(
    "octets",
    [
        b"\x40",
        encode_value(Described(ULong(0x79), [])),
        encode_value(Described(Symbol("amqp:open:list"), [])),
        encode_value(Described(ULong(0x70), {})),
        encode_value(Described(ULong(0x71), [])),
        encode_value(Described(ULong(0x71), {1.5: 1})),
        encode_value(Described(ULong(0x73), [5.0])),
        encode_value(Described(ULong(0x74), {Symbol("a"): 1})),
        encode_value(Described(ULong(0x74), {"a": [1]})),
        encode_value(Described(ULong(0x75), "text")),
        encode_value(Described(ULong(0x76), {})),
        encode_value(Described(ULong(0x70), [None] * 6)),
    ],
)
@pytest.mark.spec("3.2.5-1", "3.2.10-1")
def test_what_is_no_message_is_refused(octets: bytes) -> None:
    with pytest.raises(AmqpError):
        decode_message(octets)


def test_a_message_cut_short_is_refused_or_ends_with_a_section() -> None:
    octets = b"".join(FULL)
    ends = {0, *(span.end for span in section_spans(octets))}
    for part in cut_short(octets):
        if len(part) in ends:
            decode_message(part)
        else:
            with pytest.raises(AmqpError):
                decode_message(part)
            with pytest.raises(AmqpError):
                section_spans(part)


def test_all_sections_share_one_limit() -> None:
    # Each section claims a tenth of what one value may be, in twenty octets.
    nulls = b"\xf0" + struct.pack(">II", 5, 26_000) + b"\x40"
    section = b"\x00\x53\x76\xc0" + bytes((len(nulls) + 1, 1)) + nulls
    assert len(decode_message(section * 9).body) == 9
    with pytest.raises(AmqpError, match="too many values"):
        decode_message(section * 1000)
    with pytest.raises(AmqpError, match="too many sections"):
        section_spans(DATA * 10, limits=Limits(max_items=9))


@pytest.mark.parametrize(
    "body",
    [
        (AmqpValue(1), AmqpValue(2)),
        (Data(b""), AmqpValue(1)),
        (Data(b""), AmqpSequence([])),
    ],
)
@pytest.mark.spec("3.2-3")
def test_bodies_that_cannot_be_are_not_written(body: tuple[BodySection, ...]) -> None:
    with pytest.raises(ValueError, match="body"):
        encode_message(Message(body=body))
