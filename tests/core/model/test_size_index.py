"""The first delivery of a queue that is small enough is found, whatever is in front of it."""

from __future__ import annotations

import gc
import random
import sys

import pytest

from router.core.model.waiting_queue import WaitingQueue
from router.engine.delivery import Delivery

from support.examples import seeds

# As in the module: how much makes a block, and the looks after which a search is put off.
WIDTH = 32
MOST_EXAMINED = 2048
LARGE = 100
SMALL = 10
EVERY_LANE = 2**64 - 1
# So many that a search for the first time is not over at once.
MANY = 4 * MOST_EXAMINED


def delivery(size: int, priority: int = 4, lane: int = 0) -> Delivery:
    made = Delivery.__new__(Delivery)
    made.size, made.priority, made.lane = size, priority, lane
    return made


def filled(*sizes: int) -> tuple[WaitingQueue, list[Delivery]]:
    queue = WaitingQueue()
    deliveries = [delivery(size) for size in sizes]
    queue.extend(deliveries)
    return queue, deliveries


def take(queue: WaitingQueue, limit: int) -> Delivery | None:
    """Take the next that is small enough, however often the search is to be repeated."""
    found = queue.take_matching(EVERY_LANE, None, limit)
    while queue.is_unfinished:
        assert found is None
        found = queue.take_matching(EVERY_LANE, None, limit)
    return found


def taken(queue: WaitingQueue) -> list[Delivery]:
    return [queue.popleft() for _ in range(queue.count)]


@pytest.mark.parametrize("count", [0, 1, WIDTH - 1, WIDTH, WIDTH + 1, WIDTH**2, WIDTH**2 + 1])
def test_it_is_found_behind_however_many(count: int) -> None:
    queue, deliveries = filled(*[LARGE] * count, SMALL)
    assert take(queue, SMALL - 1) is None
    assert take(queue, SMALL) is deliveries[-1]
    assert take(queue, SMALL) is None
    assert taken(queue) == deliveries[:-1]


def test_no_search_takes_long() -> None:
    queue, deliveries = filled(*[LARGE] * MANY, SMALL)
    searches = 1
    while queue.take_matching(EVERY_LANE, None, SMALL) is not deliveries[-1]:
        assert queue.is_unfinished
        assert queue.examined <= 2 * MOST_EXAMINED
        searches += 1
    assert searches > 2
    assert not queue.is_unfinished


def test_the_next_is_found_at_once() -> None:
    queue, _ = filled(*[LARGE] * MANY)
    assert take(queue, SMALL) is None
    for _ in range(MANY):
        made = delivery(SMALL)
        queue.append(made)
        assert queue.take_matching(EVERY_LANE, None, SMALL) is made
        assert queue.examined <= 8 * WIDTH
    assert queue.count == MANY


def test_limits_share_what_is_known() -> None:
    queue, deliveries = filled(*range(2 * MANY, MANY, -1))
    assert take(queue, MANY) is None
    looks = 0
    for limit in range(2 * MANY - WIDTH, MANY, -WIDTH):
        assert queue.take_matching(EVERY_LANE, None, limit) is deliveries[2 * MANY - limit]
        assert not queue.is_unfinished
        looks += queue.examined
    assert looks <= 8 * MANY


def test_what_has_grown_too_large_is_passed_over() -> None:
    queue, deliveries = filled(*[LARGE] * MANY, SMALL, SMALL)
    assert take(queue, SMALL - 1) is None
    deliveries[-2].size = LARGE
    assert take(queue, SMALL) is deliveries[-1]
    assert take(queue, SMALL) is None


def test_what_comes_back_is_taken_once() -> None:
    queue, deliveries = filled(*[LARGE] * MANY, SMALL, SMALL)
    first = take(queue, SMALL)
    assert first is deliveries[-2]
    queue.append(first)
    assert {take(queue, SMALL), take(queue, SMALL)} == set(deliveries[-2:])
    assert take(queue, SMALL) is None
    assert taken(queue) == deliveries[:-2]


def test_what_comes_back_by_another_lane_is_searched_for_there() -> None:
    queue, deliveries = filled(*[LARGE] * MANY, SMALL)
    back = take(queue, SMALL)
    assert back is deliveries[-1]
    back.lane = 1
    queue.append(back)
    assert queue.take_matching(1, None, SMALL) is None
    while queue.is_unfinished:
        assert queue.take_matching(1, None, SMALL) is None
    assert queue.take_matching(2, None, SMALL) is back


def test_the_more_urgent_is_searched_for_first() -> None:
    queue, deliveries = filled(*[LARGE] * MANY, SMALL)
    urgent = [delivery(LARGE, 7) for _ in range(MANY)] + [delivery(SMALL, 7)]
    queue.extend(urgent)
    assert take(queue, SMALL) is urgent[-1]
    assert take(queue, SMALL) is deliveries[-1]
    assert taken(queue) == urgent[:-1] + deliveries[:-1]


def references(made: Delivery) -> int:
    gc.collect()
    return sys.getrefcount(made)


def test_what_has_left_is_not_kept() -> None:
    queue, _ = filled(*[LARGE] * MANY)
    before = references(queue.popleft())
    assert take(queue, SMALL) is None
    for _ in range(MANY // 2):
        queue.popleft()
    assert references(queue.popleft()) == before


def test_what_passes_leaves_nothing_behind() -> None:
    queue, _ = filled(*[LARGE] * 100)
    assert take(queue, SMALL) is None
    for number in range(20_000):
        queue.append(delivery(LARGE))
        queue.popleft()
        if number % 1000 == 0:
            assert take(queue, SMALL) is None
    made = delivery(SMALL)
    queue.append(made)
    assert take(queue, SMALL) is made
    assert queue.count == 100


@pytest.mark.parametrize("seed", seeds(20))
def test_it_is_as_if_all_were_looked_at(seed: int) -> None:
    rng = random.Random(seed)
    queue, model = filled(*(rng.randrange(50, 1000) for _ in range(3000)))
    for _ in range(1500):
        act = rng.randrange(8)
        if act < 2 or not model:
            made = delivery(rng.choice((rng.randrange(1000), LARGE)))
            queue.append(made)
            model.append(made)
        elif act == 2:
            assert queue.popleft() is model.pop(0)
        elif act == 3:
            removed = model.pop(rng.randrange(len(model)))
            assert queue.remove(removed)
        elif act == 4:
            rng.choice(model).size += rng.randrange(500)
        else:
            limit = rng.choice((20, 50, 60, 100, 2000, rng.randrange(1000)))
            found = next((each for each in model if each.size <= limit), None)
            assert take(queue, limit) is found
            if found is not None:
                model.remove(found)
        assert queue.count == len(model)
    assert list(queue) == model
    assert taken(queue) == model
    assert queue.count == 0


def test_a_queue_that_is_cleared_is_as_new() -> None:
    queue, _ = filled(*[LARGE] * MANY)
    assert take(queue, SMALL) is None
    queue.clear()
    made = delivery(SMALL)
    queue.append(made)
    assert take(queue, SMALL) is made
    assert take(queue, SMALL) is None
