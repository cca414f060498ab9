"""Control messages are queued and processed, and heartbeats are answered at once."""

from __future__ import annotations

from itertools import count

import pytest
from control.network.test_adjacency import adjacency

from router.control.edge.messages import Beat, Watch, encode_message
from router.core.routers.routing_state import Interest
from router.simulation.host import SimulatedRouter

from support.edges import World

KEYS = tuple(f"M0q{number}" for number in range(200))


def interior_with_edge() -> tuple[World, SimulatedRouter]:
    """Return a network, and its interior, where clients are said to be active."""
    world = World()
    interior = world.interior("I")
    world.edge("E", "I")
    world.start()
    world.run(3)
    resting, ticks = adjacency(interior).incoming.resting, count()
    resting.cpu_clock = lambda: 0.0001 * next(ticks)
    resting.others_are_active = lambda: True
    return world, interior


def test_no_message_is_processed_in_the_turn_that_reads_it_while_others_are_active() -> None:
    world, interior = interior_with_edge()
    (edge,) = world.edges_of("I").by_connection.values()
    (peering,) = adjacency(interior).peerings.values()
    octets = encode_message(Watch(KEYS))
    known = len(edge.watcher.sent_states)
    interior.turn(lambda: adjacency(interior)._received(peering, octets))
    assert len(edge.watcher.sent_states) == known
    assert world.network.run_until(lambda: set(KEYS) <= set(edge.watcher.sent_states), 1)


def test_a_heartbeat_is_answered_before_all_that_waits() -> None:
    world, interior = interior_with_edge()
    (edge,) = world.edges_of("I").by_connection.values()
    (peering,) = adjacency(interior).peerings.values()

    def receive() -> None:
        for message in (Watch(KEYS), Beat(7, 5000)):
            adjacency(interior)._received(peering, encode_message(message))

    sent = peering.control.sent_messages
    interior.turn(receive)
    assert edge.max_age_s == 5
    assert peering.control.sent_messages == sent + 1
    assert not set(KEYS) <= set(edge.watcher.sent_states)


def test_a_message_is_processed_soon_even_if_its_turn_advertises_something() -> None:
    world, interior = interior_with_edge()
    (edge,) = world.edges_of("I").by_connection.values()
    (peering,) = adjacency(interior).peerings.values()

    def receive() -> None:
        adjacency(interior)._received(peering, encode_message(Watch(KEYS)))
        interior.reach.set_own_interest("M0own", Interest(1))

    interior.turn(receive)
    # long before the next check of timers
    assert world.network.run_until(lambda: set(KEYS) <= set(edge.watcher.sent_states), 0.01)


def test_an_edge_that_rests_does_not_take_the_interior_for_silent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, interior = interior_with_edge()
    (peering,) = adjacency(interior).peerings.values()
    monkeypatch.setattr(peering.pace, "resumes_at", lambda: 1e9)
    (connection,) = world.edges_of("I").by_connection
    octets = encode_message(Watch(KEYS))
    interior.turn(lambda: adjacency(interior)._received(peering, octets))
    assert world.network.run_until(lambda: peering in adjacency(interior).incoming.resting, 1)
    world.run(30)
    assert list(world.edges_of("I").by_connection) == [connection]


def test_a_defect_with_one_message_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    world, interior = interior_with_edge()
    edges = world.edges_of("I")
    (edge,) = edges.by_connection.values()
    (peering,) = adjacency(interior).peerings.values()

    def fail(*_: object) -> None:
        raise RuntimeError("bang")

    adjacency(interior).incoming.resting.others_are_active = lambda: False
    octets = encode_message(Watch(("M0broken",)))
    with monkeypatch.context() as broken:
        broken.setattr(edges.watching, "_add", fail)
        with pytest.raises(RuntimeError, match="bang"):
            interior.turn(lambda: adjacency(interior)._received(peering, octets))
    assert not peering.is_being_processed
    interior.turn(lambda: adjacency(interior)._received(peering, encode_message(Watch(KEYS))))
    assert world.network.run_until(lambda: set(KEYS) <= set(edge.watcher.sent_states), 1)
