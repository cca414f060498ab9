"""Messages from neighbours are processed in limited batches, alternating between neighbours."""

from __future__ import annotations

from typing import Any

from control.network.test_adjacency import adjacency, line

from router.control.edge.messages import Routes, encode_message
from router.control.network import inboxes
from router.control.network.adjacency import Neighbours
from router.control.network.codec import encode_control
from router.control.network.messages import Aged, LinkState, LinkStateUpdate, MobileUpdate
from router.control.network.resting import MOST_AT_ONCE
from router.core.routers.routing_state import Interest
from router.simulation.host import SimulatedRouter
from router.simulation.network import Network

from support.edges import World


def turns_of(host: SimulatedRouter) -> list[int]:
    """How much is noted and heard of in each turn of a router from now on."""
    counts, before = [0], host.hub.finish_turn

    def finish_turn() -> None:
        before()
        counts.append(0)

    def hear(_: Any) -> None:
        counts[-1] += 1

    host.hub.finish_turn = finish_turn  # type: ignore[method-assign]
    host.reach.on_wanted.append(hear)
    return counts


def said_by(network: Network, name: str, *messages: Any) -> None:
    """Have a neighbour of b say something, all at once."""
    host = network.hosts[name]
    control: Neighbours = adjacency(host)
    (peering,) = control.peerings.values()

    def say() -> None:
        for message in messages:
            control.send(peering.connection, encode_control(message))

    host.turn(say)


def flood(network: Network, name: str, count: int) -> list[MobileUpdate]:
    """Messages that tell of many addresses."""
    membership = adjacency(network.hosts[name]).membership
    return [
        MobileUpdate(
            name,
            membership.instance,
            number,
            number + 1,
            0,
            tuple(f"M0{number}/{each}" for each in range(1000)),
            b"\x01" * 1000,
        )
        for number in range(count)
    ]


def test_much_that_is_said_at_once_takes_many_turns_and_nobody_else_waits_for_all_of_it() -> None:
    network = line("a", "b", "c")
    network.run(2)
    b, c = network.hosts["b"], network.hosts["c"]
    counts = turns_of(b)
    said_by(network, "a", *flood(network, "a", 40))
    network.run(0.001)
    c.turn(lambda: c.reach.set_own_interest("M0other", Interest(1)))
    assert network.run_until(lambda: "M0other" in b.reach.wanted, 1)
    assert len(b.reach.wanted) < 40_000
    network.run(3)
    assert len(b.reach.wanted) == 40_001
    assert max(counts) <= MOST_AT_ONCE
    assert not adjacency(b).is_behind


def test_who_says_more_than_is_acted_on_gets_no_credit_for_more() -> None:
    network = line("a", "b")
    network.run(2)
    b = network.hosts["b"]
    (peering,) = adjacency(b).peerings.values()
    most = 0

    def watch(_: Any) -> None:
        nonlocal most
        most = max(most, len(peering.inbox))

    b.reach.on_wanted.append(watch)
    said_by(network, "a", *flood(network, "a", 200))
    # before it turns out that their origin has told of none of them
    network.run(2)
    assert len(b.reach.wanted) == 200_000
    assert 0 < most <= inboxes.MOST_WAITING + 32
    assert not peering.is_over


def test_what_is_no_message_ends_the_connection_and_nothing_behind_it_is_read() -> None:
    network = line("a", "b", "c")
    network.run(2)
    b = network.hosts["b"]
    state = LinkState("x", 1, 1, {"a": 1})
    control = adjacency(network.hosts["a"])
    (peering,) = control.peerings.values()

    def say() -> None:
        control.send(peering.connection, b"\x00\x53\x77\x45")
        control.send(peering.connection, encode_control(LinkStateUpdate((Aged(state, 0),))))

    network.hosts["a"].turn(say)
    network.run(0.1)
    protocol = adjacency(b).protocol
    assert protocol is not None
    assert "x" not in protocol.states.records
    assert set(b.reach.paths) == {"c"}


def test_so_many_routers_are_kept_of_a_neighbour_and_the_others_stay() -> None:
    network = line("a", "b", "c", max_routers_per_neighbour=100)
    network.run(2)
    told: list[Any] = []
    b = network.hosts["b"]
    adjacency(b).watchers.append(told.append)
    names = [f"x{number}" for number in range(1000)]
    states = [Aged(LinkState(name, 1, 1, {"a": 1}), 0) for name in names]
    said_by(network, "a", LinkStateUpdate(tuple(states)))
    network.run(1)
    protocol = adjacency(b).protocol
    assert protocol is not None
    assert len(protocol.states.records) == 101
    assert protocol.states.known == {"a": 100, "c": 1}
    assert set(b.reach.paths) == {"a", "c"}
    assert [each.what for each in told if type(each).__name__ == "AnnouncementsIgnored"] == [
        "routers"
    ]
    # what was known goes on being told
    network.run(60)
    assert set(network.hosts["a"].reach.paths) == {"b", "c"}


def test_routes_of_an_edge_are_advertised_together_however_short_the_turns_are() -> None:
    world = World()
    interior, other = world.interior("I"), world.interior("J")
    world.between("J", "I")
    world.edge("E", "I")
    world.start()
    world.run(3)
    adjacency(interior).incoming.resting.others_are_active = lambda: True
    before = adjacency(interior).outboxes.messages["out", "MAU"]
    (peering,) = (each for each in adjacency(interior).peerings.values() if each.is_edge)
    keys = tuple(f"Cq{number}" for number in range(100))
    octets = encode_message(Routes(keys))
    interior.turn(lambda: adjacency(interior)._received(peering, octets))
    assert world.network.run_until(lambda: set(keys) <= set(other.reach.wanted), 10)
    assert adjacency(interior).outboxes.messages["out", "MAU"] - before == 1
