"""Admission: the order of requests, and how many there may be."""

from __future__ import annotations

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from router.metrics.admission import WAIT_S, Admission, Admitted


async def entered(admission: Admission) -> Admitted:
    """The place of a request that is admitted."""
    admitted = await admission.enter()
    assert admitted is not None
    return admitted


async def test_who_came_first_is_first() -> None:
    admission = Admission(places=1, at_once=1, waiting=3)
    order: list[int] = []

    async def ask(number: int) -> None:
        admitted = await entered(admission)
        order.append(number)
        admitted.leave()

    first = await entered(admission)
    async with trio.open_nursery() as nursery:
        for number in range(3):
            nursery.start_soon(ask, number)
            await wait_all_tasks_blocked()
        assert order == []
        first.leave()
    assert order == [0, 1, 2]


async def test_a_turn_is_given_on_when_the_answer_is_made_and_the_place_when_it_is_taken(
    autojump_clock: MockClock,
) -> None:
    admission = Admission(places=2, at_once=1, waiting=1)
    first = await entered(admission)
    first.answer_made()
    second = await entered(admission)
    # again, as for each part of an answer
    first.answer_made()
    second.answer_made()
    assert await admission.enter() is None
    assert trio.current_time() == WAIT_S
    first.leave()
    third = await entered(admission)
    third.leave()
    second.leave()
    assert trio.current_time() == WAIT_S


async def test_no_more_wait_than_may() -> None:
    admission = Admission(places=1, at_once=1, waiting=1)
    first = await entered(admission)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(entered, admission)
        await wait_all_tasks_blocked()
        assert await admission.enter() is None
        first.leave()


async def test_none_waits_where_none_may() -> None:
    admission = Admission(places=1, at_once=1, waiting=0)
    first = await entered(admission)
    assert await admission.enter() is None
    first.leave()
    assert await admission.enter() is not None


async def test_who_gives_up_waiting_for_a_turn_leaves_the_place() -> None:
    admission = Admission(places=2, at_once=1, waiting=1)
    first = await entered(admission)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(admission.enter)
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    first.answer_made()
    second = await entered(admission)
    second.leave()
    first.leave()
