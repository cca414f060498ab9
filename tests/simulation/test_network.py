"""Routers in memory: what is done to a network has the effects that it has on real ones."""

from __future__ import annotations

import pytest

from router.simulation.network import Network
from router.simulation.wires import Distance


def pair(seed: int = 0) -> Network:
    """Two routers, the first of which connects to the second."""
    network = Network(seed)
    network.add("a")
    network.add("b")
    network.join("a", "b")
    network.start()
    network.run(1)
    return network


def is_joined(network: Network) -> bool:
    """Whether the connection is there."""
    return len(network.live_connections()) == 1


def test_a_connector_connects_and_both_routers_know_whom_they_talk_to() -> None:
    network = pair()

    assert is_joined(network)
    ends = network.connections["a", "b"].ends
    assert ends is not None
    assert [end.connection.remote_open.container_id for end in ends] == ["b", "a"]
    assert [end.counters.opened for end in ends if end.counters is not None] == [1, 1]


def test_a_router_that_is_killed_is_connected_to_again_when_it_is_back() -> None:
    network = pair()
    old = network.hosts["b"].parts
    network.hosts["b"].kill()
    network.run(1)

    assert not is_joined(network)
    assert not network.hosts["a"].hub.pumps

    network.hosts["b"].start()
    assert network.run_until(lambda: is_joined(network), 10)
    assert network.hosts["b"].parts is not old
    assert network.hosts["b"].lives == 2


def test_the_one_that_dials_connects_again_after_its_own_restart() -> None:
    network = pair()

    network.restart("a")

    assert network.run_until(lambda: is_joined(network), 10)
    assert len(network.hosts["b"].hub.pumps) == 1


def test_a_router_that_stops_in_order_tells_its_peers() -> None:
    network = pair()

    network.hosts["b"].stop()
    network.run(2)

    assert not network.hosts["b"].is_alive
    assert not network.hosts["a"].hub.pumps


@pytest.mark.parametrize("one_way", [True, False])
def test_where_nothing_gets_through_the_connection_is_given_up_for_its_silence(
    one_way: bool,
) -> None:
    network = pair()

    network.cut("b", "a", one_way=one_way)
    network.run(8)
    assert network.hosts["a"].hub.pumps
    network.run(10)
    assert not network.hosts["a"].hub.pumps
    network.run(60)
    assert not is_joined(network)

    network.heal("a", "b")
    assert network.run_until(lambda: is_joined(network), 30)


def test_what_was_held_up_arrives_when_the_wire_is_healed_in_time() -> None:
    network = pair()
    network.cut("a", "b")
    network.run(10)
    network.heal("a", "b")
    network.run(10)

    assert is_joined(network)
    assert network.hosts["a"].hub.connection_counters[0].opened == 1


def test_a_connection_that_is_reset_is_made_again() -> None:
    network = pair()

    network.reset("a", "b")
    network.run(0.01)
    assert not network.hosts["a"].hub.pumps
    assert not network.hosts["b"].hub.pumps

    assert network.run_until(lambda: is_joined(network), 10)


def test_a_router_that_stands_still_reads_later_what_came_meanwhile() -> None:
    network = pair()
    host = network.hosts["b"]
    host.pause()
    network.run(5)
    assert network.live_connections() == []
    assert host.hub.turn.now < network.scheduler.now - 4

    host.resume()
    network.run(1)
    assert is_joined(network)
    assert network.hosts["a"].hub.connection_counters[0].opened == 1


def test_a_partition_parts_the_routers_from_each_other_and_can_be_mended() -> None:
    network = Network()
    for name in "abcd":
        network.add(name)
    for one, other in ("ab", "bc", "cd"):
        network.join(one, other, Distance(0.005, 0.002))
    network.start()
    network.run(1)

    network.partition({"a", "b"})
    assert [connection.is_clear for connection in network.connections.values()] == [
        True,
        False,
        True,
    ]
    network.partition({"a", "b"}, is_whole=True)
    assert len(network.live_connections()) == 3


def test_the_same_seed_gives_the_same_course_of_things() -> None:
    def course(seed: int) -> list[float]:
        network = pair(seed)
        network.hosts["b"].kill()
        network.run(7)
        network.hosts["b"].start()
        network.run_until(lambda: is_joined(network), 10)
        return [network.scheduler.now, network.scheduler.done]

    assert course(1) == course(1)
    assert course(1) != course(2)
