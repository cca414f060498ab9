"""Expected paths and interest are computed from the network and compared with the routers'."""

from __future__ import annotations

import attrs

from router.config.connectors import ConnectorSettings
from router.config.model import Configuration
from router.config.router_settings import RouterSettings
from router.core.routers.routing_state import Interest, Path
from router.simulation.host import SimulatedRouter
from router.simulation.network import Network
from router.simulation.truth import GroundTruth

INTERIOR = Configuration(router=RouterSettings(mode="interior"))
WANTED = Interest(0)


def line(*, costs: tuple[int, int] = (1, 2)) -> tuple[Network, GroundTruth]:
    """Three routers in a line that speak no protocol: what they know is told to them by hand."""
    network = Network()
    for name in "abc":
        # not joined as routers, so that nothing but the test writes what they know
        network.add(name, INTERIOR)
    for (one, other), cost in zip((("a", "b"), ("b", "c")), costs, strict=True):
        network.join(one, other, connector=ConnectorSettings(host=other, cost=cost))
    truth = GroundTruth(network, [("a", "b"), ("b", "c")])
    network.start()
    network.run(1)
    truth.network_changed()
    return network, truth


def know(host: SimulatedRouter, **paths: tuple[str, int]) -> None:
    """Tell a router its paths."""
    found = {name: Path(via, cost) for name, (via, cost) in paths.items()}
    host.turn(lambda: host.reach.set_paths({}, found, lambda _: None))


def know_all(network: Network) -> None:
    """Tell all three what is so."""
    know(network.hosts["a"], b=("b", 1), c=("b", 3))
    know(network.hosts["b"], a=("a", 1), c=("c", 2))
    know(network.hosts["c"], b=("b", 2), a=("b", 3))


def test_routers_that_know_all_ways_are_right_from_when_the_last_does() -> None:
    network, truth = line()
    assert truth.path_costs["a"] == {"b": 1, "c": 3}
    assert not truth.is_right()

    network.run(1)
    know_all(network)

    assert truth.is_right()
    assert truth.right_since == network.scheduler.now
    network.run(5)
    know(network.hosts["c"], b=("b", 2), a=("b", 4))
    assert truth.wrong_paths == {"c"}


def test_who_is_dead_asleep_or_cut_off_is_not_to_be_known() -> None:
    network, truth = line()
    know_all(network)
    network.cut("b", "c")
    truth.network_changed()
    assert truth.path_costs == {"a": {"b": 1}, "b": {"a": 1}, "c": {}}

    network.heal("b", "c")
    network.hosts["b"].pause()
    truth.network_changed()
    assert truth.path_costs == {"a": {}, "c": {}}

    network.hosts["b"].kill()
    network.hosts["c"].kill()
    truth.network_changed()
    assert truth.path_costs == {"a": {}}


def test_what_is_wanted_somewhere_is_to_be_known_everywhere_in_reach() -> None:
    network, truth = line()
    know_all(network)
    a, b, c = (network.hosts[name] for name in "abc")

    c.turn(lambda: c.reach.set_own_interest("M0q", WANTED))
    assert truth.wrong_keys == {"a": {"M0q"}, "b": {"M0q"}}
    b.turn(lambda: b.reach.set_interest("c", "M0q", WANTED))
    network.run(2)
    a.turn(lambda: a.reach.set_interest("c", "M0q", WANTED))
    assert truth.is_right()
    assert truth.right_since == network.scheduler.now

    a.turn(lambda: a.reach.set_interest("b", "M0q", WANTED))
    assert truth.wrong_keys == {"a": {"M0q"}}
    a.turn(lambda: a.reach.set_interest("b", "M0q", None))
    c.turn(lambda: c.reach.set_own_interest("M0q", None))
    assert set(truth.wrong_keys) == {"a", "b"}


def test_what_a_way_costs_is_followed_from_neighbour_to_neighbour() -> None:
    network, truth = line()
    know_all(network)
    assert truth.cost_taken("a", "c") == 3

    know(network.hosts["b"], a=("a", 1), c=("a", 2))
    assert truth.cost_taken("a", "c") is None
    know(network.hosts["b"], a=("a", 1))
    assert truth.cost_taken("a", "c") is None


def test_edge_routers_are_not_asked() -> None:
    network = Network()
    network.add("a", INTERIOR)
    edge = attrs.evolve(INTERIOR, router=RouterSettings(mode="edge"))
    network.add("e", edge)
    truth = GroundTruth(network, ())
    network.start()
    truth.network_changed()

    assert truth.path_costs == {"a": {}}
    assert truth.is_right()
