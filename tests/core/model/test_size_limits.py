"""The largest limit of many is known, whoever comes and goes."""

from __future__ import annotations

from hypothesis import given, strategies as st

from router.core.model.size_limits import FEW_STALE, SizeLimits

LIMITS = st.integers(0, 20) | st.integers(0, 2**64 - 2)


@given(st.lists(st.tuples(st.booleans(), LIMITS), max_size=100))
def test_the_largest_of_those_that_are_there(steps: list[tuple[bool, int]]) -> None:
    limits, there = SizeLimits(), list[int]()
    for adds, number in steps:
        if adds:
            limits.add(number)
            there.append(number)
        elif there:
            limits.remove(there.pop(number % len(there)))
        assert limits.count == len(there)
        if there:
            assert limits.largest() == max(there)


def test_limits_that_come_and_go_are_forgotten() -> None:
    limits = SizeLimits()
    limits.add(10**6)
    for number in range(10_000):
        limits.add(number)
        limits.remove(number)
    assert len(limits._order) <= 2 + FEW_STALE
    assert limits.largest() == 10**6
