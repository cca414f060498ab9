"""Values become the shortest octets, always the same ones."""

from __future__ import annotations

from typing import Any

import pytest

from router.amqp.constants import DistributionMode, SenderSettleMode
from router.amqp.encode import encode_value, encode_value_into, write_map
from router.amqp.types import Array, Long, Symbol, UByte, UInt

from support.vectors import SHORTEST, octets


@pytest.mark.parametrize(("text", "value"), SHORTEST)
@pytest.mark.spec("0.2-3", "1.2-1")
def test_the_shortest_encoding_is_written(text: str, value: Any) -> None:
    assert encode_value(value).hex() == octets(text).hex()


def test_octets_are_appended() -> None:
    buffer = bytearray(b"before")
    encode_value_into(buffer, True)
    assert buffer == b"before\x41"


@pytest.mark.parametrize(
    ("value", "alike"),
    [
        (1, Long(1)),
        (-129, Long(-129)),
        (bytearray(b"a"), b"a"),
        (memoryview(b"abcd").cast("H"), b"abcd"),
        ((True, None), [True, None]),
        (SenderSettleMode.SETTLED, Long(1)),
        (DistributionMode.MOVE, "move"),
        (Array([1, 2], UInt), Array([UInt(1), UInt(2)])),
    ],
)
def test_related_python_types_are_written_as_their_next_of_kin(value: Any, alike: Any) -> None:
    assert encode_value(value) == encode_value(alike)


@pytest.mark.parametrize("count", [254, 255, 256])
def test_a_list_is_short_while_count_and_size_are(count: int) -> None:
    text = encode_value([None] * count)
    assert text[0] == (0xC0 if count == 254 else 0xD0)


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (object(), TypeError),
        ({1, 2}, TypeError),
        (2**63, ValueError),
        (-(2**63) - 1, ValueError),
        ("\ud800", ValueError),
        (Array([1, "a"], UInt), TypeError),
        (Array([True], UInt), TypeError),
        (Array([UInt(1)], UByte), TypeError),
        (Array([-1], UInt), ValueError),
        (Array([256], UByte), ValueError),
        (Array(["a"], Symbol), TypeError),
        (Array([1], object), TypeError),
    ],
)
def test_what_has_no_encoding_is_refused(value: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        encode_value(value)


@pytest.mark.parametrize("count", [0, 1, 100, 1000])
def test_a_map_of_encoded_entries_is_that_of_its_values(count: int) -> None:
    value = {n: str(n) for n in range(count)}
    body = b"".join(encode_value(part) for pair in value.items() for part in pair)
    buffer = bytearray()
    write_map(buffer, 2 * count, body)
    assert buffer == encode_value(value)
