"""Control messages are queued and processed, and heartbeats are answered at once."""

from __future__ import annotations

from itertools import count

from control.network.test_adjacency import adjacency

from router.control.edge.messages import Beat, Watch, encode_message
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
