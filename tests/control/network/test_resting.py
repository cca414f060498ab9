"""Neighbours whose control messages cause very much work get credit more slowly."""

from __future__ import annotations

from itertools import count

import attrs
import pytest
from control.network.test_adjacency import adjacency, line

from router.control.network.codec import CHUNK_BYTES
from router.control.network.peerings import Peering
from router.control.network.resting import MOST_REMEMBERED, RestingNeighbours
from router.core.routers.routing_state import Interest
from router.net.hub import TICK_S
from router.simulation.host import SimulatedRouter
from router.simulation.network import Network

# How long each turn with control messages is said to take.
TURN_S = 0.002
# Addresses of a, in a table of many parts, that take much longer than the burst.
KEYS = [f"M0{number:04}{'x' * 200}" for number in range(5000)]


def burdened(*, others_are_active: bool) -> tuple[Network, SimulatedRouter]:
    """Return a line of routers a, b and c, in which b takes long for each control message."""
    network = line("a", "b", "c")
    network.run(2)
    b = network.hosts["b"]
    resting, ticks = adjacency(b).incoming.resting, count()
    resting.cpu_clock = lambda: TURN_S * next(ticks)
    resting.others_are_active = lambda: others_are_active
    return network, b


def want_all(network: Network, name: str) -> None:
    """Set interest in very many addresses at a router."""
    host = network.hosts[name]

    def want() -> None:
        for key in KEYS:
            host.reach.set_own_interest(key, Interest(1))

    host.turn(want)


def burden(network: Network, b: SimulatedRouter) -> Peering:
    """Advertise so many addresses of a to b that a rests; return b's connection to a."""
    want_all(network, "a")
    assert network.run_until(lambda: peering_with(b, "a") in adjacency(b).incoming.resting, 60)
    return peering_with(b, "a")


def peering_with(host: SimulatedRouter, name: str) -> Peering:
    """Return the connection of a router to a neighbour."""
    return next(each for each in adjacency(host).peerings.values() if each.peer.router == name)


def test_after_its_burst_a_neighbour_rests_and_goes_on_later() -> None:
    network, b = burdened(others_are_active=True)
    peering = burden(network, b)
    assert len(b.reach.wanted) < len(KEYS)
    assert network.run_until(lambda: len(b.reach.wanted) == len(KEYS), 300)
    assert network.run_until(lambda: peering not in adjacency(b).incoming.resting, 60)


def test_a_whole_table_is_learned_with_many_rests() -> None:
    """The table is not requested again while parts of it wait."""
    network, b = burdened(others_are_active=True)
    network.cut("a", "b")
    network.run(10)
    want_all(network, "a")
    network.heal("a", "b")
    assert network.run_until(lambda: len(b.reach.wanted) == len(KEYS), 300)
    sent = adjacency(network.hosts["a"]).outboxes.messages["out", "MAT"]
    assert sent < 2 * len(KEYS) * len(KEYS[0]) / CHUNK_BYTES


def test_while_it_rests_nothing_more_of_it_is_processed() -> None:
    network, b = burdened(others_are_active=True)
    peering = burden(network, b)
    network.run(0.01)
    assert not peering.is_being_processed
    before = len(peering.inbox)
    assert before
    network.run(peering.pace.resumes_at() - b.hub.turn.now - 0.01)
    assert len(peering.inbox) == before
    assert network.run_until(lambda: len(peering.inbox) < before, 2 * TICK_S)


def test_a_flow_gets_it_no_credit() -> None:
    network, b = burdened(others_are_active=True)
    peering = burden(network, b)
    link = peering.control._receiver
    assert link is not None
    link.credit = 0
    b.turn(lambda: b.forwarder.flow_received(link))
    assert link.credit == 0
    assert network.run_until(lambda: link.credit > 0, 60)


def test_others_do_not_wait_for_it() -> None:
    network, b = burdened(others_are_active=True)
    burden(network, b)
    c = network.hosts["c"]
    c.turn(lambda: c.reach.set_own_interest("M0other", Interest(1)))
    assert network.run_until(lambda: "M0other" in b.reach.wanted, 1)


def test_nobody_rests_while_nobody_else_is_active() -> None:
    network, b = burdened(others_are_active=False)
    want_all(network, "a")
    assert network.run_until(lambda: len(b.reach.wanted) == len(KEYS), 10)
    assert peering_with(b, "a") not in adjacency(b).incoming.resting


def test_rest_ends_when_others_are_no_longer_active() -> None:
    network, b = burdened(others_are_active=True)
    peering, resting = burden(network, b), adjacency(b).incoming.resting
    peering.pace.spend(1, b.hub.turn.now)
    assert peering.pace.resumes_at() > b.hub.turn.now + 2 * TICK_S
    resting.others_are_active = lambda: False
    assert network.run_until(lambda: peering not in resting, 2 * TICK_S)


def test_who_has_left_no_longer_rests() -> None:
    network, b = burdened(others_are_active=True)
    peering = burden(network, b)
    network.reset("a", "b")
    assert network.run_until(lambda: peering not in adjacency(b).incoming.resting, 10)


def test_an_allowance_is_remembered_while_a_neighbour_is_away() -> None:
    network, b = burdened(others_are_active=True)
    before = burden(network, b)
    network.reset("a", "b")
    assert network.run_until(lambda: before.is_over, 10)
    network.run(1)
    after = peering_with(b, "a")
    assert after is not before
    assert after.pace is before.pace


def test_so_many_allowances_are_remembered() -> None:
    _, b = burdened(others_are_active=True)
    resting: RestingNeighbours = adjacency(b).incoming.resting
    peering = peering_with(b, "a")
    paces = []
    for number in range(MOST_REMEMBERED + 1):
        peering.peer = attrs.evolve(peering.peer, router=f"r{number}")
        resting.came(peering)
        paces.append(peering.pace)
    for number, is_known in ((1, True), (0, False)):
        peering.peer = attrs.evolve(peering.peer, router=f"r{number}")
        resting.came(peering)
        assert (peering.pace is paces[number]) is is_known


def test_who_rests_is_not_taken_for_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    network, b = burdened(others_are_active=True)
    peering = burden(network, b)
    # as if it rested for very long
    monkeypatch.setattr(peering.pace, "resumes_at", lambda: 1e9)
    network.run(10)
    assert peering in adjacency(b).incoming.resting
    assert peering_with(b, "a") is peering
