"""Queues by side find the oldest delivery of a priority and lane, however many sides there are."""

from __future__ import annotations

import random

import pytest

from router.core.model.queues_by_side import Place, QueuesBySide, number_in, number_of
from router.engine.delivery import Delivery

from support.examples import seeds

MANY = 1000
# that of the ordinary priority and no lane
GROUP = 4


def delivery(arrived: float, lane: int = 0, priority: int = 4) -> Delivery:
    made = Delivery.__new__(Delivery)
    made.arrived, made.lane, made.priority = arrived, lane, priority
    return made


def enter(apart: QueuesBySide, made: Delivery, side: int) -> None:
    apart.append(number_of(made, side), made)


def take(apart: QueuesBySide, sides: set[int] | None = None, group: int = GROUP) -> Delivery | None:
    """Take the oldest of a group from some sides."""
    aside: list[Place] = []
    queue = apart.first(group, sides, aside)
    taken = None
    if queue is not None:
        taken = queue.popleft()
        apart.note_removed()
    apart.put_back(group, aside)
    return taken


def test_the_oldest_is_found_at_once() -> None:
    apart = QueuesBySide()
    deliveries = [delivery(float(number)) for number in range(10 * MANY)]
    for number, made in enumerate(deliveries):
        enter(apart, made, number % MANY)
    for made in deliveries:
        assert take(apart) is made
        assert apart.examined <= 3
    assert take(apart) is None


def test_what_is_from_another_side_is_left_where_it_is() -> None:
    apart = QueuesBySide()
    deliveries = [delivery(float(number)) for number in range(4)]
    for number, made in enumerate(deliveries):
        enter(apart, made, number)
    assert take(apart, {2, 3}) is deliveries[2]
    assert take(apart, {2}) is None
    assert [take(apart) for _ in range(3)] == [deliveries[0], deliveries[1], deliveries[3]]


def test_a_group_is_a_lane_and_a_priority() -> None:
    apart = QueuesBySide()
    slow, urgent = delivery(0.0, lane=3), delivery(1.0, lane=5, priority=9)
    enter(apart, slow, 2)
    enter(apart, urgent, 2)
    groups = [number_of(each, 0) for each in (slow, urgent)]
    assert apart.groups() == groups
    assert [apart.top(1 << lane) for lane in (3, 5, 4)] == [4, 9, -1]
    assert [take(apart, group=group) for group in groups] == [slow, urgent]
    assert apart.top(2**64 - 1) == -1


def test_few_queues_are_kept_when_nothing_waits() -> None:
    apart = QueuesBySide()
    for number in range(MANY):
        enter(apart, delivery(float(number)), number)
    for queue in list(apart.queues.values()):
        queue.clear()
        apart.note_removed()
    assert len(apart.queues) <= 16


@pytest.mark.parametrize("seed", seeds(50))
def test_it_is_as_if_each_queue_were_looked_at(seed: int) -> None:
    rng = random.Random(seed)
    apart = QueuesBySide()
    model: list[tuple[Delivery, int]] = []
    for number in range(500):
        if rng.randrange(2) or not model:
            made, side = delivery(float(number)), rng.randrange(6)
            enter(apart, made, side)
            model.append((made, side))
        elif rng.randrange(3):
            sides = rng.choice([None, set(rng.sample(range(6), rng.randrange(6)))])
            meant = [each for each in model if sides is None or each[1] in sides]
            found = take(apart, sides)
            assert found is (meant[0][0] if meant else None)
            model = [each for each in model if each[0] is not found]
        else:
            gone = model.pop(rng.randrange(len(model)))
            apart.queues[number_in(GROUP, gone[1])].remove(gone[0])
            apart.note_removed()
        assert apart.count == len(model)
