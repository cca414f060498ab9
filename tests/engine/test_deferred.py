"""Tasks that were put off take turns, a step each, until each is done."""

from __future__ import annotations

from collections.abc import Iterator

from router.engine.deferred import (
    CHANGES_AT_ONCE,
    ITEMS_PER_STEP,
    STEPS_A_ROUND,
    Deferred,
    DeferredPass,
    pop_from_end,
    pop_items,
)


class Count:
    """A task of some steps, which notes each."""

    def __init__(self, name: str, steps: int, seen: list[str]) -> None:
        self.name = name
        self.left = steps
        self.seen = seen

    def step(self) -> bool:
        """Note a step; return whether another is left."""
        self.seen.append(self.name)
        self.left -= 1
        return self.left > 0


def test_tasks_take_turns_until_each_is_done() -> None:
    deferred, seen = Deferred(), list[str]()
    assert not deferred
    deferred.add(Count("a", 3, seen))
    deferred.add(Count("b", 1, seen))
    assert deferred
    steps = 1
    while deferred.step():
        steps += 1
    assert seen == ["a", "b", "a", "a"]
    assert steps == len(seen)
    assert not deferred


def test_without_a_task_a_step_does_nothing() -> None:
    assert Deferred().step() is False


def test_a_task_may_put_off_another() -> None:
    deferred, seen = Deferred(), list[str]()

    class Parent(Count):
        def step(self) -> bool:
            if self.left == 2:
                deferred.add(Count("child", 1, seen))
            return super().step()

    deferred.add(Parent("parent", 2, seen))
    while deferred.step():
        pass
    assert seen == ["parent", "child", "parent"]


def test_the_first_steps_are_taken_at_once() -> None:
    deferred, seen = Deferred(), list[str]()
    deferred.start(Count("short", 3, seen), 3, lambda: seen.append("deferred"))
    assert seen == ["short"] * 3
    assert not deferred
    deferred.start(Count("long", 3, seen), 2, lambda: seen.append("deferred"))
    assert seen[3:] == ["long", "long", "deferred"]
    assert deferred.step() is False
    assert seen[-1] == "long"


def test_what_is_worked_off_begins_at_once_and_what_is_forgotten_later() -> None:
    deferred = Deferred()
    steps: list[object] = list(range(1000))
    pieces: dict[object, None] = dict.fromkeys(range(100))
    deferred.run_steps(pop_from_end(steps))
    assert len(steps) == 1000 - CHANGES_AT_ONCE
    deferred.forget(pop_items(pieces))
    assert len(pieces) == 100
    deferred.step()
    deferred.step()
    assert len(steps) == 1000 - CHANGES_AT_ONCE - ITEMS_PER_STEP
    assert len(pieces) == 100 - ITEMS_PER_STEP
    while deferred.step():
        pass
    assert not steps
    assert not pieces


def test_all_turns_of_a_round_share_the_steps_that_are_taken_at_once() -> None:
    deferred, seen = Deferred(), list[str]()
    assert not deferred.needs_round()
    for number in range(100):
        deferred.start(Count(f"{number}", 5, seen), 3)
    assert len(seen) == STEPS_A_ROUND
    assert len(deferred.tasks) == 100
    assert deferred.needs_round()
    deferred.begin_round()
    deferred.start(Count("next", 5, seen), 3)
    assert seen[STEPS_A_ROUND:] == ["next"] * 3


def test_a_round_is_needed_once_steps_were_taken_although_nothing_is_left() -> None:
    deferred = Deferred()
    deferred.start(Count("short", 1, []), 3)
    assert not deferred
    assert deferred.needs_round()
    deferred.begin_round()
    assert not deferred.needs_round()


def test_a_step_that_takes_longer_counts_for_more() -> None:
    deferred, seen, waiting = Deferred(), list[str](), list[int]()
    for number in range(STEPS_A_ROUND):
        task = Count("heavy", 1, seen)
        deferred.start(task, 1, lambda number=number: waiting.append(number), weight=8)  # type: ignore[misc]
    assert len(seen) == STEPS_A_ROUND // 8
    assert waiting == list(range(STEPS_A_ROUND // 8, STEPS_A_ROUND))


def test_a_pass_starts_only_when_the_last_one_is_over() -> None:
    deferred = Deferred()
    started: list[int] = []

    def steps() -> Iterator[None]:
        started.append(len(started))
        for _ in range(3 * ITEMS_PER_STEP):
            yield

    checks = DeferredPass(at_once=ITEMS_PER_STEP)
    running = []
    for _ in range(2):
        checks.start(deferred, steps())
        running.append(checks.is_running)
    assert started == [0]
    while deferred.step():
        pass
    running.append(checks.is_running)
    assert running == [True, True, False]
    checks.start(deferred, steps())
    assert started == [0, 1]
