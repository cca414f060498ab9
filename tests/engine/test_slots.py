"""Slots find what was put under a number, and cost memory for what is there alone."""

from __future__ import annotations

from hypothesis import given, strategies as st

from router.engine.slots import Slots

HIGHEST = 2**32 - 1
NUMBERS = st.integers(0, 100) | st.integers(0, HIGHEST)


def test_an_unused_number_stands_for_nothing() -> None:
    slots = Slots()
    slots.put(3, "three")
    assert [slots.find(number) for number in (0, 3, 4, HIGHEST)] == [None, "three", None, None]


def test_the_highest_numbers_cost_what_is_there() -> None:
    slots = Slots()
    for number in (65535, HIGHEST, 5000):
        slots.put(number, number)
    assert slots.near == []
    assert slots.find(HIGHEST) == HIGHEST


def test_a_peer_that_counts_from_0_gets_a_list() -> None:
    slots = Slots()
    for number in range(5000):
        slots.put(number, str(number))
    assert not slots.far
    assert len(slots.near) == 5000


def test_what_was_far_is_found_when_the_list_has_reached_it() -> None:
    slots = Slots()
    slots.put(100, "far")
    for number in range(100):
        slots.put(number, number)
    slots.put(101, "near")
    assert slots.find(100) == "far"
    slots.remove(100)
    assert slots.find(100) is None
    slots.put(100, "again")
    assert slots.find(100) == "again"


def test_clearing_takes_all_back() -> None:
    slots = Slots()
    slots.put(1, "near")
    slots.put(HIGHEST, "far")
    slots.clear()
    assert slots.find(1) is None
    assert slots.find(HIGHEST) is None
    slots.put(HIGHEST, "new")
    assert slots.find(HIGHEST) == "new"


@given(st.lists(st.tuples(NUMBERS, st.booleans()), max_size=60))
def test_it_is_a_dict_whatever_the_numbers(steps: list[tuple[int, bool]]) -> None:
    slots = Slots()
    expected: dict[int, object] = {}
    most = 0
    for number, is_put in steps:
        if number in expected:
            slots.remove(number)
            del expected[number]
        elif is_put:
            thing = object()
            slots.put(number, thing)
            expected[number] = thing
        most = max(most, len(expected))
        assert slots.count == len(expected)
        assert {key: slots.find(key) for key in expected} == expected
        assert slots.find(number) is expected.get(number)
    assert len(slots.near) <= max(32, 2 * most + 1)
