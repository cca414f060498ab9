"""Edges and interior routers under random events.

No accepted message is lost or comes twice. In the end everything flows again and nothing is
left over.
"""

from __future__ import annotations

from random import Random

import pytest

from support.edges import Offering, World

INTERIORS = ("I1", "I2")
EDGES = ("E1", "E2", "E3")
ROUTERS = (*INTERIORS, *EDGES)


def network(dice: Random) -> World:
    """Two interiors and three edges, each with one, two or none of their uplinks in use."""
    world = World(dice.randrange(2**32))
    for name in INTERIORS:
        world.interior(name)
    world.between("I1", "I2")
    for name in EDGES:
        order = dice.sample(INTERIORS, dice.choice((1, 2, 2)))
        world.edge(name, *order, active_uplinks=dice.choice((1, 1, 2)))
    world.start(5)
    return world


def happen(world: World, dice: Random) -> None:
    """Let something happen to a router or to a connection."""
    kind = dice.choice(("restart", "pause", "reset", "cut", "nothing"))
    name = dice.choice(ROUTERS)
    pair = dice.choice(list(world.network.connections))
    if kind == "restart":
        world.network.restart(name)
    elif kind == "pause":
        world.host(name).pause()
        world.run(dice.choice((0.5, 12)))
        world.host(name).resume()
    elif kind == "reset":
        world.network.reset(*pair)
    elif kind == "cut":
        world.network.cut(*pair)
        world.run(dice.choice((0.5, 12)))
        world.network.heal(*pair)
    world.run(dice.uniform(0, 3))


@pytest.mark.parametrize("seed", range(6))
def test_whatever_happens_nothing_accepted_is_lost(seed: int) -> None:
    dice = Random(seed)
    world = network(dice)
    flows: list[tuple[str, Offering]] = []
    for number in range(4):
        source, to = dice.choice(ROUTERS), dice.choice(ROUTERS)
        inbox = world.receiver(to, f"q{number}")
        address = None if dice.random() < 0.3 else f"q{number}"
        sender = world.sender(source, address, to=None if address else f"q{number}")
        flows.append((inbox, sender))
    world.run(3)
    for _ in range(8):
        for _, sender in flows:
            sender.to_send += dice.randrange(20)
            sender.send()
        happen(world, dice)
    world.run(60)
    for _, sender in flows:
        sender.to_send = 0
    world.run(20)
    for inbox, sender in flows:
        before = sender.count()["accepted"]
        world.offer(sender, 10, 5)
        assert not sender.under_way
        assert sender.count()["accepted"] == before + 10, (inbox, sender.count())
    world.check()
