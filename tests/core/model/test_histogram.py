"""How long things took: between which bounds, how many, and how long together."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from router.core.model.histogram import BOUNDS_S, Histogram

from support.examples import examples

SIZE = len(BOUNDS_S)


def test_the_bounds_ascend_from_ten_microseconds_to_half_a_minute() -> None:
    assert list(BOUNDS_S) == sorted(set(BOUNDS_S))
    assert (BOUNDS_S[0], BOUNDS_S[-1]) == (10e-6, 30.0)


@pytest.mark.parametrize("at", range(SIZE))
def test_a_bound_is_within(at: int) -> None:
    histogram = Histogram()
    histogram.observe(BOUNDS_S[at], 2)
    histogram.observe(BOUNDS_S[at] * 1.001, 3)
    expected = [0] * (SIZE + 1)
    expected[at], expected[at + 1] = 2, 3
    assert histogram.counts() == expected


def test_a_clock_that_goes_back_takes_no_time() -> None:
    histogram = Histogram()
    histogram.observe(-5.0, 1)
    histogram.observe(0.0, 1)
    assert histogram.counts()[0] == 2
    assert histogram.sum_s == 0


@examples(50)
@given(st.lists(st.tuples(st.floats(0, 100), st.integers(1, 2**40))), st.integers(0, 20))
def test_nothing_is_lost_however_it_is_added(ages: list[tuple[float, int]], cut: int) -> None:
    one, other, whole = Histogram(), Histogram(), Histogram()
    for number, (age_s, count) in enumerate(ages):
        (one if number < cut else other).observe(age_s, count)
        whole.observe(age_s, count)
    one.add(other)
    assert one.counts() == whole.counts()
    assert sum(one.counts()) == sum(count for _, count in ages)
    assert one.sum_s == pytest.approx(whole.sum_s)
