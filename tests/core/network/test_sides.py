"""Which consumers have what comes from a side."""

from __future__ import annotations

import pytest

from router.core.address import BALANCED, CLOSEST, FIRST_EDGE, HERE, MESH, Address, Consumer
from router.core.network.sides import has_receiver, may_take, serves, serving

from support.in_memory import Router

EDGE, OTHER_EDGE = FIRST_EDGE, FIRST_EDGE + 1


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
