"""The routing protocol, router by router, as a network of them sees it."""

from __future__ import annotations

import itertools

from router.control.network.changes import LinkFailed
from router.core.network.reach import Interest, Path

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
    protocol.look(network.now)
    # as if it had had no time to run; what came meanwhile is read after it has looked
    later = network.now + 10
    protocol.look(later)
    assert not any(isinstance(change, LinkFailed) for change in protocol.take(later))
    protocol.look(later + 0.9)
    protocol.look(later + 1.1)
    assert any(isinstance(change, LinkFailed) for change in protocol.take(later + 1.1))
