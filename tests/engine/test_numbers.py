"""The lowest number that is free is found, whichever are in use."""

from __future__ import annotations

from hypothesis import given, strategies as st

from router.engine.numbers import Numbers

HIGHEST = 65_535


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 100)), max_size=200))
def test_the_lowest_that_is_free_is_given(steps: list[tuple[bool, int]]) -> None:
    numbers, used = Numbers(), set[int]()
    for takes, number in steps:
        if takes:
            given = numbers.lowest_free(HIGHEST)
            assert given == min(set(range(len(used) + 1)) - used)
            assert given is not None
            numbers.use(given)
            used.add(given)
        else:
            numbers.free(number)
            used.discard(number)


def test_none_is_given_where_all_are_in_use() -> None:
    numbers = Numbers()
    for number in range(HIGHEST + 1):
        assert numbers.lowest_free(HIGHEST) == number
        numbers.use(number)
    assert numbers.lowest_free(HIGHEST) is None
    assert numbers.lowest_free(HIGHEST + 1) == HIGHEST + 1
    for number in (65_535, 5, 40_000):
        numbers.free(number)
    given = [5, 40_000, 65_535]
    for number in given:
        assert numbers.lowest_free(HIGHEST) == number
        numbers.use(number)
