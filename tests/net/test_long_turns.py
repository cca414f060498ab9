"""Long turns: one at a time, and shorter while other connections are active."""

from __future__ import annotations

import trio
from trio.testing import wait_all_tasks_blocked

from router.engine.settings import TURN_WORK
from router.net.long_turns import SHARED_S, SHARED_TURN_WORK, LongTurns


async def test_long_turns_are_shorter_while_other_connections_are_active() -> None:
    now = 0.0
    turns = LongTurns(lambda: now)

    async def work() -> int:
        async with turns as work:
            return work

    assert await work() == TURN_WORK
    now = turns.short_turn_at = 1.0
    assert turns.others_are_active()
    assert await work() == SHARED_TURN_WORK
    now = 1.0 + 0.9 * SHARED_S
    assert await work() == SHARED_TURN_WORK
    now = 1.0 + 1.1 * SHARED_S
    assert not turns.others_are_active()
    assert await work() == TURN_WORK


async def test_only_one_connection_has_a_long_turn() -> None:
    turns = LongTurns(lambda: 0.0)
    begun = 0

    async def take() -> None:
        nonlocal begun
        async with turns:
            begun += 1
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery, turns:
        for _ in range(3):
            nursery.start_soon(take)
        await wait_all_tasks_blocked()
        assert begun == 0
    assert begun == 3
