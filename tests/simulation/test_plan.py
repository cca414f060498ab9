"""Shapes become routers and links."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from router.simulation.plan import expand, pairs_of
from router.simulation.topology import LinkEntry, RouterEntry, ShapeEntry, Topology


def pairs(layout: Any, routers: int, **others: Any) -> list[tuple[int, int]]:
    """Return the links of a shape."""
    return pairs_of(ShapeEntry(layout=layout, routers=routers, **others), Random(1))


@pytest.mark.parametrize(
    ("layout", "joined"),
    [
        ("line", [(1, 0), (2, 1), (3, 2)]),
        ("ring", [(1, 0), (2, 1), (3, 2), (0, 3)]),
        ("star", [(1, 0), (2, 0), (3, 0)]),
        ("tree", [(1, 0), (2, 0), (3, 1)]),
        ("mesh", [(1, 0), (2, 0), (2, 1), (3, 0), (3, 1), (3, 2)]),
    ],
)
def test_layouts(layout: str, joined: list[tuple[int, int]]) -> None:
    assert pairs(layout, 4) == joined


@pytest.mark.parametrize("layout", ["line", "ring", "star", "tree", "mesh", "random"])
@pytest.mark.parametrize("count", [1, 2])
def test_small_ones_are_joined_once(layout: str, count: int) -> None:
    assert len(pairs(layout, count)) == count - 1


@pytest.mark.parametrize("seed", range(10))
def test_chance_joins_all_of_them_and_each_pair_once(seed: int) -> None:
    shape = ShapeEntry(layout="random", routers=40, degree=3)
    joined = pairs_of(shape, Random(seed))
    reached = {0}
    for _ in range(40):
        reached |= {one for one, other in joined if other in reached}
        reached |= {other for one, other in joined if one in reached}

    assert len(reached) == 40
    assert len(joined) == len({frozenset(pair) for pair in joined}) == 60


def test_the_same_seed_draws_the_same() -> None:
    def drawn(seed: int) -> Any:
        shape = ShapeEntry(layout="random", routers=20, cost=1, most_cost=9)
        settings = Topology().simulation.__class__(seed=seed)
        return expand(Topology(simulation=settings, shapes=(shape,)))

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)
    assert {link.cost for link in drawn(1).links} <= set(range(1, 10))


def test_the_edge_router_of_a_link_is_the_one_that_dials() -> None:
    plan = expand(
        Topology(
            routers=(RouterEntry(name="e", mode="edge"), RouterEntry(name="i")),
            links=(LinkEntry(between=("i", "e"), delay_milliseconds=20),),
        )
    )

    assert [(link.dialler, link.acceptor, link.distance.delay_s) for link in plan.links] == [
        ("e", "i", 0.02)
    ]
