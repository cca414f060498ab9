"""Header and properties octet for octet."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from router.amqp.composite import Composite, decode_composite, encode_composite
from router.amqp.encode import encode_value
from router.amqp.sections import SECTION_NAMES, Header, Properties
from router.amqp.types import Described, Symbol, UInt, ULong
from router.errors import AmqpError

VECTORS: list[tuple[Composite, str]] = [
    (Header(), "005370 c007 05 42 5004 40 42 43"),
    (Header(True, 9, 1000, True, 1), "005370 c00c 05 41 5009 70000003e8 41 5201"),
    (Properties(), "005373 c00e 0d" + "40" * 13),
    (
        Properties(ULong(5), b"u", "t", "s", "r", "c", "ct", "ce", 1, 1, "g", 3, "h"),
        "005373 c034 0d 5305 a00175 a10174 a10173 a10172 a10163 a3026374 a3026365"
        + 2 * " 830000000000000001"
        + "a10167 5203 a10168",
    ),
]


@pytest.mark.parametrize(("value", "text"), VECTORS)
def test_they_are_written_and_read(value: Composite, text: str) -> None:
    octets = encode_composite(value)
    assert octets.hex() == bytes.fromhex(text).hex()
    assert decode_composite(octets) == (value, len(octets))


@pytest.mark.parametrize("message_id", [ULong(1), uuid.UUID(int=1), b"id", "id"])
def test_a_message_id_is_one_of_four_types(message_id: Any) -> None:
    properties = Properties(message_id, correlation_id=message_id)
    found, _ = decode_composite(encode_composite(properties))
    assert isinstance(found, Properties)
    assert found == properties
    assert type(found.message_id) is type(message_id)


@pytest.mark.parametrize("message_id", [UInt(1), Symbol("id"), [], True])
def test_a_message_id_of_another_type_is_refused(message_id: Any) -> None:
    with pytest.raises(AmqpError, match=r"properties\.message-id"):
        decode_composite(encode_value(Described(ULong(0x73), [message_id])))


def test_the_sections_are_nine() -> None:
    assert sorted(SECTION_NAMES.values()) == list(range(0x70, 0x79))
