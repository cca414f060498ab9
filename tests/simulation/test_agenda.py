"""What is due is done in order, and takes no time."""

from __future__ import annotations

from router.simulation.agenda import START_S, Agenda


def test_what_is_due_is_done_in_order_and_what_is_due_at_once_as_it_was_put_down() -> None:
    agenda, done = Agenda(), []
    agenda.after(2, lambda: done.append(("late", agenda.now)))
    agenda.after(1, lambda: done.append(("first", agenda.now)))
    agenda.after(1, lambda: done.append(("second", agenda.now)))
    agenda.at(0, lambda: done.append(("past", agenda.now)))

    agenda.run(START_S + 1.5)

    assert done == [("past", START_S), ("first", START_S + 1), ("second", START_S + 1)]
    assert agenda.clock() == START_S + 1.5


def test_what_is_taken_back_is_not_done() -> None:
    agenda, done = Agenda(), []
    agenda.after(1, lambda: done.append("kept"))
    agenda.after(1, lambda: done.append("taken back")).cancel()

    agenda.run(START_S + 2)

    assert done == ["kept"]
    assert agenda.done == 1


def test_time_passes_until_something_is_so_or_for_as_long_as_is_allowed() -> None:
    agenda, done = Agenda(), []
    agenda.after(3, lambda: done.append(1))

    assert agenda.run_until(lambda: bool(done), 10)
    assert agenda.now == START_S + 3
    assert not agenda.run_until(lambda: len(done) == 2, 10)
    assert agenda.now == START_S + 13
