"""Whole simulations: what a file describes comes to be, and happens."""

from __future__ import annotations

from router.simulation.loading import parse_topology
from router.simulation.report import as_data
from router.simulation.running import Progress, Simulation, configuration_of, simulate
from router.simulation.topology import Topology

ONE = """
[simulation]
seconds = 5
[[router]]
name = "a"
[[address]]
prefix = "news"
distribution = "multicast"
[[receiver]]
at = "a"
address = "q"
[[receiver]]
at = "a"
address = "news.{n}"
[[receiver]]
at = "a"
address = "news.{n}"
[[sender]]
at = "a"
address = "q"
[[sender]]
at = "a"
address = "news.0"
presettled = true
[[event]]
at = 2
action = "kill"
routers = ["a"]
seconds = 1
"""


def topology(text: str) -> Topology:
    """Parse a topology."""
    return parse_topology(text, source="a test")


def test_one_router_alone_has_traffic_dies_and_comes_back() -> None:
    result = simulate(topology(ONE))

    assert [phase.what for phase in result.phases] == [
        "start",
        "traffic begins",
        "kill a",
        "start a",
        "traffic ends",
    ]
    assert result.mistakes == ()
    assert result.is_converged
    assert result.unsettled == 0
    assert sum(result.outcomes.values()) == result.sent
    # what was due while the router was dead is sent when it is back
    assert result.sent in range(98, 103)
    assert result.phases[2].longest_wait_s > 0.9
    delivered = sum(phase.delivered for phase in result.phases)
    # news reach two
    assert delivered > result.sent


def test_the_same_file_and_seed_give_the_same_to_the_last_digit() -> None:
    first = as_data(simulate(topology(ONE)))
    again = as_data(simulate(topology(ONE)))
    other = as_data(simulate(topology(ONE.replace("seconds = 5", "seconds = 5\nseed = 9"))))

    assert first == again
    assert first != other


def test_it_is_told_how_far_it_is() -> None:
    told: list[Progress] = []

    simulate(topology(ONE), told.append)

    assert told[-1].of_s in (5, 60)
    assert {"traffic begins", "kill a", "start a"} <= {each.what for each in told}


def test_routers_are_configured_as_the_file_says() -> None:
    described = topology(
        """
        [simulation]
        helloIntervalSeconds = 0.5
        [[router]]
        name = "e"
        mode = "edge"
        [[shape]]
        name = "r"
        routers = 2
        cost = 7
        [[link]]
        between = ["r1", "e"]
        """
    )
    simulation = Simulation(described)

    edge = configuration_of(described, simulation.plan, "e")
    second = configuration_of(described, simulation.plan, "r2")
    first = configuration_of(described, simulation.plan, "r1")
    assert edge.router.mode == "edge"
    assert [each.role for each in edge.connectors] == ["edge"]
    assert sorted(each.role for each in first.listeners) == ["edge", "inter-router"]
    assert [(each.role, each.cost, each.host) for each in second.connectors] == [
        ("inter-router", 7, "r1")
    ]
    assert second.router.hello_interval_seconds == 0.5
