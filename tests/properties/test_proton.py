"""Qpid Proton reads what is written here, and what Proton writes is read here."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from hypothesis import given, strategies as st

from router.amqp.composite import Composite, decode_composite, encode_composite
from router.amqp.decode import decode_value
from router.amqp.encode import encode_value
from router.amqp.message import (
    AmqpSequence,
    AmqpValue,
    Data,
    Header,
    Message,
    Properties,
    decode_message,
    encode_message,
)
from router.amqp.types import (
    Array,
    Byte,
    Char,
    Decimal32,
    Decimal64,
    Decimal128,
    Described,
    Float,
    Int,
    Long,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
)

from support.vectors import LONGER, SHORTEST, octets
from support.wire import COMPOSITES, VALUES, composites, same

proton = pytest.importorskip("proton")


def through_proton(written: bytes) -> bytes:
    """Return what Proton writes after it has read all of `written`."""
    data = proton.Data()
    assert data.decode(written) == len(written)
    result: bytes = data.encode()
    return result


def _proton_is_able(value: Any) -> bool:
    """Say no to what Proton 0.40 cannot hold: a value or an array with more than one descriptor."""
    match value:
        case Array(items, _, descriptors):
            return len(descriptors) < 2 and all(map(_proton_is_able, items))
        case list():
            return all(map(_proton_is_able, value))
        case dict():
            return all(map(_proton_is_able, value.values()))
        case Described(descriptor, inner):
            nested = isinstance(descriptor, Described) or isinstance(inner, Described)
            return not nested and _proton_is_able(inner)
        case _:
            return not hasattr(value, "pairs") or all(
                _proton_is_able(part) for pair in value.pairs for part in pair
            )


@pytest.mark.parametrize(("text", "value"), SHORTEST + LONGER)
def test_vectors(text: str, value: Any) -> None:
    if _proton_is_able(value):
        assert same(decode_value(through_proton(octets(text)))[0], value)


@given(VALUES.filter(_proton_is_able))
def test_values_there_and_back(value: Any) -> None:
    found, _ = decode_value(through_proton(encode_value(value)))
    assert same(found, value)


@pytest.mark.parametrize("cls", COMPOSITES, ids=lambda cls: cls.__name__)
def test_composites_there_and_back(cls: type[Composite]) -> None:
    @given(composites(cls))
    def check(value: Composite) -> None:
        written = encode_composite(value)
        if _proton_is_able(decode_value(written)[0]):
            assert decode_composite(through_proton(written))[0] == value

    check()


MADE_BY_PROTON: list[tuple[str, Any, Any]] = [
    ("put_bool", True, True),
    ("put_ubyte", 255, UByte(255)),
    ("put_byte", -128, Byte(-128)),
    ("put_ushort", 65535, UShort(65535)),
    ("put_short", -32768, Short(-32768)),
    ("put_uint", 0, UInt(0)),
    ("put_uint", 2**32 - 1, UInt(2**32 - 1)),
    ("put_int", -(2**31), Int(-(2**31))),
    ("put_char", "é", Char("é")),
    ("put_ulong", 2**64 - 1, ULong(2**64 - 1)),
    ("put_long", -(2**63), Long(-(2**63))),
    ("put_timestamp", 1311704463521, Timestamp(1311704463521)),
    ("put_float", 1.5, Float(1.5)),
    ("put_double", 0.1, 0.1),
    ("put_decimal32", 0x32800001, Decimal32(bytes.fromhex("32800001"))),
    ("put_decimal64", 0x31C0000000000001, Decimal64(bytes.fromhex("31c0000000000001"))),
    ("put_decimal128", bytes(range(16)), Decimal128(bytes(range(16)))),
    ("put_uuid", uuid.UUID(int=5), uuid.UUID(int=5)),
    ("put_binary", b"\x00" * 300, b"\x00" * 300),
    ("put_string", "é", "é"),
    ("put_symbol", "a", Symbol("a")),
    ("put_object", [1, {"a": None}], [Long(1), {"a": None}]),
    (
        "put_object",
        proton.Described(proton.symbol("d"), proton.ulong(1)),
        Described(Symbol("d"), ULong(1)),
    ),
    (
        "put_object",
        proton.Array(proton.UNDESCRIBED, proton.Data.INT, proton.int32(1), proton.int32(2)),
        Array([Int(1), Int(2)]),
    ),
    (
        "put_object",
        proton.Array(proton.symbol("d"), proton.Data.STRING, "a", "b"),
        Array(["a", "b"], str, [Symbol("d")]),
    ),
]


@pytest.mark.parametrize(("put", "given_value", "value"), MADE_BY_PROTON)
def test_what_proton_makes_is_read(put: str, given_value: Any, value: Any) -> None:
    data = proton.Data()
    getattr(data, put)(given_value)
    assert same(decode_value(data.encode())[0], value)


BODIES = st.one_of(
    st.tuples(st.builds(Data, st.binary())),
    st.tuples(st.builds(AmqpValue, st.text() | st.lists(st.integers(0, 5).map(Long), max_size=3))),
    st.tuples(st.builds(AmqpSequence, st.lists(st.booleans(), max_size=3))),
)


def test_a_message_of_proton_is_read() -> None:
    theirs = proton.Message(
        id=uuid.UUID(int=1),
        durable=True,
        priority=7,
        ttl=1.5,
        address="a",
        subject="s",
        reply_to="r",
        correlation_id=proton.ulong(5),
        content_type=proton.symbol("text/plain"),
        user_id=b"u",
        annotations={"x-opt-a": 1},
        instructions={"i": "j"},
        properties={"k": "v"},
        body={"b": [True]},
    )
    found = decode_message(theirs.encode())
    assert found.header == Header(True, 7, 1500)
    assert found.delivery_annotations == {"i": "j"}
    assert found.message_annotations == {"x-opt-a": 1}
    assert found.application_properties == {"k": "v"}
    assert found.body == (AmqpValue({"b": [True]}),)
    assert found.properties is not None
    assert found.properties.message_id == uuid.UUID(int=1)
    assert same(found.properties.correlation_id, ULong(5))
    assert found.properties.to == "a"


@given(BODIES)
def test_a_body_is_read_by_proton(body: Any) -> None:
    theirs = proton.Message()
    theirs.decode(
        encode_message(Message(Header(ttl=2000), properties=Properties(to="a"), body=body))
    )
    assert (theirs.ttl, theirs.address) == (2.0, "a")
    inner = body[0]
    expected = getattr(inner, "octets", getattr(inner, "items", getattr(inner, "value", None)))
    assert theirs.body == expected
