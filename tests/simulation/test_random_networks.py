"""Random networks and random events: in the end each router knows all paths.

The ledger has no mistakes.
"""

from __future__ import annotations

from random import Random

import pytest

from router.simulation.loading import parse_topology
from router.simulation.running import Result, Simulation, simulate

EVENTS = """
[[event]]
at = {at}
action = "{action}"
seconds = {seconds}
"""
TRAFFIC = """
[[router]]
name = "e"
mode = "edge"
[[link]]
between = ["e", "r1"]
[[link]]
between = ["e", "r2"]
[[address]]
prefix = "near"
distribution = "closest"
[[address]]
prefix = "news"
distribution = "multicast"
[[receiver]]
count = 4
address = "news"
[[receiver]]
at = "e"
address = "orders"
[[sender]]
count = 2
address = "news"
rate = 2
[[sender]]
at = "e"
address = "orders"
rate = 3
[[receiver]]
count = 3
address = "orders"
[[receiver]]
count = 2
address = "near"
milliseconds = 30
[[receiver]]
count = 2
address = "slow"
milliseconds = 400
credit = 2
[[receiver]]
address = "bad"
outcome = "release"
[[sender]]
count = 2
address = "orders"
rate = 5
[[sender]]
count = 2
address = "near"
rate = 5
[[sender]]
count = 2
address = "slow"
rate = 5
[[sender]]
address = "orders"
anonymous = true
rate = 3
[[sender]]
address = "near"
presettled = true
rate = 3
[[sender]]
address = "bad"
rate = 2
"""
# How long a router or a wire that is silent goes unnoticed, and some.
NOTICED_S = 5
# When all are back: as long as a connector may wait before it tries again, and some.
BACK_S = 8


def random_network(seed: int, most: int, *, traffic: str = "") -> str:
    """Return a topology of up to `most` routers and some events, each undone in time."""
    dice = Random(seed)
    layout = dice.choice(["random", "random", "ring", "tree", "line", "star"])
    events = ""
    at = 1.0
    for _ in range(dice.randint(1, 3)):
        action = dice.choice(["kill", "stop", "pause", "cut", "reset", "restart"])
        seconds = dice.choice([0.3, NOTICED_S])
        events += EVENTS.format(at=at, action=action, seconds=seconds)
        at += seconds + dice.choice([0.5, BACK_S])
    return f"""
[simulation]
seed = {seed}
seconds = {at + BACK_S}
[[shape]]
layout = "{layout}"
routers = {dice.randint(2, most)}
degree = {dice.choice([2, 3, 4])}
mostCost = {dice.choice([1, 9])}
delayMilliseconds = {dice.choice([0, 1, 20])}
jitterMilliseconds = {dice.choice([0, 5])}
{traffic}
{events}
"""


def played(text: str) -> Result:
    """Simulate a topology and return the result, which must have no mistakes."""
    result = simulate(parse_topology(text, source="a test"))
    assert result.mistakes == (), text
    return result


@pytest.mark.parametrize("seed", range(6))
def test_routers_find_all_ways_whatever_happens(seed: int) -> None:
    result = played(random_network(seed, 12))

    assert result.phases[0].converged_s is not None
    assert result.is_converged


@pytest.mark.parametrize("seed", range(20, 24))
def test_what_is_accepted_arrives_and_arrives_once_whatever_happens(seed: int) -> None:
    result = played(random_network(seed, 8, traffic=TRAFFIC))

    assert result.is_converged
    assert result.outcomes["accepted"] > result.sent / 2
    assert result.unsettled == 0


def test_fifty_routers_find_all_ways_and_notice_within_a_second_who_is_dead() -> None:
    text = """
    [simulation]
    seconds = 6
    [[shape]]
    layout = "random"
    routers = 50
    [[event]]
    action = "kill"
    at = 1
    """
    result = played(text)

    start, _, kill, _ = result.phases
    assert start.converged_s is not None
    assert start.converged_s < 2
    assert kill.converged_s is not None
    assert kill.converged_s < 1
    # each says what is new to its neighbours, and not more than once over each link
    links = len(result.plan.links)
    assert start.control_messages < 4 * 50 * links


def test_what_is_cut_off_is_forgotten_and_found_again() -> None:
    text = """
    [simulation]
    seconds = 30
    [[shape]]
    layout = "ring"
    routers = 6
    [[event]]
    action = "partition"
    at = 1
    routers = ["r1", "r2", "r3"]
    seconds = 12
    """
    simulation = Simulation(parse_topology(text, source="a test"))
    result = simulation.run()

    _, _, parted, mended, _ = result.phases
    # as long as a neighbour may be silent, and some
    assert parted.converged_s is not None
    assert 2 < parted.converged_s < 5
    assert mended.converged_s is not None
    assert len(simulation.network.hosts["r1"].reach.paths) >= 5
