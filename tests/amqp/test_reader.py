"""A reader steps through octets, within the limits and the lists that it has entered."""

from __future__ import annotations

import pytest

from router.amqp.reader import DEFAULT_LIMITS, Limits, Reader
from router.errors import AmqpError


def test_a_reader_does_not_leave_the_list_that_it_has_entered() -> None:
    # a list of three octets, after its format code, and two octets behind it
    reader = Reader(b"\x04\x03\x40\x41\x42\x40\x40", 0, 7, DEFAULT_LIMITS)
    assert reader.enter(1) == (7, 3)
    assert reader.take(3) == 2
    with pytest.raises(AmqpError, match="0 are left"):
        reader.take(1)
    reader.leave(7, 3)
    assert reader.take(2) == 5


def test_a_list_ends_where_its_size_says() -> None:
    reader = Reader(b"\x04\x03\x40\x41\x42", 0, 5, DEFAULT_LIMITS)
    outer_end, count = reader.enter(1)
    reader.take(2)
    with pytest.raises(AmqpError, match="1 octets are left over after the 3 items"):
        reader.leave(outer_end, count)


@pytest.mark.parametrize("size", [0, 6])
def test_a_size_has_to_fit(size: int) -> None:
    with pytest.raises(AmqpError, match=f"has the size {size}"):
        Reader(bytes((size, 0, 1, 2, 3)), 0, 5, DEFAULT_LIMITS).enter(1)


def test_a_count_has_to_fit() -> None:
    reader = Reader(bytes(5), 0, 5, DEFAULT_LIMITS)
    reader.check_count(5)
    with pytest.raises(AmqpError, match="6 items in 5 octets"):
        reader.check_count(6)


def test_values_and_levels_are_limited() -> None:
    reader = Reader(b"", 0, 0, Limits(max_depth=1, max_items=2))
    reader.descend()
    reader.spend(2)
    for act in (reader.descend, lambda: reader.spend(1)):
        with pytest.raises(AmqpError) as raised:
            act()
        assert raised.value.condition == "amqp:resource-limit-exceeded"
