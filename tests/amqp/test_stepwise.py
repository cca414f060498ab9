"""Values decoded in steps are those that `decode_value` returns."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from hypothesis import given, strategies as st

from router.amqp.decode import decode_value
from router.amqp.encode import encode_value
from router.amqp.reader import DEFAULT_LIMITS, Limits
from router.amqp.stepwise import OCTETS_A_STEP, decode_in_steps
from router.amqp.types import Array, Described, Symbol, UInt, ULong, Value
from router.errors import AmqpError

MANY = 5000
LONG = (
    ["item"] * MANY,
    Array([f"key/{number}" for number in range(MANY)], str),
    Described(ULong(119), [Symbol("MAU"), UInt(3), Array(["k"] * MANY, str), bytes(100), None]),
    [[[UInt(number), str(number)] for number in range(MANY)], ["x"] * MANY, {"a": ["b"] * MANY}],
)


def decode(octets: bytes, limits: Limits = DEFAULT_LIMITS) -> tuple[Value, int]:
    """Decode in steps; return the value and where it ends."""
    return decode_counting(octets, limits)[0]


def decode_counting(
    octets: bytes, limits: Limits = DEFAULT_LIMITS
) -> tuple[tuple[Value, int], list[int]]:
    """Decode in steps; return the value and where it ends, and the octets of each step."""
    steps, sizes = decode_in_steps(octets, limits), []
    while True:
        try:
            sizes.append(next(steps))
        except StopIteration as end:
            return end.value, sizes


@pytest.mark.parametrize("value", LONG, ids=("list", "array", "described", "nested"))
def test_long_values_take_steps_of_bounded_size(value: Value) -> None:
    octets = encode_value(value)
    found, sizes = decode_counting(octets)
    assert found == (value, len(octets)) == decode_value(octets)
    # the map in the last one is decoded at once
    if value is not LONG[3]:
        assert max(sizes) < 2 * OCTETS_A_STEP
    assert len(sizes) >= len(octets) // (4 * OCTETS_A_STEP)


@given(st.binary(max_size=40), st.integers(0, 3))
def test_any_octets_have_the_same_result(tail: bytes, cut: int) -> None:
    whole = encode_value(LONG[2])
    for octets in (tail, whole[: len(whole) - cut] + tail, whole[:20] + tail + whole[20:]):
        assert outcome(decode, octets) == outcome(decode_value, octets)


def outcome(function: Callable[[bytes], tuple[Value, int]], octets: bytes) -> Value:
    """Return what a function returns, or the condition with which it fails."""
    try:
        return function(octets)
    except AmqpError as error:
        return error.condition


@pytest.mark.parametrize("limits", [Limits(max_items=MANY), Limits(max_depth=2)])
def test_limits_hold_for_all_steps_together(limits: Limits) -> None:
    octets = encode_value(LONG[2])
    for function in (decode_value, decode):
        with pytest.raises(AmqpError) as raised:
            function(octets, limits=limits)
        assert raised.value.condition == "amqp:resource-limit-exceeded"


def test_steps_are_short_from_the_first_on() -> None:
    octets = encode_value(LONG[1])
    steps = decode_in_steps(octets)
    assert next(steps) < 2 * OCTETS_A_STEP
    assert sum(itertools.islice(steps, 3)) < 4 * OCTETS_A_STEP
