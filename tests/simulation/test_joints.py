"""Connectors of simulated routers knock at the pace of real ones."""

from __future__ import annotations

from router.simulation.joints import Distance
from router.simulation.network import Network


def test_who_finds_nobody_there_tries_again_at_growing_intervals() -> None:
    network = Network(3)
    network.add("a").start()
    network.add("b")
    joint = network.join("a", "b", Distance(0.01))
    network.restart("a")
    network.run(60)
    assert not joint.is_up()

    network.hosts["b"].start()
    assert network.run_until(joint.is_up, 5.1)


def test_a_connection_attempt_through_a_cut_wire_succeeds_when_it_is_healed_in_time() -> None:
    network = Network()
    network.add("a")
    network.add("b")
    joint = network.join("a", "b")
    joint.cut()
    network.start()
    network.run(2)
    joint.heal()

    # it knocks again one, three and seven seconds after the first time
    assert not network.run_until(joint.is_up, 0.9)
    assert network.run_until(joint.is_up, 0.2)


def test_an_attempt_is_given_up_after_a_while_and_another_is_made() -> None:
    network = Network()
    network.add("a")
    network.add("b")
    joint = network.join("a", "b")
    joint.cut()
    network.start()
    network.run(40)
    joint.heal()

    assert network.run_until(joint.is_up, 15)


def test_one_that_is_cut_one_way_is_not_up() -> None:
    network = Network()
    network.add("a")
    network.add("b")
    joint = network.join("a", "b")
    network.start()
    network.run(1)
    assert joint.is_up()
    joint.cut(towards_dialler=False)

    assert not joint.is_up()
    assert not joint.is_clear
    joint.heal()
    assert joint.is_up()
