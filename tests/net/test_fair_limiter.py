"""Turns go round those who ask, however much one of them asks; and none is ever lost."""

from __future__ import annotations

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from router.net.fair_limiter import FairLimiter


class Asking:
    """Tasks that ask for turns, and have them until the test ends them."""

    def __init__(self, turns: FairLimiter, nursery: trio.Nursery) -> None:
        self.turns = turns
        self.nursery = nursery
        self.having: dict[str, trio.CancelScope] = {}
        self.had: list[str] = []
        self.waiting: dict[str, trio.CancelScope] = {}

    async def ask(self, *names: str) -> None:
        """Ask for turns; the name's first letter is who asks."""
        for name in names:
            self.nursery.start_soon(self._have, name)
            await wait_all_tasks_blocked()

    async def _have(self, name: str) -> None:
        with trio.CancelScope() as self.waiting[name]:
            async with self.turns.slot(name[0]):
                self.had.append(name)
                self.having[name] = self.waiting.pop(name)
                await trio.sleep_forever()

    async def end(self, name: str) -> None:
        """End a turn."""
        self.having.pop(name).cancel()
        await wait_all_tasks_blocked()

    async def give_up(self, name: str) -> None:
        """Let a task wait no more."""
        self.waiting.pop(name).cancel()
        await wait_all_tasks_blocked()


async def test_so_many_at_once(nursery: trio.Nursery) -> None:
    asking = Asking(FairLimiter(2), nursery)
    await asking.ask("a1", "a2", "a3", "b1")
    assert asking.had == ["a1", "a2"]
    assert asking.turns.waiting == 2
    await asking.end("a2")
    assert asking.had == ["a1", "a2", "a3"]
    await asking.end("a1")
    assert set(asking.having) == {"a3", "b1"}
    assert asking.turns.waiting == 0


async def test_who_asks_most_keeps_nobody_waiting(nursery: trio.Nursery) -> None:
    asking = Asking(FairLimiter(1), nursery)
    await asking.ask("a0", *[f"a{number}" for number in range(1, 9)], "b1", "c1", "b2")
    for _ in range(10):
        await asking.end(asking.had[-1])
    assert asking.had == ["a0", "a1", "b1", "c1", "a2", "b2", "a3", "a4", "a5", "a6", "a7"]


async def test_a_free_turn_is_for_whoever_comes(nursery: trio.Nursery) -> None:
    asking = Asking(FairLimiter(1), nursery)
    for name in ("a1", "a2", "b1"):
        await asking.ask(name)
        assert list(asking.having) == [name]
        await asking.end(name)


@pytest.mark.parametrize(
    ("name", "others"), [("a1", ["a2", "b1"]), ("b1", ["a1", "a2"]), ("a2", ["a1", "b1"])]
)
async def test_who_gives_up_has_no_turn(
    nursery: trio.Nursery, name: str, others: list[str]
) -> None:
    asking = Asking(FairLimiter(1), nursery)
    await asking.ask("x", "a1", "b1", "a2")
    await asking.give_up(name)
    assert asking.turns.waiting == 2
    for _ in range(3):
        await asking.end(asking.had[-1])
    # the others of the same asker keep its place
    assert asking.had == ["x", *others]
    await asking.ask("y")
    assert list(asking.having) == ["y"]


async def test_a_turn_given_to_one_who_gives_up_at_once_goes_on(nursery: trio.Nursery) -> None:
    asking = Asking(FairLimiter(1), nursery)
    await asking.ask("x", "a1", "b1")
    # in one go: `a1` is to stop waiting, and before it runs its turn comes
    asking.waiting["a1"].cancel()
    await asking.end("x")
    assert list(asking.having) == ["b1"]
    await asking.end("b1")
    await asking.ask("y")
    assert list(asking.having) == ["y"]


async def test_a_failure_ends_a_turn() -> None:
    turns = FairLimiter(1)
    for _ in range(2):
        with pytest.raises(LookupError):
            async with turns.slot("a"):
                raise LookupError
