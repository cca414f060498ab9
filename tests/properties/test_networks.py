"""Random networks with edges, link routes, streams and all kinds of traffic.

Whatever happens to them, the ledger is exact, everything flows again, and in the end nothing is
left over.
"""

from __future__ import annotations

import pytest

from support.examples import seeds
from support.random_networks import RandomNetwork


# in these last ones credit that was lowered beside lanes that were not used did not come back
@pytest.mark.parametrize("seed", [*seeds(8), 40023])
def test_whatever_happens_the_ledger_is_exact_and_nothing_is_left(seed: int) -> None:
    world = RandomNetwork(seed)
    world.start()
    happened = []
    for _ in range(world.dice.randint(2, 8)):
        world.offer(20)
        world.run(world.dice.uniform(0, 1))
        happened.append(world.happen())
        world.run(world.dice.uniform(0, 4))
    world.come_to_rest()
    calm = world.send_in_calm(6)

    assert world.mistakes() == [], happened
    assert world.unserved(calm) == [], happened
    assert world.disorder(calm) == [], happened
    world.close()
    assert world.left_over() == [], happened


@pytest.mark.parametrize("seed", [*seeds(4), 41022])
def test_in_calm_all_is_accepted_and_in_order(seed: int) -> None:
    world = RandomNetwork(seed)
    world.start()
    calm = world.send_in_calm(30)

    assert world.mistakes() == []
    assert world.unserved(calm) == []
    assert world.disorder(calm) == []
    world.close()
    assert world.left_over() == []
