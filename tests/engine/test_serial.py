"""Serial numbers: the edges by hand, the laws with any numbers."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from router.engine import serial

TOP = 2**32 - 1
HALF = 2**31
NUMBERS = st.integers(0, TOP) | st.sampled_from([0, 1, HALF - 1, HALF, HALF + 1, TOP - 1, TOP])


@pytest.mark.parametrize(
    ("start", "end", "distance"),
    [
        (0, 0, 0),
        (0, 1, 1),
        (1, 0, -1),
        (TOP, 0, 1),
        (0, TOP, -1),
        (TOP - 1, 1, 3),
        (0, HALF - 1, HALF - 1),
        (0, HALF, -HALF),
        (HALF, 0, -HALF),
        (0, HALF + 1, -HALF + 1),
        (TOP, HALF - 2, HALF - 1),
    ],
)
@pytest.mark.spec("2.8.10-1")
def test_distance_at_the_edges(start: int, end: int, distance: int) -> None:
    assert serial.distance(start, end) == distance


@pytest.mark.parametrize(
    ("number", "count", "sum_"),
    [(0, 1, 1), (TOP, 1, 0), (0, -1, TOP), (TOP, TOP, TOP - 1), (HALF, HALF, 0), (5, 0, 5)],
)
@pytest.mark.spec("2.8.10-1")
def test_addition_at_the_edges(number: int, count: int, sum_: int) -> None:
    assert serial.add(number, count) == sum_


@given(NUMBERS, st.integers(-HALF, HALF - 1))
def test_a_number_lies_as_far_ahead_as_was_added(number: int, count: int) -> None:
    assert serial.distance(number, serial.add(number, count)) == count


@given(NUMBERS, NUMBERS)
def test_adding_the_distance_leads_to_the_end(start: int, end: int) -> None:
    assert serial.add(start, serial.distance(start, end)) == end


@given(NUMBERS, NUMBERS)
def test_ahead_is_the_distance_that_never_is_negative(start: int, end: int) -> None:
    ahead = serial.ahead(start, end)
    assert 0 <= ahead <= TOP
    assert serial.add(start, ahead) == end
