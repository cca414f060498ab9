"""Long turns: one at a time, and shorter while other connections are active."""

from __future__ import annotations

import trio
from trio.testing import wait_all_tasks_blocked

from router.engine.outbox import Turn
from router.engine.settings import TURN_WORK
from router.net.long_turns import SHARED_S, SHARED_TURN_WORK, LongTurns


async def long_turn(turns: LongTurns, turn: Turn, now: float) -> int:
    """Take a long turn that begins at `now`, and return the work that it may do."""
    async with turns as work:
        turn.now = now
    return work


async def test_long_turns_are_shorter_while_other_connections_are_active() -> None:
    turn = Turn()
    turns = LongTurns(turn)
    assert await long_turn(turns, turn, 1.0) == TURN_WORK
    assert await long_turn(turns, turn, 1.001) == TURN_WORK
    # a turn of another connection
    turn.now = 1.002
    assert await long_turn(turns, turn, 1.003) == SHARED_TURN_WORK
    assert await long_turn(turns, turn, 1.004) == SHARED_TURN_WORK
    assert await long_turn(turns, turn, 1.003 + SHARED_S) == SHARED_TURN_WORK
    assert await long_turn(turns, turn, 1.004 + SHARED_S) == TURN_WORK


async def test_only_one_connection_has_a_long_turn() -> None:
    turn = Turn()
    turns = LongTurns(turn)
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
