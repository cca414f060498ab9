"""Neighbours whose control messages cause very much work get credit more slowly."""

from __future__ import annotations

import attrs
import pytest
from control.network.test_adjacency import adjacency, line
from control.network.test_inboxes import flood, said_by

from router.control.network.peerings import Peering
from router.control.network.resting import BURST_S, MOST_REMEMBERED, RestingNeighbours
from router.core.routers.routing_state import Interest
from router.net.hub import TICK_S
from router.simulation.host import SimulatedRouter
from router.simulation.network import Network

# How long each turn with control messages is said to take.
TURN_S = BURST_S / 8


def burdened(*, others_are_active: bool) -> tuple[Network, SimulatedRouter]:
    """Return a line of routers a, b and c, in which b takes long for each control message."""
    network = line("a", "b", "c")
    network.run(2)
    b = network.hosts["b"]
    resting = adjacency(b).resting
    resting.clock = lambda: b.hub.turn.now + TURN_S
    resting.others_are_active = lambda: others_are_active
    return network, b


def peering_with(host: SimulatedRouter, name: str) -> Peering:
    """Return the connection of a router to a neighbour."""
    return next(each for each in adjacency(host).peerings.values() if each.peer.router == name)


def test_after_its_burst_a_neighbour_rests_and_goes_on_later() -> None:
    network, b = burdened(others_are_active=True)
    resting = adjacency(b).resting
    said_by(network, "a", *flood(network, "a", 40))
    assert network.run_until(lambda: peering_with(b, "a") in resting, 60)
    # it needs many rests
    assert len(b.reach.wanted) < 40_000
    assert network.run_until(lambda: len(b.reach.wanted) == 40_000, 3600)
    assert network.run_until(lambda: peering_with(b, "a") not in resting, 60)


def test_others_do_not_wait_for_it() -> None:
    network, b = burdened(others_are_active=True)
    said_by(network, "a", *flood(network, "a", 40))
    assert network.run_until(lambda: peering_with(b, "a") in adjacency(b).resting, 60)
    c = network.hosts["c"]
    c.turn(lambda: c.reach.set_own_interest("M0other", Interest(1)))
    assert network.run_until(lambda: "M0other" in b.reach.wanted, 1)


def test_nobody_rests_while_nobody_else_is_active() -> None:
    network, b = burdened(others_are_active=False)
    resting = adjacency(b).resting
    said_by(network, "a", *flood(network, "a", 40))
    assert network.run_until(lambda: len(b.reach.wanted) == 40_000, 2)
    assert peering_with(b, "a") not in resting


def test_rest_ends_when_others_are_no_longer_active() -> None:
    network, b = burdened(others_are_active=True)
    resting = adjacency(b).resting
    said_by(network, "a", *flood(network, "a", 40))
    assert network.run_until(lambda: peering_with(b, "a") in resting, 60)
    network.run(0.1)
    assert peering_with(b, "a").pace.resumes_at() > b.hub.turn.now + 2 * TICK_S
    resting.others_are_active = lambda: False
    assert network.run_until(lambda: peering_with(b, "a") not in resting, 2 * TICK_S)


def test_who_has_left_no_longer_rests() -> None:
    network, b = burdened(others_are_active=True)
    resting = adjacency(b).resting
    said_by(network, "a", *flood(network, "a", 40))
    peering = peering_with(b, "a")
    assert network.run_until(lambda: peering in resting, 60)
    network.cut("a", "b")
    assert network.run_until(lambda: peering not in resting, 10)


def test_an_allowance_is_remembered_while_a_neighbour_is_away() -> None:
    network, b = burdened(others_are_active=True)
    said_by(network, "a", *flood(network, "a", 40))
    before = peering_with(b, "a")
    assert network.run_until(lambda: before in adjacency(b).resting, 60)
    network.cut("a", "b")
    network.run(10)
    network.heal("a", "b")
    network.run(10)
    after = peering_with(b, "a")
    assert after is not before
    assert after.pace is before.pace


def test_so_many_allowances_are_remembered() -> None:
    _, b = burdened(others_are_active=True)
    resting: RestingNeighbours = adjacency(b).resting
    peering = peering_with(b, "a")
    first = peering.pace
    for number in range(MOST_REMEMBERED + 1):
        peering.peer = attrs.evolve(peering.peer, router=f"r{number}")
        resting.went(peering)
    for number, is_known in ((0, False), (1, True)):
        peering.peer = attrs.evolve(peering.peer, router=f"r{number}")
        peering.pace = first
        resting.came(peering)
        assert (peering.pace is first) is is_known


def test_who_rests_is_not_taken_for_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    network, b = burdened(others_are_active=True)
    said_by(network, "a", *flood(network, "a", 40))
    peering = peering_with(b, "a")
    assert network.run_until(lambda: peering in adjacency(b).resting, 60)
    # as if it rested for very long
    monkeypatch.setattr(peering.pace, "resumes_at", lambda: 1e9)
    network.run(10)
    assert peering in adjacency(b).resting
    assert peering_with(b, "a") is peering
