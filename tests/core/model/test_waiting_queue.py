"""The waiting queue gives deliveries by priority, and the oldest first within a priority."""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, strategies as st

from router.core.model.waiting_queue import WaitingQueue
from router.engine.delivery import Delivery

from support.in_memory import Router

ORDINARY = 4


def delivery(priority: int = ORDINARY) -> Delivery:
    made = Delivery.__new__(Delivery)
    made.priority = priority
    return made


def links_of_sides(count: int) -> list[Any]:
    """Links that messages come by, each from a side of its own: 0, which is here, and so on."""
    client = Router().client()
    links: list[Any] = []
    for side in range(count):
        client.sender("q")
        links.append(list(client.connection.local_sessions[0].local_links.values())[-1])
        links[-1].side = side
    return links


def filled(*priorities: int) -> tuple[WaitingQueue, list[Delivery]]:
    queue = WaitingQueue()
    deliveries = [delivery(each) for each in priorities]
    queue.extend(deliveries)
    return queue, deliveries


def take_out(queue: WaitingQueue, is_meant: Callable[[Any], bool]) -> list[Delivery]:
    """Take out all that `is_meant` is true of, in the order in which they would be taken."""
    found = [each for each in queue if is_meant(each)]
    for each in found:
        assert queue.remove(each)
    return found


def taken(queue: WaitingQueue) -> list[Delivery]:
    return [queue.popleft() for _ in range(queue.count)]


def test_nothing_waits_at_first() -> None:
    queue = WaitingQueue()
    assert (queue.count, len(queue), bool(queue), list(queue)) == (0, 0, False, [])
    with pytest.raises(IndexError):
        queue.popleft()


def test_the_ordinary_are_taken_in_their_order() -> None:
    queue, deliveries = filled(4, 4, 4)
    assert (queue.count, len(queue), bool(queue)) == (3, 3, True)
    assert taken(queue) == deliveries
    assert queue.count == 0


def test_the_highest_priority_is_taken_first_and_the_oldest_of_it() -> None:
    queue, deliveries = filled(4, 0, 9, 4, 9, 5)
    expected = [deliveries[at] for at in (2, 4, 5, 0, 3, 1)]
    assert list(queue) == expected
    assert taken(queue) == expected
    with pytest.raises(IndexError):
        queue.popleft()


def test_one_can_be_taken_out_wherever_it_stands() -> None:
    queue, deliveries = filled(4, 9, 4, 9, 1)
    assert queue.remove(delivery(9)) == 0
    for at, left in ((3, (1, 0, 2, 4)), (0, (1, 2, 4)), (1, (2, 4)), (4, (2,)), (2, ())):
        assert queue.remove(deliveries[at]) == 1
        assert list(queue) == [deliveries[other] for other in left]
        assert queue.count == len(left)
        assert queue.remove(deliveries[at]) == 0


@pytest.mark.parametrize("priorities", [[ORDINARY], [ORDINARY, 9], [0, 9]])
@pytest.mark.parametrize("seed", range(3))
def test_most_of_very_many_are_taken_out_one_by_one(priorities: list[int], seed: int) -> None:
    chance = random.Random(seed)
    queue, deliveries = filled(*(chance.choice(priorities) for _ in range(1000)))
    left = list(queue)
    for each in chance.sample(deliveries, 850):
        assert queue.remove(each) == (each in left)
        assert not queue.remove(each)
        left = [other for other in left if other is not each]
        assert queue.count == len(left)
        assert queue.top() == left[0].priority
        if chance.random() < 0.1:
            assert queue.popleft() is left.pop(0)
    assert list(queue) == left
    assert taken(queue) == left


def test_what_was_taken_out_is_let_go_of() -> None:
    queue, deliveries = filled(*[ORDINARY] * 1000)
    before = sys.getrefcount(delivery())
    kept = deliveries[:10]
    for each in deliveries[10:]:
        queue.remove(each)
    del deliveries[:10], each
    # the last few stay where they were
    assert sum(sys.getrefcount(deliveries[at]) > before + 1 for at in range(990)) <= 64
    assert taken(queue) == kept


def test_what_was_taken_out_may_come_again_behind_the_others() -> None:
    queue, deliveries = filled(*[ORDINARY] * 5)
    queue.remove(deliveries[2])
    queue.append(deliveries[2])
    expected = [deliveries[at] for at in (0, 1, 3, 4, 2)]
    assert list(queue) == expected
    assert queue.count == 5
    assert taken(queue) == expected


def test_one_that_waits_elsewhere_is_not_taken_out() -> None:
    queue, deliveries = filled(ORDINARY, ORDINARY)
    other = WaitingQueue()
    assert not other.remove(deliveries[0])
    queue.remove(deliveries[0])
    other.append(deliveries[0])
    assert not queue.remove(deliveries[0])
    assert other.remove(deliveries[0])
    queue.clear()
    assert not queue.remove(deliveries[1])


def test_many_can_be_taken_out_and_the_others_keep_their_order() -> None:
    queue, deliveries = filled(4, 9, 4, 9, 1)
    meant = [deliveries[at] for at in (4, 0, 1)]
    assert take_out(queue, lambda each: each in meant) == [deliveries[at] for at in (1, 0, 4)]
    assert list(queue) == [deliveries[at] for at in (3, 2)]
    assert queue.count == 2
    assert take_out(queue, lambda each: each in meant) == []
    assert take_out(queue, lambda _: True) == [deliveries[at] for at in (3, 2)]
    assert (queue.count, list(queue)) == (0, [])


def test_all_can_be_let_go_of() -> None:
    queue, _ = filled(4, 9, 0)
    queue.clear()
    assert (queue.count, list(queue)) == (0, [])
    queue.append(delivery(3))
    assert queue.count == 1


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(0, 9)),
        st.tuples(st.just("popleft"), st.just(0)),
        st.tuples(st.just("remove"), st.integers(0, 100)),
    ),
    max_size=60,
)


@given(OPERATIONS, st.integers(0, 2**32))
def test_it_is_a_list_sorted_by_priority(operations: list[tuple[str, int]], seed: int) -> None:
    queue = WaitingQueue()
    model: list[Any] = []
    chance = random.Random(seed)
    for operation, number in operations:
        match operation:
            case "append":
                # most are ordinary, and then there is but one queue
                made = delivery(chance.choice([ORDINARY, number]))
                queue.append(made)
                model.append(made)
                model.sort(key=lambda each: -each.priority)
            case "popleft" if model:
                assert queue.popleft() is model.pop(0)
            case "remove" if model:
                assert queue.remove(model.pop(number % len(model))) == 1
        assert list(queue) == model
        assert queue.count == len(model)


STEPS = st.lists(
    st.tuples(st.sampled_from(["append", "append", "take", "remove", "move", "take out"]),
              st.integers(0, 9), st.integers(0, 3))
)  # fmt: skip


@given(STEPS)
def test_how_many_wait_of_each_side_is_known(steps: list[tuple[str, int, int]]) -> None:
    links = links_of_sides(4)
    queue = WaitingQueue()
    for what, at, side in steps:
        there = list(queue)
        if what == "append":
            made = delivery(at)
            made.incoming = links[side]
            queue.append(made)
        elif what == "take" and there:
            assert queue.popleft() is there[0]
        elif what == "remove" and at < len(there):
            queue.remove(there[at])
        elif what == "move" and at < len(there):
            assert queue.move_to_link(there[at], links[side])
            there[at].incoming = links[side]
        elif what == "take out":
            # the lambda is called at once, and by nobody later
            take_out(queue, lambda each: each.incoming.side == side)  # noqa: B023
        assert queue.by_side() == Counter(each.incoming.side for each in queue)
        assert queue.count == len(list(queue))
        if at % 2:
            assert queue.senders() == Counter(each.incoming for each in queue)
    queue.clear()
    assert queue.senders() == {}
    assert queue.by_side() == {}


def test_how_urgent_what_waits_is() -> None:
    queue, _ = filled()
    assert queue.top() == -1
    for priority, top in ((4, 4), (2, 4), (9, 9)):
        queue.append(delivery(priority))
        assert queue.top() == top
    assert [queue.popleft().priority, queue.top()] == [9, 4]
    assert [queue.popleft().priority, queue.top()] == [4, 2]


def test_what_waits_elsewhere_does_not_move() -> None:
    router = Router()
    client = router.client()
    client.sender("q")
    client.sender("q")
    links: list[Any] = list(client.connection.local_sessions[0].local_links.values())
    links[1].side = 1
    queue, elsewhere = WaitingQueue(), WaitingQueue()
    deliveries = [delivery(), delivery()]
    for each, at in zip(deliveries, (queue, elsewhere), strict=True):
        each.incoming = links[0]
        at.append(each)
    assert not queue.move_to_link(deliveries[1], links[1])
    assert elsewhere.move_to_link(deliveries[1], links[1])
    deliveries[1].incoming = links[1]
    assert (queue.by_side(), elsewhere.by_side()) == ({0: 1}, {1: 1})
    assert elsewhere.popleft() is deliveries[1]
    assert elsewhere.by_side() == {}


@given(
    st.lists(
        st.tuples(
            st.integers(0, 9),
            st.integers(0, 2),
            st.integers(0, 2),
            st.integers(0, 3),
            st.booleans(),
        )
    ),
    st.lists(st.tuples(st.integers(0, 7), st.sets(st.integers(0, 2)), st.integers(0, 3))),
)
def test_the_next_for_somebody_is_the_oldest_of_the_most_urgent_that_is(
    incoming: list[tuple[int, int, int, int, bool]], asked: list[tuple[int, set[int], int]]
) -> None:
    links = links_of_sides(3)
    queue = WaitingQueue()
    model: list[Any] = []
    for number, (priority, lane, side, size, is_taken) in enumerate(incoming):
        made = delivery(priority)
        made.lane, made.incoming, made.size, made.arrived = lane, links[side], size, float(number)
        queue.append(made)
        model.append(made)
        if is_taken:
            expected = min(model, key=lambda each: (-each.priority, each.arrived))
            assert queue.top() == expected.priority
            assert queue.popleft() is expected
            model.remove(expected)
    for lanes, sides, limit in asked:
        meant = [
            each
            for each in model
            if lanes >> each.lane & 1 and each.incoming.side in sides and each.size <= limit
        ]
        found = min(meant, key=lambda each: (-each.priority, each.arrived), default=None)
        assert queue.take_matching(lanes, sides, limit) is found
        if found is not None:
            model.remove(found)
    expected = sorted(model, key=lambda each: (-each.priority, each.arrived))
    assert list(queue) == expected
    assert taken(queue) == expected


def test_who_takes_some_of_what_waits_looks_at_no_more_than_that() -> None:
    queue = WaitingQueue()
    for number in range(2000):
        made = delivery()
        made.lane = number % 2
        queue.append(made)
    for _ in range(1000):
        found = queue.take_matching(0b10, None, 2**64 - 1)
        assert found is not None
        assert found.lane == 1
        assert queue.examined <= 2
    assert queue.take_matching(0b10, None, 2**64 - 1) is None
    assert queue.count == 1000


def test_how_urgent_is_what_waits_for_some_lanes() -> None:
    queue = WaitingQueue()
    for priority, lane in ((4, 0), (8, 20), (9, 25), (5, 0)):
        made = delivery(priority)
        made.lane = lane
        queue.append(made)
    tops = [queue.top(takes) for takes in (1, 1 << 20, 1 | 1 << 20, 1 << 25, 1 << 3)]
    assert tops == [5, 8, 8, 9, -1]
    assert queue.top() == 9
