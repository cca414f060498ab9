"""Neighbours compare what they know, and each learns what the other knew."""

from __future__ import annotations

from support.routing import Network


def test_two_halves_of_a_network_that_meet_again_tell_each_other_all() -> None:
    network = Network(4)
    for name in "abcdef":
        network.add(name).want(f"M0{name}")
    for one, other in ("ab", "bc", "de", "ef"):
        network.join(one, other)
    network.settle(5)
    bridge = network.join("c", "d")
    network.settle(5)
    bridge.lose()
    network.settle(5)
    network.routers["a"].want("M0new")
    network.routers["f"].want("M0f", interest=None)
    network.run(20)
    network.join("a", "f")
    assert network.settle(3) <= 1


def test_neighbours_that_agree_say_little() -> None:
    network = Network(5)
    for name in "abc":
        network.add(name).want(f"M0{name}")
    network.join("a", "b")
    network.join("b", "c")
    network.settle(5)
    network.run(20)
    network.sent.clear()
    network.run(90)
    assert set(network.sent) == {"HELLO", "RA", "LSU"}
    assert network.sent["RA"] <= 4 * 4
    assert network.sent["LSU"] <= 3 * 4 * 4
