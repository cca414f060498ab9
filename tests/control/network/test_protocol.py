"""The routing protocol, router by router, as a network of them sees it."""

from __future__ import annotations

import itertools
from typing import Any

import attrs
import pytest

from router.control.network.changes import LinkFailed
from router.core.routers.routing_state import Interest, Path

from support.routing import Network


def line(network: Network, *names: str) -> None:
    """Routers in a line."""
    for name in names:
        network.add(name)
    for one, other in itertools.pairwise(names):
        network.join(one, other)


def test_two_routers_find_each_other_and_what_is_wanted() -> None:
    network = Network()
    line(network, "A", "B")
    network.routers["A"].want("M0orders")
    network.settle(2)
    b = network.routers["B"]
    assert b.reach.paths == {"A": Path("A", 1)}
    assert b.reach.wanted == {"M0orders": {"A": Interest(1)}}
    network.run(1)
    assert b.protocol.is_in_sync
    network.routers["A"].want("M0orders", interest=None)
    network.settle(1)
    assert b.reach.wanted == {}


def test_what_a_dead_router_wants_is_withdrawn_as_soon_as_its_last_link_is_down() -> None:
    network = Network()
    line(network, "A", "B", "C", "D")
    network.routers["D"].want("M0orders", "M0other")
    network.settle(3)
    network.kill("D")
    assert network.settle(1) <= 0.1
    assert network.routers["A"].reach.wanted == {}


def test_a_restarted_router_is_known_anew() -> None:
    network = Network()
    line(network, "A", "B", "C")
    network.routers["B"].want("M0old")
    network.routers["C"].want("M0kept")
    network.settle(3)
    network.restart("B").want("M0new")
    network.settle(3)
    assert sorted(network.routers["A"].reach.wanted) == ["M0kept", "M0new"]


def test_who_was_not_awake_does_not_take_others_for_silent() -> None:
    network = Network()
    line(network, "A", "B")
    network.settle(2)
    protocol = network.routers["A"].protocol
    protocol.tick(network.now)
    # as if it had had no time to run; what came meanwhile is read after it has looked
    later = network.now + 10
    protocol.tick(later)
    assert not any(isinstance(change, LinkFailed) for change in protocol.take(later))
    protocol.tick(later + 0.9)
    protocol.tick(later + 1.1)
    assert any(isinstance(change, LinkFailed) for change in protocol.take(later + 1.1))


def set_timing(network: Network, name: str, **times: Any) -> None:
    """Give a running router other times."""
    router = network.routers[name]
    timing = attrs.evolve(router.protocol.timing, **times)
    router.protocol.set_timing(timing, network.now)
    router.act()


def test_times_change_while_it_runs_and_nobody_is_lost() -> None:
    network = Network()
    line(network, "A", "B", "C")
    network.settle(3)
    network.run(10)
    # more seldom: those who hear it first, then those who say it; and often again, the other way
    for name in "ABC":
        set_timing(network, name, hello_max_age_s=30, ra_interval_s=300)
    for name in "ABC":
        set_timing(network, name, hello_interval_s=10)
    network.run(60)
    network.sent.clear()
    network.run(100)
    # a link state each 30 seconds, and nothing else
    assert network.sent["HELLO"] == pytest.approx(40, abs=4)
    assert network.sent["RA"] <= 4
    for name in "CBA":
        set_timing(network, name, hello_max_age_s=3, hello_interval_s=1, ra_interval_s=4)
    network.sent.clear()
    network.run(20)
    assert network.sent["HELLO"] == pytest.approx(80, abs=8)
    assert network.sent["RA"] >= 4 * 4
    assert network.failures == []


def test_a_shorter_age_finds_a_neighbour_silent_when_it_has_had_its_time() -> None:
    network = Network()
    line(network, "A", "B")
    for name in "AB":
        set_timing(network, name, hello_max_age_s=60)
    network.run(5)
    wire = next(iter(network.wires.values()))
    wire.is_frozen = True
    network.run(20)
    assert network.failures == []
    set_timing(network, "A", hello_max_age_s=3)
    network.run(2.9)
    assert network.failures == []
    network.run(1)
    assert [name for _, name, _ in network.failures] == ["A"]


def test_a_cost_that_changes_counts_for_all_while_the_connection_stays() -> None:
    network = Network(1)
    for name in "abc":
        network.add(name)
    wire = network.join("a", "b", 2)
    network.join("b", "c", 3)
    network.settle(5)
    costs = {"raised": (9, 12), "lowered": (1, 4)}
    for near, far in costs.values():
        # one end alone: the other one hears of it
        router = network.routers["a"]
        router.protocol.links.set_cost(wire.number, near, network.now)
        router.act()
        other = network.routers["b"]
        other.protocol.links.set_cost(wire.number, 1, network.now)
        other.act()
        wire.cost = near
        network.settle(5)
        assert network.routers["a"].protocol.paths["c"].cost == far
        assert network.routers["b"].protocol.paths["a"].cost == near
        assert network.routers["c"].protocol.paths["a"].cost == far
    assert wire.is_up
    assert network.failures == []
