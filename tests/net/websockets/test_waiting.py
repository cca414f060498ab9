"""Requests that wait for their turn: of too many, the oldest of a host are given up."""

from __future__ import annotations

import trio

from router.net.websockets.waiting import WaitingRequests


async def test_of_too_many_the_oldest_of_the_host_with_most_is_given_up(
    autojump_clock: trio.testing.MockClock,
) -> None:
    may = trio.Event()

    async def step(_: str) -> None:
        await may.wait()

    requests = WaitingRequests(step, most=3)
    answered: list[str] = []
    given_up: list[str] = []

    async def ask(name: str) -> None:
        (answered if await requests.turn(name[0]) else given_up).append(name)

    async with trio.open_nursery() as nursery:
        for name in ("b0", "a0", "a1", "a2", "a3"):
            nursery.start_soon(ask, name)
            await trio.testing.wait_all_tasks_blocked()
        assert given_up == ["a0", "a1"]
        may.set()
    assert sorted(answered) == ["a2", "a3", "b0"]


async def test_requests_that_were_answered_make_room() -> None:
    async def step(_: str) -> None:
        await trio.lowlevel.checkpoint()

    requests = WaitingRequests(step, most=1)
    assert [await requests.turn("a") for _ in range(5)] == [True] * 5


async def test_a_request_that_is_cancelled_makes_room() -> None:
    async def step(_: str) -> None:
        await trio.sleep_forever()

    requests = WaitingRequests(step, most=1)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(requests.turn, "a")
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    with trio.move_on_after(0) as scope:
        await requests.turn("a")
    # it waited, instead of being given up
    assert scope.cancelled_caught
