"""Causes are counted one by one, for as long as they come again."""

from __future__ import annotations

from router.control.network.recurring import MOST, REST_S, OccurrenceCounter


def test_each_cause_is_counted_by_itself() -> None:
    recurring = OccurrenceCounter()
    assert [recurring.count(cause, 1.0) for cause in "aabab"] == [1, 2, 1, 3, 2]


def test_what_was_not_seen_for_long_begins_anew() -> None:
    recurring = OccurrenceCounter()
    times = [recurring.count("a", now) for now in (0.0, REST_S - 1, 2 * REST_S - 2, 3 * REST_S)]
    assert times == [1, 2, 3, 1]


def test_many_causes_are_not_all_remembered() -> None:
    recurring = OccurrenceCounter()
    recurring.count("first", 0.0)
    recurring.count("second", 0.0)
    recurring.count("first", 1.0)
    for number in range(MOST - 1):
        recurring.count(number, 2.0)
    assert recurring.count("first", 3.0) == 3
    assert recurring.count("second", 3.0) == 1
