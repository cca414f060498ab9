"""Events happen at their time, to what they say or chance picks, and are undone."""

from __future__ import annotations

from typing import Any

from router.simulation.network import Network
from router.simulation.scheduled_events import EventSchedule
from router.simulation.topology import EventEntry


def three(seed: int = 0) -> Network:
    """Three routers in a line, started."""
    network = Network(seed)
    for name in "abc":
        network.add(name)
    network.join("a", "b")
    network.join("b", "c")
    network.start()
    network.run(1)
    return network


def happen(network: Network, **fields: Any) -> list[tuple[float, str]]:
    """Have an event happen, and whatever comes of it."""
    schedule = EventSchedule(network, (EventEntry(**fields),))
    return [(each.at, each.act()) for each in schedule.events]


def test_what_is_killed_is_started_again() -> None:
    network = three()

    told = happen(network, at=1, action="kill", routers=("a", "b"), seconds=3)

    assert told == [(1, "kill a b"), (4, "start a b")]
    assert [host.lives for host in network.hosts.values()] == [2, 2, 1]


def test_links_are_cut_one_way_or_both_healed_and_reset() -> None:
    network = three()
    connection = network.connections["a", "b"]

    happen(network, action="cut", link=("b", "a"), one_way=True)
    assert connection.is_cut == [False, True]
    happen(network, action="heal", link=("a", "b"))
    assert connection.is_clear
    happen(network, action="reset", link=("a", "b"))
    network.run(0.01)
    assert not connection.is_up()


def test_a_link_gets_another_cost() -> None:
    network = three()
    assert happen(network, action="cost", link=("b", "a"), cost=7) == [(0, "cost b-a")]
    assert network.connections["a", "b"].connector.cost == 7


def test_a_partition_is_mended() -> None:
    network = three()
    schedule = EventSchedule(
        network, (EventEntry(action="partition", routers=("a",), seconds=1, at=0),)
    )
    first, second = schedule.events

    assert first.act() == "partition a"
    assert not network.connections["a", "b"].is_clear
    assert second.act() == "mend a"
    assert network.connections["a", "b"].is_clear


def test_chance_picks_what_it_can_happen_to_and_the_same_for_the_same_seed() -> None:
    def course(seed: int) -> list[tuple[float, str]]:
        network = three(seed)
        return happen(network, action="kill", times=4, every=2)

    assert course(1) == course(1)
    told = [what for _, what in course(1)]
    assert sorted(told[:3]) == ["kill a", "kill b", "kill c"]
    # nobody is left
    assert told[3] == "kill nothing"


def test_what_stands_still_or_has_stopped_goes_on() -> None:
    network = three()

    first, _ = happen(network, action="pause", seconds=1)
    assert first[1].startswith("pause")
    assert all(host.runs for host in network.hosts.values())
    happen(network, action="stop", routers=("c",))
    network.run(2)
    assert not network.hosts["c"].is_alive
    assert happen(network, action="start") == [(0, "start c")]
    assert happen(network, action="resume") == [(0, "resume nothing")]
    assert happen(network, action="restart", routers=("a",)) == [(0, "restart a")]


def test_what_is_dead_cannot_stand_still() -> None:
    network = three()
    network.hosts["a"].kill()

    assert happen(network, action="pause", routers=("a",)) == [(0, "pause a")]
    assert not network.hosts["a"].is_paused
