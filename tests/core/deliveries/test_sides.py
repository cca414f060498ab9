"""Which consumers have what comes from a side."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from router.core.deliveries.sides import (
    has_receiver,
    may_take,
    serves,
    serving,
    taken_by,
    takes_from_anywhere,
)
from router.core.model.address import BALANCED, CLOSEST, FIRST_EDGE, HERE, MESH, Address, Consumer
from router.engine.delivery import Delivery

from support.in_memory import Router

EDGE, OTHER_EDGE = FIRST_EDGE, FIRST_EDGE + 1


def links_of_sides(count: int) -> list[Any]:
    """Links that messages come by, each from a side of its own."""
    client = Router().client()
    for _ in range(count):
        client.sender("q")
    links: list[Any] = list(client.connection.local_sessions[0].local_links.values())
    for side, link in enumerate(links):
        link.side = side
    return links


def consumer(address: Address, side: int, cost: int = 0) -> Consumer:
    router = Router()
    router.client().receiver("q")
    found = router.table.in_use("q")
    assert found is not None
    made = Consumer(found.consumers[0].link, address)
    made.side = side
    made.cost = cost
    address.add_consumer(made)
    return made


@pytest.mark.parametrize(
    ("to", "side", "does"),
    [
        (HERE, HERE, True),
        (HERE, MESH, True),
        (HERE, EDGE, True),
        (MESH, HERE, True),
        (MESH, MESH, False),
        (MESH, EDGE, True),
        (EDGE, HERE, True),
        (EDGE, MESH, True),
        (EDGE, EDGE, False),
        (EDGE, OTHER_EDGE, True),
    ],
)
def test_nothing_goes_back_to_its_side(to: int, side: int, does: bool) -> None:
    address = Address("q", BALANCED)
    made = consumer(address, to)
    assert serves(made, side) is does
    assert has_receiver(address, side) is does
    assert list(serving(address, side)) == ([made] if does else [])


def test_with_closest_only_the_nearest_take_what_waits() -> None:
    address = Address("q", CLOSEST)
    edge, near, far = (
        consumer(address, EDGE, 1),
        consumer(address, MESH, 2),
        consumer(address, MESH, 5),
    )
    assert [may_take(each, HERE) for each in (edge, near, far)] == [True, False, False]
    assert [may_take(each, EDGE) for each in (edge, near, far)] == [False, True, False]
    assert [may_take(each, MESH) for each in (edge, near, far)] == [True, False, False]
    balanced = Address("q", BALANCED)
    assert may_take(consumer(balanced, MESH, 5), HERE)
    consumer(balanced, HERE)
    assert may_take(balanced.consumers[0], HERE)


@given(
    st.sampled_from([CLOSEST, BALANCED]),
    st.lists(st.tuples(st.integers(HERE, OTHER_EDGE), st.integers(0, 2)), min_size=1, max_size=5),
    st.sets(st.integers(HERE, OTHER_EDGE)),
)
def test_what_a_consumer_takes_is_found_without_a_look_at_all_for_each_side(
    treatment: int, consumers: list[tuple[int, int]], waiting: set[int]
) -> None:
    address = Address("q", treatment)
    made = [consumer(address, side, cost) for side, cost in consumers]
    for side, link in enumerate(links_of_sides(OTHER_EDGE + 1)):
        if side in waiting:
            delivery = Delivery.__new__(Delivery)
            delivery.incoming = link
            address.waiting.append(delivery)
    for each in made:
        assert taken_by(each) == {side for side in waiting if may_take(each, side)}
        if takes_from_anywhere(each):
            assert taken_by(each) == waiting
