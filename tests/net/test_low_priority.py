"""Turns of connections that are not open yet: late, but never too late, and fair."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from router.net.failing import MANY
from router.net.low_priority import (
    CHURN_OF_A_STEP,
    CROWD,
    LONGEST_WAIT_S,
    MANY_STEPS,
    MOST_AT_ONCE,
    REST_S,
    LowPriorityTurns,
)


class Asking:
    """Tasks that wait for turns; `had` has the names of those that got one, in this order."""

    def __init__(self, turns: LowPriorityTurns, nursery: trio.Nursery) -> None:
        self.turns = turns
        self.nursery = nursery
        self.had: list[str] = []
        self.waiting: dict[str, trio.CancelScope] = {}

    def ask(self, *names: str) -> None:
        """Ask for turns. The name's first letter is the host; a plus sign asks to accept."""
        for name in names:
            self.nursery.start_soon(self._have, name)

    async def _have(self, name: str) -> None:
        with trio.CancelScope() as self.waiting[name]:
            if name.startswith("+"):
                await self.turns.accept()
            else:
                await self.turns.step(name[0])
            self.had.append(name)

    async def end(self) -> None:
        """Wait until nobody waits."""
        while len(self.had) < len(self.waiting):
            await trio.lowlevel.checkpoint()


@asynccontextmanager
async def asking(*names: str) -> AsyncIterator[Asking]:
    """Yield tasks that wait for turns in the order of their names, before any turn is given.

    Their clock stands still. Otherwise a slow machine would be given several turns at once, and
    Trio wakes such tasks in any order.
    """
    turns = LowPriorityTurns(lambda: 0.0)
    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:
            tasks = Asking(turns, nursery)
            for name in names:
                tasks.ask(name)
                await wait_all_tasks_blocked()
            yield tasks
            nursery.cancel_scope.cancel()


async def test_turns_are_given_one_by_one_when_the_loop_is_idle() -> None:
    async with asking("a1", "a2") as tasks:
        steps: list[list[str]] = []

        async def watch() -> None:
            while len(tasks.had) < 2:
                await wait_all_tasks_blocked()
                steps.append(list(tasks.had))

        tasks.nursery.start_soon(tasks.turns.run)
        await watch()
        assert ["a1"] in steps


async def test_a_busy_loop_gives_turns_as_well() -> None:
    async with asking("a1", "b1", "+1") as tasks:

        async def be_busy() -> None:
            while True:
                await trio.lowlevel.checkpoint()

        tasks.nursery.start_soon(be_busy)
        tasks.nursery.start_soon(tasks.turns.run)
        await tasks.end()


async def test_a_host_with_many_connections_keeps_no_other_waiting() -> None:
    async with asking("a1", "a2", "a3", "b1", "c1") as tasks:
        tasks.nursery.start_soon(tasks.turns.run)
        await tasks.end()
        assert tasks.had == ["a1", "b1", "c1", "a2", "a3"]


async def test_connections_are_accepted_between_steps() -> None:
    async with asking("a1", "a2", "a3", "+1", "+2") as tasks:
        tasks.nursery.start_soon(tasks.turns.run)
        await tasks.end()
        assert tasks.had == ["a1", "+1", "a2", "+2", "a3"]


async def test_accepting_waits_while_many_steps_do() -> None:
    names = [f"a{number}" for number in range(3 * MANY_STEPS)]
    async with asking(*names, "+1") as tasks:
        tasks.nursery.start_soon(tasks.turns.run)
        await tasks.end()
        assert tasks.had.index("+1") == MANY_STEPS


async def test_those_that_stop_waiting_are_forgotten() -> None:
    async with asking("a1", "a2", "+1", "+2") as tasks:
        for name in ("a1", "+1"):
            tasks.waiting.pop(name).cancel()
        await wait_all_tasks_blocked()
        tasks.nursery.start_soon(tasks.turns.run)
        await tasks.end()
        assert tasks.had == ["a2", "+2"]


async def test_turns_are_given_again_after_a_while_without_any() -> None:
    async with asking("a1") as tasks:
        tasks.nursery.start_soon(tasks.turns.run)
        await tasks.end()
        await wait_all_tasks_blocked()
        tasks.ask("+1")
        await wait_all_tasks_blocked()
        await tasks.end()
        assert tasks.had == ["a1", "+1"]


@pytest.mark.parametrize("weight", [1, 8])
async def test_a_heavy_step_is_followed_by_a_longer_wait(
    weight: int, mock_clock: MockClock
) -> None:
    """While the loop is busy, what follows from a step of weight 8 takes eight times as long."""
    given_at: list[float] = []
    turns = LowPriorityTurns(lambda: 0.0)

    async def ask() -> None:
        await turns.step("a", weight)
        given_at.append(trio.current_time())

    async def be_busy() -> None:
        """Take a tenth of a millisecond in every round of the loop."""
        while True:
            mock_clock.jump(0.0001)
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(ask)
        await wait_all_tasks_blocked()
        nursery.start_soon(be_busy)
        nursery.start_soon(turns.run)
        while len(given_at) < 3:
            await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
    assert given_at[2] - given_at[1] == pytest.approx(LONGEST_WAIT_S * weight, abs=0.0003)


async def test_several_turns_are_given_at_once_while_rounds_are_long(mock_clock: MockClock) -> None:
    rounds_taken = 0
    turns = LowPriorityTurns(trio.current_time)
    had: list[str] = []

    async def ask() -> None:
        await turns.step("a")
        had.append("a")

    async with trio.open_nursery() as nursery:
        for _ in range(10 * MOST_AT_ONCE):
            nursery.start_soon(ask)
        await wait_all_tasks_blocked()
        nursery.start_soon(turns.run)
        while len(had) < 10 * MOST_AT_ONCE:
            mock_clock.jump(0.01)
            await trio.lowlevel.checkpoint()
            rounds_taken += 1
        nursery.cancel_scope.cancel()
    # Given one by one, they would take at least as many rounds as there are steps.
    assert rounds_taken < 10 * MOST_AT_ONCE


async def test_turns_are_counted_as_garbage() -> None:
    counted: list[int] = []
    turns = LowPriorityTurns(lambda: 0.0, count_work=counted.append)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(turns.run)
        for weight in (1, 8):
            await turns.step("a", weight)
            await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert counted == [CHURN_OF_A_STEP, 8 * CHURN_OF_A_STEP]


class Failing:
    """Turns of which the host "f" fails, in a loop whose time passes only when all tasks wait."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self.nursery = nursery
        self.others_are_active = True
        self.turns = LowPriorityTurns(trio.current_time, lambda: self.others_are_active)
        for _ in range(2 * MANY):
            self.turns.failing_hosts.count_unopened("f")
        # the time of each turn, by host, and an event that each one sets
        self.given: dict[str, list[float]] = {"f": [], "g": [], "+": []}
        self._one_more = trio.Event()

    async def ask(self, host: str, count: int = 1, weight: int = 1, *, fails: bool = False) -> None:
        """Ask for turns, and wait until all that ask wait."""
        for _ in range(count):
            self.nursery.start_soon(self._have, host, weight, fails)
        await wait_all_tasks_blocked()

    async def _have(self, host: str, weight: int, fails: bool) -> None:
        if host == "+":
            await self.turns.accept()
        else:
            await self.turns.step(host, weight, fails=fails)
        self.given[host].append(trio.current_time())
        self._one_more.set()

    async def end(self, host: str, count: int) -> None:
        """Wait until a host has had so many turns."""
        while len(self.given[host]) < count:
            self._one_more = trio.Event()
            await self._one_more.wait()

    def rests(self, host: str = "f") -> list[float]:
        """Return the times between the turns of a host."""
        return [later - earlier for earlier, later in pairwise(self.given[host])]


@asynccontextmanager
async def failing() -> AsyncIterator[Failing]:
    """Yield turns of which one host fails."""
    with trio.fail_after(100):
        async with trio.open_nursery() as nursery:
            yield Failing(nursery)
            nursery.cancel_scope.cancel()


@pytest.mark.parametrize("weight", [1, 8])
async def test_failing_hosts_rest_after_each_step(weight: int, autojump_clock: MockClock) -> None:
    async with failing() as some:
        await some.ask("f", 4, weight)
        some.nursery.start_soon(some.turns.run)
        await some.end("f", 4)
        assert some.rests() == pytest.approx([REST_S * weight] * 3, rel=0.1)


async def test_who_fails_rests_even_if_its_host_does_not(autojump_clock: MockClock) -> None:
    async with failing() as some:
        await some.ask("g", 4, fails=True)
        some.nursery.start_soon(some.turns.run)
        await some.end("g", 4)
        assert some.rests("g") == pytest.approx([REST_S] * 3, rel=0.1)


async def test_others_do_not_wait_while_failing_hosts_rest(autojump_clock: MockClock) -> None:
    async with failing() as some:
        some.nursery.start_soon(some.turns.run)
        await some.ask("f", 3)
        for count in range(1, 21):
            began = trio.current_time()
            await some.ask("g")
            await some.ask("+")
            await some.end("+", count)
            assert some.given["g"][-1] == some.given["+"][-1] == began
        await some.end("f", 3)


async def test_failing_hosts_have_their_turns_also_in_a_crowd(mock_clock: MockClock) -> None:
    crowd = 3 * MANY_STEPS
    async with failing() as some:
        await some.ask("f", 3)
        for host in ("g", "+"):
            await some.ask(host, crowd)
        some.nursery.start_soon(some.turns.run)
        had = 0
        while len(some.given["f"]) < 3:
            assert had < crowd
            mock_clock.jump(REST_S / 4)
            had = len(some.given["g"])
            await some.end("g", had + 1)


async def test_failing_hosts_do_not_rest_while_no_other_connection_is_active(
    autojump_clock: MockClock,
) -> None:
    async with failing() as some:
        some.others_are_active = False
        await some.ask("f", 20)
        some.nursery.start_soon(some.turns.run)
        await some.end("f", 20)
        assert sum(some.rests()) == 0


async def test_a_rest_is_cut_when_the_others_pause(autojump_clock: MockClock) -> None:
    async with failing() as some:
        some.nursery.start_soon(some.turns.run)
        await some.ask("f", 1, 1000)
        await some.ask("f")
        some.others_are_active = False
        await some.ask("g")
        await some.end("f", 2)
        assert some.rests()[0] < REST_S


async def test_a_failing_host_is_crowded_if_many_of_its_connections_wait_to_begin(
    autojump_clock: MockClock,
) -> None:
    async with failing() as some:

        async def begin(host: str, count: int) -> None:
            for _ in range(count):
                some.nursery.start_soon(some.turns.begin, host)
            await wait_all_tasks_blocked()

        await some.ask("f", 2 * CROWD)
        await begin("g", 2 * CROWD)
        await begin("f", CROWD - 1)
        assert not some.turns.is_crowded("f")
        await begin("f", 1)
        assert some.turns.is_crowded("f")
        assert not some.turns.is_crowded("g")
        some.others_are_active = False
        assert not some.turns.is_crowded("f")
