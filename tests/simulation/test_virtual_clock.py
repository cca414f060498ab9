"""Scheduled calls run in order of their times, on a clock that takes no real time."""

from __future__ import annotations

from functools import partial

from router.simulation.virtual_clock import START_S, EventScheduler


def test_what_is_due_is_done_in_order_and_what_is_due_at_once_as_it_was_put_down() -> None:
    scheduler, done = EventScheduler(), []
    scheduler.after(2, lambda: done.append(("late", scheduler.now)))
    scheduler.after(1, lambda: done.append(("first", scheduler.now)))
    scheduler.after(1, lambda: done.append(("second", scheduler.now)))
    scheduler.at(0, lambda: done.append(("past", scheduler.now)))

    scheduler.run(START_S + 1.5)

    assert done == [("past", START_S), ("first", START_S + 1), ("second", START_S + 1)]
    assert scheduler.clock() == START_S + 1.5


def test_what_is_taken_back_is_not_done() -> None:
    scheduler, done = EventScheduler(), []
    scheduler.after(1, lambda: done.append("kept"))
    scheduler.after(1, lambda: done.append("taken back")).cancel()

    scheduler.run(START_S + 2)

    assert done == ["kept"]
    assert scheduler.done == 1


def test_time_passes_until_something_is_so_or_for_as_long_as_is_allowed() -> None:
    scheduler, done = EventScheduler(), []
    scheduler.after(3, lambda: done.append(1))

    assert scheduler.run_until(lambda: bool(done), 10)
    assert scheduler.now == START_S + 3
    assert not scheduler.run_until(lambda: len(done) == 2, 10)
    assert scheduler.now == START_S + 13


def test_what_is_due_can_be_done_a_part_at_a_time() -> None:
    scheduler = EventScheduler()
    done: list[int] = []
    for number in range(5):
        scheduler.after(1, partial(done.append, number))

    assert not scheduler.run(START_S + 1, most=2)
    assert (done, scheduler.now) == ([0, 1], START_S + 1)
    assert not scheduler.run_until(lambda: len(done) == 5, 10, most=2)
    assert (done, scheduler.now) == ([0, 1, 2, 3], START_S + 1)
    assert scheduler.run(START_S + 2, most=2)
    assert (done, scheduler.now) == ([0, 1, 2, 3, 4], START_S + 2)
