"""Expired deliveries are found in time, however many deadlines there are and however far ahead."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, strategies as st

from router.core.model.deadlines import TICK_S, Deadlines
from router.engine.delivery import Delivery

NOW = 1000.0


def expiring(deadlines: Deadlines, *after_s: float, now: float = NOW) -> list[Delivery]:
    """So many deliveries, each with a deadline so many seconds ahead."""
    made = []
    for each in after_s:
        delivery = Delivery()
        delivery.deadline = now + each
        deadlines.enter(delivery, now)
        made.append(delivery)
    return made


def found(deadlines: Deadlines, now: float) -> list[Delivery]:
    """Return the deliveries that are due at a time."""
    return [
        delivery
        for number, slot in deadlines.take_due(now)
        for delivery in slot
        if deadlines.is_due(delivery, number, now)
    ]


@pytest.mark.parametrize("after_s", [0.001, 0.5, 63.9, 64.0, 70.0, 4096.0, 90_000.0, 10_000_000.0])
def test_one_is_found_when_its_time_has_come(after_s: float) -> None:
    deadlines = Deadlines()
    (delivery,) = expiring(deadlines, after_s)
    now, looks = NOW, 0
    while deadlines.next <= NOW + after_s - 1e-9 and looks < 1000:
        # what is far ahead is put into shorter slots, a few times
        now = deadlines.next
        assert found(deadlines, now) == []
        looks += 1
    assert looks <= 2 + after_s / 2_000_000
    assert found(deadlines, NOW + after_s) == [delivery]
    assert deadlines.next == 0
    assert deadlines.count == 0


def test_they_are_found_in_order() -> None:
    deadlines = Deadlines()
    made = expiring(deadlines, 3.0, 1.0, 2.0)
    assert found(deadlines, NOW + 0.5) == []
    assert found(deadlines, NOW + 2.5) == [made[1], made[2]]
    assert deadlines.next == NOW + 3.0


def test_one_that_has_left_is_not_found() -> None:
    deadlines = Deadlines()
    made = expiring(deadlines, 1.0, 1.0)
    deadlines.leave(made[0])
    deadlines.leave(made[0])
    assert found(deadlines, NOW + 2) == [made[1]]
    deadlines.leave(made[1])
    assert deadlines.count == 0


def test_one_that_leaves_when_its_slot_was_taken_out_is_not_due() -> None:
    deadlines = Deadlines()
    made = expiring(deadlines, 1.0, 1.0)
    ((number, slot),) = deadlines.take_due(NOW + 2)
    deadlines.leave(made[0])
    assert [deadlines.is_due(each, number, NOW + 2) for each in slot] == [False, True]
    assert deadlines.next == 0


def test_those_of_one_slot_are_not_looked_at_for_each_of_them() -> None:
    """However densely deadlines follow each other, a slot is looked at twice."""
    deadlines = Deadlines()
    begin = math.ceil(NOW)
    made = expiring(deadlines, *(begin - NOW + TICK_S * n / 1000 for n in range(1000)))
    looks = 0
    while deadlines.next:
        looks += 1
        for each in found(deadlines, deadlines.next):
            made.remove(each)
    assert made == []
    assert looks == 2


def test_there_are_few_slots_however_many_deadlines() -> None:
    deadlines = Deadlines()
    made = expiring(deadlines, *(1.0009**n for n in range(20_000)))
    assert deadlines.count == 20_000
    # what leaves leaves its slot behind, until its time
    for each in made:
        deadlines.leave(each)
    assert deadlines.next == 0
    looked = 0
    while due := deadlines.take_due(math.inf):
        looked += len(due)
    assert looked == 0


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("enter"), st.floats(-1, 10) | st.floats(0, 10_000) | st.floats(0, 1e8)),
        st.tuples(st.just("leave"), st.integers(0, 20)),
        st.tuples(st.just("wait"), st.floats(0, 1) | st.floats(0, 100) | st.floats(0, 1e7)),
        st.tuples(st.just("next"), st.just(0)),
    ),
    max_size=80,
)


@given(STEPS)
def test_none_is_early_and_none_is_late_by_more_than_a_slot(
    steps: list[tuple[str, float]],
) -> None:
    deadlines = Deadlines()
    there: list[Delivery] = []
    now = NOW
    for what, value in steps:
        if what == "enter":
            there += expiring(deadlines, value, now=now)
        elif what == "leave" and there:
            deadlines.leave(there.pop(int(value) % len(there)))
        else:
            now = now + value if what == "wait" else max(now, deadlines.next)
            while 0 < deadlines.next <= now:
                for each in found(deadlines, now):
                    assert each.deadline <= now
                    there.remove(each)
        assert deadlines.count == len(there)
        assert (deadlines.next == 0) == (not there)
        for each in there:
            assert deadlines.next <= each.deadline + TICK_S + 1e-6
            if what in ("wait", "next"):
                assert each.deadline > now - TICK_S
