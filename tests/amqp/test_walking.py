"""Values that are only checked are held to what values that are read are held to."""

from __future__ import annotations

import tracemalloc
from random import Random
from typing import Any

import pytest

from router.amqp.decode import decode_value
from router.amqp.encode import encode_value
from router.amqp.types import Symbol
from router.amqp.walking import Walk
from router.errors import AmqpError

from support.vectors import BROKEN, LONGER, SHORTEST, octets
from support.wire import cut_short

DEPTH = 32
ITEMS = 262_144
CHANGES = 4000


def walked(data: bytes, items: int = ITEMS) -> Any:
    """Where the value ends, or the condition of the error."""
    walk = Walk(data, 0, len(data), DEPTH, items)
    try:
        walk.step()
    except AmqpError as error:
        return error.condition
    return walk.at


def decoded(data: bytes) -> Any:
    """Return the decoded value, or the condition of the error."""
    try:
        return decode_value(data)[1]
    except AmqpError as error:
        return error.condition


@pytest.mark.parametrize(("text", "value"), SHORTEST + LONGER)
def test_every_encoding_is_stepped_over(text: str, value: Any) -> None:
    data = octets(text)
    assert walked(data) == len(data)
    assert walked(data + b"\xff") == len(data)


# One key in two encodings: only who reads both can tell.
BY_READING = "twice in different encodings"


@pytest.mark.parametrize(("text", "why"), [each for each in BROKEN if each[1] != BY_READING])
def test_what_is_no_value_is_refused_for_the_same_condition(text: str, why: str) -> None:
    data = octets(text)
    assert walked(data) == decoded(data), why


@pytest.mark.parametrize(("text", "value"), SHORTEST)
def test_a_value_that_is_cut_short_is_refused(text: str, value: Any) -> None:
    for part in cut_short(octets(text)):
        assert walked(part) == decoded(part)


def test_changed_octets_are_judged_as_by_who_reads_them() -> None:
    known = [octets(text) for text, _ in SHORTEST + LONGER]
    known.append(
        encode_value({Symbol("a"): [{Symbol("b"): [1, "x", b"y", None, True]}, "z" * 300]})
    )
    random = Random(14)
    for _ in range(CHANGES):
        data = bytearray(random.choice(known))
        for _ in range(random.randrange(1, 4)):
            data[random.randrange(len(data))] = random.randrange(256)
        assert walked(bytes(data)) == decoded(bytes(data)), bytes(data).hex()


@pytest.mark.spec("1.6.23-2")
def test_a_key_may_come_once() -> None:
    twice = b"\xc1\x09\x04\xa3\x01a\x40\xa3\x01a\x41"
    assert decoded(twice) == walked(twice) == "amqp:decode-error"


def test_nesting_and_numbers_are_limited() -> None:
    deep = b"\x45"
    for _ in range(DEPTH + 1):
        deep = b"\xd0" + (len(deep) + 4).to_bytes(4, "big") + b"\0\0\0\1" + deep
    assert walked(deep) == decoded(deep) == "amqp:resource-limit-exceeded"
    # no octets at all for each of as many as one likes
    nulls = b"\xf0\0\0\0\x05" + (2**32 - 1).to_bytes(4, "big") + b"\x40"
    assert walked(nulls) == decoded(nulls) == "amqp:resource-limit-exceeded"
    assert walked(encode_value([None] * 10), items=10) == "amqp:resource-limit-exceeded"


def test_nothing_is_built() -> None:
    data = encode_value({Symbol("x"): [[]] * 60_000})
    tracemalloc.start()
    walked(data)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 4096
