"""Composites are read, checked and written by their tables."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from router.amqp import field_types as t
from router.amqp.composite import (
    BY_DESCRIPTOR,
    Composite,
    Field,
    composite,
    decode_composite,
    encode_composite,
    encode_composite_into,
)
from router.amqp.constants import Descriptor
from router.amqp.encode import encode_value
from router.amqp.performatives import (
    Accepted,
    Attach,
    Close,
    Detach,
    End,
    Error,
    Open,
    Rejected,
    SaslMechanisms,
    Source,
)
from router.amqp.types import Array, Described, Symbol, UInt, ULong, UShort
from router.errors import AmqpError

from support.wire import COMPOSITES


def listed(descriptor: Any, *items: Any) -> bytes:
    """Return the octets of a described list."""
    return encode_value(Described(descriptor, list(items)))


@pytest.mark.parametrize("cls", COMPOSITES, ids=lambda cls: cls.__name__)
def test_every_field_is_written_and_none_is_list0(cls: type[Composite]) -> None:
    examples = {
        "string": "s", "symbol": "s", "binary": b"b", "transaction-id": b"t",
        "boolean": True, "uint": 0, "ulong": 0, "ubyte": 0, "ushort": 0,
    }  # fmt: skip
    value = cls(
        **{
            field.name: (examples[field.type.name],)
            if field.multiple
            else examples[field.type.name]
            for field in cls.FIELDS
            if field.mandatory
        }
    )
    octets = encode_composite(value)
    assert octets[:4] == bytes((0x00, 0x53, cls.CODE, 0xC0))
    assert octets[4] == len(octets) - 5
    assert octets[5] == len(cls.FIELDS)


def test_an_outcome_without_fields_is_an_empty_list8() -> None:
    assert encode_composite(Accepted()).hex() == "005324c00100"


def test_a_long_composite_is_a_list32() -> None:
    octets = encode_composite(Open("c" * 300))
    assert octets[3] == 0xD0
    assert decode_composite(octets) == (Open("c" * 300), len(octets))


@pytest.mark.parametrize(
    "octets",
    [
        listed(ULong(0x18)),
        listed(ULong(0x18), None),
        listed(Symbol("amqp:close:list"), None),
        bytes.fromhex("00 80 0000000000000018 45"),
        bytes.fromhex("00 53 18 d0 00000005 00000001 40"),
        bytes.fromhex("00 b3 0000000f") + b"amqp:close:list" + b"\x45",
    ],
)
@pytest.mark.spec("1.4-1", "2.3.2-2")
def test_either_descriptor_in_any_encoding_and_fewer_fields_are_read(octets: bytes) -> None:
    assert decode_composite(octets) == (Close(), len(octets))


def test_nulls_are_read_as_defaults() -> None:
    found, _ = decode_composite(listed(ULong(0x10), "c", None, None, None))
    assert found == Open("c", None, 4294967295, 65535)
    found, _ = decode_composite(listed(ULong(0x12), "l", UInt(0), True))
    assert found == Attach("l", 0, True)
    assert (found.snd_settle_mode, found.rcv_settle_mode) == (2, 0)


def test_a_composite_in_a_composite_is_read() -> None:
    octets = listed(ULong(0x25), Described(Symbol("amqp:error:list"), [Symbol("a:b")]))
    assert decode_composite(octets)[0] == Rejected(Error("a:b"))


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (None, ()),
        (Array([], Symbol), ()),
        (Symbol("a"), ("a",)),
        (Array([Symbol("a"), Symbol("b")]), ("a", "b")),
    ],
)
@pytest.mark.spec("1.4-2")
def test_multiple_values_are_an_array_or_one(value: Any, found: tuple[str, ...]) -> None:
    octets = listed(ULong(0x10), "c", *[None] * 6, value)
    assert decode_composite(octets)[0] == Open("c", offered_capabilities=found)


def test_multiple_values_are_written_as_an_array() -> None:
    assert encode_composite(SaslMechanisms(("PLAIN",))) == listed(
        ULong(0x40), Array([Symbol("PLAIN")])
    )


@pytest.mark.parametrize(
    ("octets", "condition", "message"),
    [
        (b"", "amqp:decode-error", "end"),
        (b"\x41", "amqp:decode-error", "bool"),
        (listed(ULong(0x19)), "amqp:not-implemented", "unknown descriptor"),
        (listed(UInt(0x18)), "amqp:not-implemented", "unknown descriptor"),
        (listed(Symbol("a:b")), "amqp:not-implemented", "unknown descriptor"),
        (listed([1]), "amqp:not-implemented", "unknown descriptor"),
        (encode_value(Described(ULong(0x18), {})), "amqp:decode-error", "close:list is a dict"),
        (listed(ULong(0x18), None, None), "amqp:decode-error", "2 fields"),
        (listed(ULong(0x10)), "amqp:invalid-field", "open.container-id is missing"),
        (listed(ULong(0x10), None), "amqp:invalid-field", "open.container-id is missing"),
        (listed(ULong(0x10), Symbol("c")), "amqp:decode-error", "container-id is of type symbol"),
        (listed(ULong(0x10), "c", None, UShort(9)), "amqp:decode-error", "open.max-frame-size"),
        (listed(ULong(0x40)), "amqp:invalid-field", "sasl-server-mechanisms is missing"),
        (listed(ULong(0x40), Array([], Symbol)), "amqp:invalid-field", "mechanisms is missing"),
        (listed(ULong(0x40), Array(["a"])), "amqp:decode-error", "not symbol"),
        (listed(ULong(0x40), [Symbol("a")]), "amqp:decode-error", "not symbol"),
        (
            listed(ULong(0x40), Array([Symbol("a")], Symbol, [ULong(1)])),
            "amqp:decode-error",
            "array of described values",
        ),
        (listed(ULong(0x25), "oops"), "amqp:decode-error", "rejected.error"),
        (listed(ULong(0x25), Described(ULong(0x24), [])), "amqp:decode-error", "archetype error"),
        (
            listed(ULong(0x12), "l", UInt(0), True, None, None, Described(ULong(0x29), [])),
            "amqp:decode-error",
            "attach.source is amqp:target:list",
        ),
        (
            listed(ULong(0x12), "l", UInt(0), True, None, None, Described(ULong(0x99), [])),
            "amqp:not-implemented",
            "attach.source has the unknown descriptor",
        ),
    ],
)  # fmt: skip
@pytest.mark.spec("1.3.4-1", "1.3.4-2", "1.4-3", "1.5-1", "5.3.3.1-1")
def test_what_does_not_suit_the_table_is_refused(
    octets: bytes, condition: str, message: str
) -> None:
    with pytest.raises(AmqpError, match=message) as caught:
        decode_composite(octets)
    assert caught.value.condition == condition


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (Open(None), ValueError, "open.container-id is mandatory"),  # type: ignore[arg-type]
        (Open(5), TypeError, "open.container-id"),  # type: ignore[arg-type]
        (Open("\ud800"), ValueError, "open.container-id"),
        (Open("c", channel_max=65536), ValueError, "open.channel-max"),
        (Open("c", properties=[]), TypeError, "open.properties"),  # type: ignore[arg-type]
        (Open("c", properties={"é": 1}), ValueError, "open.properties"),
        (Open("c", offered_capabilities="abc"), TypeError, "capabilities"),  # type: ignore[arg-type]
        (SaslMechanisms(()), ValueError, "mandatory"),
        (Detach(0, error=Accepted()), TypeError, "detach.error"),  # type: ignore[arg-type]
        (Attach("l", True, True), TypeError, "attach.handle"),
        (Attach("l", 0, 1), TypeError, "attach.role"),  # type: ignore[arg-type]
        (Attach("l", 0, True, 3), ValueError, "attach.snd-settle-mode"),  # type: ignore[arg-type]
        (Source(Error("a")), TypeError, "source.address"),  # type: ignore[arg-type]
    ],
)
@pytest.mark.spec("1.3.4-1", "1.4-3")
def test_attributes_of_the_wrong_type_are_not_written(
    value: Composite, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        encode_composite(value)


def test_a_composite_is_written_wherever_a_value_is() -> None:
    buffer = bytearray()
    encode_composite_into(buffer, End())
    assert encode_value([End()]) == b"\xc0" + bytes((len(buffer) + 1, 1)) + buffer


def test_a_class_that_differs_from_its_table_is_refused() -> None:
    with pytest.raises(TypeError, match="Wrong has attributes"):

        @composite("example:wrong:list", Descriptor.OPEN, "frame", Field("a", t.UINT, default=5))
        @attrs.frozen
        class Wrong(Composite):
            a: int = 6

    assert BY_DESCRIPTOR[0x10] is Open
