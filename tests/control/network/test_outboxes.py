"""Routing messages to a neighbour are sent in order, a few in each turn where many wait."""

from __future__ import annotations

from control.network.test_adjacency import adjacency, line

from router.control.network.messages import MobileUpdate
from router.control.network.outboxes import MANY, STUCK_S
from router.simulation.network import Network


def told(network: Network, count: int) -> None:
    """Have a say so many large messages to b in one turn."""
    a = network.hosts["a"]
    part = adjacency(a)
    (peering,) = part.peerings.values()

    def say() -> None:
        for number in range(count):
            keys = tuple(f"M0{number}/{each}" for each in range(2000))
            instance, terms = part.membership.instance, b"\x01" * len(keys)
            update = MobileUpdate("a", instance, number, number + 1, 0, keys, terms)
            part.outboxes.say(peering, update, part.now)

    a.turn(say)


def test_much_that_waits_leaves_bit_by_bit() -> None:
    network = line("a", "b")
    network.run(2)
    part = adjacency(network.hosts["a"])
    before = part.outboxes.messages["out", "MAU"]
    told(network, 3 * MANY)
    assert part.outboxes.messages["out", "MAU"] - before <= 1
    assert bool(part.is_behind) is True
    network.run(0.2)
    assert part.outboxes.messages["out", "MAU"] - before == 3 * MANY
    assert bool(part.is_behind) is False
    assert part.outboxes.stuck(part.now + 2 * STUCK_S) == []


def test_few_messages_are_encoded_in_a_turn_however_few_wait() -> None:
    network = line("a", "b")
    network.run(2)
    part = adjacency(network.hosts["a"])
    before = part.outboxes.messages["out", "MAU"]
    # so few that they need not wait for a turn of their own, and larger than a turn encodes
    told(network, MANY - 1)
    assert part.outboxes.messages["out", "MAU"] - before <= 1
    network.run(0.2)
    assert part.outboxes.messages["out", "MAU"] - before == MANY - 1


def test_who_takes_nothing_is_stuck() -> None:
    network = line("a", "b")
    network.run(2)
    part = adjacency(network.hosts["a"])
    network.hosts["b"].is_paused = True
    told(network, 100)
    network.run(0.5)
    assert part.outboxes.stuck(part.now + 1) == []
    (peering,) = part.peerings.values()
    assert part.outboxes.stuck(part.now + STUCK_S + 1) == [peering]
    part.outboxes.extend_deadlines(part.now + STUCK_S)
    assert part.outboxes.stuck(part.now + STUCK_S + 1) == []
