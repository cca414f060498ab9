"""Octets become values or an AmqpError, within bounded time and memory."""

from __future__ import annotations

import struct
import time
import tracemalloc
from typing import Any

import pytest

from router.amqp.constants import Condition
from router.amqp.decode import decode_value, decode_values, skip_value
from router.amqp.encode import encode_value
from router.amqp.reader import Limits
from router.amqp.types import Array, Map, Symbol, UInt, ULong
from router.errors import AmqpError, Scope

from support.vectors import BROKEN, LONGER, SHORTEST, octets
from support.wire import cut_short, same


@pytest.mark.parametrize(("text", "value"), SHORTEST + LONGER)
@pytest.mark.spec("0.2-3", "1.2-1", "1.2.3-1", "1.2.4-1")
def test_every_encoding_is_read(text: str, value: Any) -> None:
    data = octets(text)
    found, after = decode_value(data)
    assert same(found, value)
    assert after == len(data)
    assert skip_value(data) == len(data)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
@pytest.mark.parametrize(("text", "value"), SHORTEST)
def test_a_value_is_read_from_the_middle_of_any_buffer(kind: Any, text: str, value: Any) -> None:
    data = octets(text)
    found, after = decode_value(kind(b"\x41" + data + b"\x41"), 1)
    assert same(found, value)
    assert after == 1 + len(data)


@pytest.mark.parametrize(("text", "value"), SHORTEST + LONGER)
def test_a_value_cut_short_is_refused(text: str, value: Any) -> None:
    data = octets(text)
    for part in cut_short(data):
        with pytest.raises(AmqpError):
            decode_value(part)
        with pytest.raises(AmqpError):
            decode_value(data, 0, len(part))
        with pytest.raises(AmqpError):
            skip_value(data, 0, len(part))


@pytest.mark.parametrize(("text", "why"), BROKEN)
@pytest.mark.spec(
    "1.2.3-1", "1.2.4-1", "1.6.2-1", "1.6.16-1", "1.6.20-1", "1.6.21-1", "1.6.23-1", "1.6.23-2"
)
def test_what_is_no_value_is_refused(text: str, why: str) -> None:
    with pytest.raises(AmqpError) as caught:
        decode_value(octets(text))
    assert caught.value.scope is Scope.CONNECTION
    assert caught.value.description
    # so many values as these arrays announce would be more than is kept
    is_too_much = why in ("an array of 4 Gi nulls", "an array of 4 Gi empty lists")
    expected = Condition.RESOURCE_LIMIT_EXCEEDED if is_too_much else Condition.DECODE_ERROR
    assert caught.value.condition == expected


@pytest.mark.parametrize(("at", "end"), [(-1, None), (0, 2), (2, None), (1, 0)])
def test_a_place_outside_of_the_octets_is_refused(at: int, end: int | None) -> None:
    with pytest.raises(AmqpError):
        decode_value(b"\x41", at, end)


def test_values_one_after_the_other_share_their_limits() -> None:
    assert decode_values(b"\x41\x42\x40") == [True, False, None]
    with pytest.raises(AmqpError, match="too many values"):
        decode_values(b"\x41\x42\x40", limits=Limits(max_items=2))


def test_a_nan_keeps_its_octets() -> None:
    for data in (octets("72 7fc00001"), octets("82 7ff8000000000001")):
        assert encode_value(decode_value(data)[0]) == data


def test_keys_that_python_takes_for_equal_stay_apart() -> None:
    for keys in ((UInt(1), ULong(1)), (True, UInt(1)), (Symbol("a"), "a"), (0.0, -0.0)):
        value = Map(tuple((key, None) for key in keys))
        assert same(decode_value(encode_value(value))[0], value)


DEEP = 100_000


@pytest.mark.parametrize(
    "data",
    [
        b"\x00" * DEEP,
        b"\x00\x53\x01" * DEEP + b"\x40",
        b"\xe0\x80\x01" + b"\x00\x53\x01" * 40 + b"\x40",
        b"".join(b"\xd0" + struct.pack(">II", 9 * (DEEP - n) - 5, 1) for n in range(DEEP)),
        b"".join(b"\xf0" + struct.pack(">II", 9 * (DEEP - n) - 5, 1) for n in range(DEEP)),
    ],
    ids=["descriptors", "described", "array descriptors", "lists", "arrays"],
)
def test_deep_nesting_is_refused(data: bytes) -> None:
    with pytest.raises(AmqpError):
        decode_value(data)


def test_nesting_has_its_limit() -> None:
    value: Any = None
    for _ in range(32):
        value = [value]
    assert decode_value(encode_value(value))[0] == value
    with pytest.raises(AmqpError, match="nested too deeply") as caught:
        decode_value(encode_value([value]))
    assert caught.value.condition == "amqp:resource-limit-exceeded"


def test_depth_is_given_back_after_each_value() -> None:
    value = [[[None]]] * 100 + [Array([[]], list, [ULong(1), ULong(2)])] * 100
    assert decode_value(encode_value(value), limits=Limits(max_depth=4))[0] == value


def _nulls(count: int) -> bytes:
    return b"\xf0" + struct.pack(">II", 5, count) + b"\x40"


def _list_of(items: list[bytes]) -> bytes:
    body = b"".join(items)
    return b"\xd0" + struct.pack(">II", len(body) + 4, len(items)) + body


MEBIBYTE = 1024 * 1024


@pytest.mark.parametrize(
    "data",
    [
        _nulls(0xFFFF_FFFF),
        _list_of([_nulls(100_000)] * 10_000),
        _list_of([b"\x45"] * MEBIBYTE),
        b"\xd0" + struct.pack(">II", 0xFFFF_FFFF, 0xFFFF_FFFF) + bytes(MEBIBYTE),
        b"\xd0" + struct.pack(">II", MEBIBYTE + 4, 0xFFFF_FFFF) + bytes(MEBIBYTE),
        b"\xf0" + struct.pack(">II", MEBIBYTE + 5, 0xFFFF_FFFF) + b"\x50" + bytes(MEBIBYTE),
        b"\xb1" + struct.pack(">I", 0xFFFF_FFFF) + bytes(MEBIBYTE),
        b"\xd1" + struct.pack(">II", MEBIBYTE + 4, MEBIBYTE) + b"\x43" * MEBIBYTE,
    ],
    ids=["nulls", "lists of nulls", "lists", "size", "count", "array count", "string", "map"],
)
def test_claims_are_not_believed(data: bytes) -> None:
    tracemalloc.start()
    begin = time.process_time()
    try:
        with pytest.raises(AmqpError):
            decode_value(data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # Generous, for a traced run with sanitizers: without limits these take minutes and gigabytes.
    assert time.process_time() - begin < 10
    assert peak < 64 * MEBIBYTE


def test_keys_made_to_collide_do_not_take_long() -> None:
    # All of these have one hash as ints: they differ by multiples of the hash's modulus.
    modulus = 2**61 - 1
    keys = b"".join(b"\x98" + (n * modulus).to_bytes(16, "big") + b"\x40" for n in range(50_000))
    data = b"\xd1" + struct.pack(">II", len(keys) + 4, 100_000) + keys
    begin = time.process_time()
    value, _ = decode_value(data)
    assert type(value) is Map
    assert time.process_time() - begin < 10
