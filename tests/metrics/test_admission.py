"""Admission: the order of requests, and how many there may be."""

from __future__ import annotations

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from router.metrics.admission import WAIT_S, Admission, Admitted


async def entered(admission: Admission, host: str) -> Admitted:
    """Admit a request of a host, and return its place."""
    admitted = await admission.enter(host)
    assert admitted is not None
    return admitted


async def test_who_came_first_is_first() -> None:
    admission = Admission(places=1, at_once=1, waiting=3)
    order: list[int] = []

    async def ask(number: int) -> None:
        admitted = await entered(admission, "a")
        order.append(number)
        admitted.leave()

    first = await entered(admission, "a")
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
    first = await entered(admission, "a")
    first.answer_made()
    second = await entered(admission, "b")
    # again, as for each part of an answer
    first.answer_made()
    second.answer_made()
    assert await admission.enter("c") is None
    assert trio.current_time() == WAIT_S
    first.leave()
    third = await entered(admission, "c")
    third.leave()
    second.leave()
    assert trio.current_time() == WAIT_S


async def test_no_more_wait_than_may() -> None:
    admission = Admission(places=1, at_once=1, waiting=1)
    first = await entered(admission, "a")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(entered, admission, "a")
        await wait_all_tasks_blocked()
        assert await admission.enter("a") is None
        first.leave()


async def test_none_waits_where_none_may() -> None:
    admission = Admission(places=1, at_once=1, waiting=0)
    first = await entered(admission, "a")
    assert await admission.enter("a") is None
    first.leave()
    assert await admission.enter("a") is not None


async def test_who_gives_up_waiting_for_a_turn_leaves_the_place() -> None:
    admission = Admission(places=4, at_once=1, waiting=1)
    first = await entered(admission, "a")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(admission.enter, "a")
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    first.answer_made()
    second = await entered(admission, "a")
    second.leave()
    first.leave()


async def test_who_gives_up_and_is_admitted_at_once_leaves_the_place() -> None:
    admission = Admission(places=1, at_once=1, waiting=1)
    first = await entered(admission, "a")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(admission.enter, "a")
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
        first.leave()
    second = await entered(admission, "a")
    second.leave()


async def test_a_host_has_half_of_the_places_and_others_the_rest() -> None:
    admission = Admission(places=4, at_once=4, waiting=4)
    of_one = [await entered(admission, "a") for _ in range(2)]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(entered, admission, "a")
        await wait_all_tasks_blocked()
        # whoever waits, others need not
        of_others = [await entered(admission, host) for host in ("b", "c")]
        for each in of_others:
            each.leave()
        await wait_all_tasks_blocked()
        assert nursery.child_tasks
        of_one[0].leave()
    of_one[1].leave()


async def test_hosts_take_turns() -> None:
    admission = Admission(places=2, at_once=1, waiting=9)
    order: list[str] = []

    async def ask(host: str) -> None:
        admitted = await entered(admission, host)
        order.append(host)
        admitted.leave()

    first = await entered(admission, "x")
    async with trio.open_nursery() as nursery:
        for host in ("a", "a", "a", "b", "b", "c"):
            nursery.start_soon(ask, host)
            await wait_all_tasks_blocked()
        first.leave()
    assert order == ["a", "b", "c", "a", "b", "a"]


async def test_where_too_many_wait_the_host_with_most_loses_its_last() -> None:
    admission = Admission(places=1, at_once=1, waiting=3)
    ended: list[tuple[str, bool]] = []

    async def ask(name: str) -> None:
        admitted = await admission.enter(name[0])
        ended.append((name, admitted is not None))
        if admitted is not None:
            admitted.leave()

    first = await entered(admission, "x")
    async with trio.open_nursery() as nursery:
        for name in ("a1", "a2", "a3", "b1", "b2"):
            nursery.start_soon(ask, name)
            await wait_all_tasks_blocked()
        # no host has more than one more than the other then
        assert ended == [("a3", False), ("b2", False)]
        first.leave()
    assert ended[2:] == [("a1", True), ("b1", True), ("a2", True)]
