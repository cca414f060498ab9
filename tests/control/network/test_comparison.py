"""Neighbours compare what they know, and each learns what the other knew."""

from __future__ import annotations

from router.control.network.changes import Send
from router.control.network.digests import BUCKETS
from router.control.network.link_states import MOST_ROUTERS
from router.control.network.messages import Hello, Row, Rows, Summary
from router.control.network.protocol import Protocol
from router.control.network.timing import Timing

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


def test_who_makes_up_routers_is_not_asked_for_all_of_them() -> None:
    protocol = Protocol("a", 1, Timing(), 0.0)
    protocol.link_up(1, "b", 2, 1, 0.0)
    protocol.received(1, Hello("b", 2, 1), 0.0)
    protocol.take(0.0)
    for number in range(200):
        rows = tuple(Row(f"made up {number} {each}", 1, 1, 1, 1) for each in range(200))
        protocol.received(1, Rows(True, rows), 0.1)
        protocol.take(0.1)
    assert len(protocol.comparison.asked) == MOST_ROUTERS
    # and of those that are asked for only as long as may be
    protocol.take(5.0)
    assert protocol.comparison.asked == {}
    protocol.received(1, Rows(True, (Row("there", 1, 1, 1, 1),)), 5.0)
    assert list(protocol.comparison.asked) == ["there"]


def test_digests_that_come_at_once_are_answered_once() -> None:
    protocol = Protocol("a", 1, Timing(), 0.0)
    protocol.link_up(1, "b", 2, 1, 0.0)
    protocol.received(1, Hello("b", 2, 1), 0.0)
    protocol.take(0.0)
    full = False
    protocol.links.is_full = lambda _: full
    for turn in range(3):
        for number in range(100):
            protocol.received(1, Summary((number + 1,) * BUCKETS), 0.1)
        full = turn == 1
        told = [each for each in protocol.take(0.1) if isinstance(each, Send)]
        # nor while the neighbour takes nothing
        assert [type(each.message) for each in told] == ([] if full else [Rows])
