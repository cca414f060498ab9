"""Connectors of simulated routers knock at the pace of real ones."""

from __future__ import annotations

from router.simulation.network import Network
from router.simulation.running import Simulation
from router.simulation.topology import LinkEntry, RouterEntry, Topology
from router.simulation.wires import Distance


def test_who_finds_nobody_there_tries_again_at_growing_intervals() -> None:
    network = Network(3)
    network.add("a").start()
    network.add("b")
    connection = network.join("a", "b", Distance(0.01))
    network.restart("a")
    network.run(60)
    assert not connection.is_up()

    network.hosts["b"].start()
    assert network.run_until(connection.is_up, 5.1)


def test_a_connection_attempt_through_a_cut_wire_succeeds_when_it_is_healed_in_time() -> None:
    network = Network()
    network.add("a")
    network.add("b")
    connection = network.join("a", "b")
    connection.cut()
    network.start()
    network.run(2)
    connection.heal()

    # it knocks again one, three and seven seconds after the first time
    assert not network.run_until(connection.is_up, 0.9)
    assert network.run_until(connection.is_up, 0.2)


def test_an_attempt_is_given_up_after_a_while_and_another_is_made() -> None:
    network = Network()
    network.add("a")
    network.add("b")
    connection = network.join("a", "b")
    connection.cut()
    network.start()
    network.run(40)
    connection.heal()

    assert network.run_until(connection.is_up, 15)


def test_one_that_is_cut_one_way_is_not_up() -> None:
    network = Network()
    network.add("a")
    network.add("b")
    connection = network.join("a", "b")
    network.start()
    network.run(1)
    assert connection.is_up()
    connection.cut(towards_dialler=False)

    assert not connection.is_up()
    assert not connection.is_clear
    connection.heal()
    assert connection.is_up()


def test_a_joint_that_is_moved_takes_as_long_as_its_new_distance() -> None:
    network = Network()
    network.add("a")
    network.add("b")
    connection = network.join("a", "b", Distance(0.01))
    network.start()
    assert network.run_until(connection.is_up)
    assert connection.wire is not None

    connection.move(Distance(0.25, 0.1))
    assert [way.delay_s for way in connection.wire.ways] == [0.25, 0.25]
    assert [way.jitter_s for way in connection.wire.ways] == [0.1, 0.1]

    connection.reset()
    network.run(0.5)
    assert not connection.is_up()
    assert network.run_until(connection.is_up, 5)
    assert [way.delay_s for way in connection.wire.ways] == [0.25, 0.25]


def test_another_cost_counts_while_the_connection_stays() -> None:
    names = ("a", "b", "c")
    links = [LinkEntry(between=pair) for pair in (("a", "b"), ("b", "c"), ("a", "c"))]
    routers = tuple(RouterEntry(name=name) for name in names)
    network = Simulation(Topology(routers=routers, links=tuple(links))).network
    network.start()
    network.run(5)
    reach = network.hosts["a"].reach
    assert [path.via for path in (reach.path("b"),) if path] == ["b"]

    connection = network.connections["a", "b"]
    ends = connection.ends
    connection.set_cost(5)
    network.run(1)
    assert [(path.via, path.cost) for path in (reach.path("b"),) if path] == [("c", 2)]
    assert connection.ends is ends
    connection.set_cost(1)
    network.run(1)
    assert [(path.via, path.cost) for path in (reach.path("b"),) if path] == [("b", 1)]
    # and after a connection that was lost
    connection.set_cost(9)
    connection.reset()
    network.run(10)
    assert connection.is_up()
    assert [(path.via, path.cost) for path in (reach.path("b"),) if path] == [("c", 2)]
