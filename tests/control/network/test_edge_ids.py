"""Two edges of one id at two interiors: which of them keeps it, and who hears of it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import attrs
import pytest

from router.control.network.edge_ids import AWAY_S
from router.core.model.address import BALANCED
from router.core.network.proxy_links import UplinkChanged
from router.core.routers.membership import RANDOM_BITS
from router.core.routers.names import edge_run_in, edge_run_key
from router.core.routers.news import DuplicateRouterId
from router.core.routers.routing_state import Interest
from router.engine.events import ConnectionClosed
from router.simulation.host import SimulatedRouter

from support.edges import World


class TwoEdges(World):
    """Two interiors, and an edge E at the first of them.

    Another edge of that id may come to the second: it is known here as F.
    """

    def __init__(self, first: str = "IJE") -> None:
        super().__init__()
        # what interiors have said of ids
        self.told: list[tuple[str, str, str]] = []
        # and at J how many times by then
        self.times: list[int] = []
        for name in "IJ":
            self.interior(name).on_start.append(self._listen)
        self.between("I", "J")
        self.edge("E", "I")
        other = self.edge("F", "J")
        router = attrs.evolve(other.configuration.router, id="E")
        other.configuration = attrs.evolve(other.configuration, router=router)
        for name in first:
            self.host(name).start()
        self.run(2)

    def _listen(self, host: SimulatedRouter) -> None:
        network = host.control.network
        assert network is not None

        def hear(news: Any) -> None:
            if isinstance(news, DuplicateRouterId):
                self.told.append((host.name, news.router, news.what))
                if host.name == "J":
                    self.times.append(news.times)

        network.watchers.append(hear)

    def conflicts(self, name: str) -> int:
        """How often an interior has seen two of an id."""
        network = self.host(name).control.network
        assert network is not None
        return network.conflicts

    def connected(self, name: str) -> list[str]:
        """Return the edges that use an interior."""
        return sorted(self.edges_of(name).active)

    def replies(self, edge: str) -> list[str]:
        """Send messages from J to an address at the edge, and return their counted outcomes."""
        self.receiver(edge, "_edge/E/reply")
        sender = self.sender("J", None, to="_edge/E/reply")
        self.run(1)
        self.offer(sender, 5)
        return [f"{count} {kind}" for kind, count in sender.count().items()]


EARLIER = "another edge router with the id E, which started earlier, is connected at router I"
LATER = "another edge router with this id, which started later, was refused at router J"


def test_the_second_one_is_refused_with_where_the_first_one_is() -> None:
    world = TwoEdges()
    assert world.host("J").reach.wanted.keys() == {"HE", f"IE/{instance(world, 'E')}"}
    heard: list[str] = []
    uses: list[UplinkChanged] = []

    def hear(_: Any, event: Any) -> None:
        if isinstance(event, UplinkChanged):
            uses.append(event)
        if isinstance(event, ConnectionClosed) and event.error is not None:
            heard.append(f"{event.error.condition} {event.error.description}")

    world.host("F").on_start.append(lambda host: host.hub.listeners.append(hear))
    world.host("F").start()
    world.run(5)
    assert world.connected("I") == ["E"]
    assert world.connected("J") == []
    # it tries again, now and then
    assert world.conflicts("J") > 1
    # and the other interior is told once
    assert Counter(world.told) == {
        ("J", "E", f"{EARLIER} (refused: F:5672)"): world.conflicts("J"),
        ("I", "E", LATER): world.conflicts("I"),
    }
    assert world.conflicts("I") == 1
    # one reason, however often
    assert world.times == [*range(1, world.conflicts("J") + 1)]
    # it was refused, and has never had an uplink
    assert world.edge_at("F").uplinks.losses == 0
    assert uses == []
    assert set(heard) == {f"trioute:duplicate-id {EARLIER}"}
    assert world.replies("E") == ["5 accepted"]
    # once the first one has gone the other one may have it
    world.host("E").kill()
    assert world.network.run_until(lambda: world.connected("J") == ["E"], 60)
    away = [key for key in world.host("J").reach.own_interests if key.startswith("J")]
    assert len(away) == 1
    world.run(AWAY_S + 1)
    assert world.host("J").reach.own_interests.keys() == {"HE", f"IE/{instance(world, 'F')}"}


def test_two_that_start_in_the_same_millisecond_are_two() -> None:
    world = TwoEdges("IJEF")
    world.run(10)
    later, earlier = sorted("EF", key=lambda name: instance(world, name), reverse=True)
    assert instance(world, later) >> RANDOM_BITS == instance(world, earlier) >> RANDOM_BITS
    interiors = {"E": "I", "F": "J"}
    assert world.connected(interiors[earlier]) == ["E"]
    assert world.connected(interiors[later]) == []
    assert world.conflicts(interiors[later]) > 0


def test_when_networks_come_together_the_one_that_started_first_stays() -> None:
    world = TwoEdges()
    world.network.cut("I", "J")
    world.run(10)
    world.host("F").start()
    world.run(3)
    assert (world.connected("I"), world.connected("J")) == (["E"], ["E"])
    assert world.told == []
    world.network.heal("I", "J")
    assert world.network.run_until(lambda: world.connected("J") == [], 60)
    world.run(0.2)
    # both interiors say so
    assert ("J", "E", EARLIER) in world.told
    assert ("I", "E", LATER) in world.told
    assert world.connected("I") == ["E"]
    assert world.replies("E") == ["5 accepted"]
    world.run(AWAY_S + 10)
    assert world.connected("J") == []
    # as long as it comes again the others are told, not each time
    assert world.conflicts("I") == 1


def test_one_that_started_first_and_comes_later_takes_its_id_back() -> None:
    world = TwoEdges()
    world.network.cut("E", "I")
    world.run(20)
    world.host("F").start()
    world.run(3)
    assert (world.connected("I"), world.connected("J")) == ([], ["E"])
    world.network.heal("E", "I")
    assert world.network.run_until(lambda: world.connected("I") == ["E"], 60)
    world.run(1)
    assert world.connected("J") == []


def test_one_edge_may_use_two_interiors() -> None:
    world = World()
    for name in "IJ":
        world.interior(name)
    world.between("I", "J")
    world.edge("E", "I", "J", active_uplinks=2)
    world.start(5)
    for name in "IJ":
        network = world.host(name).control.network
        assert network is not None
        assert network.conflicts == 0
        assert list(world.edges_of(name).active) == ["E"]
    world.host("E").kill()
    world.run(1)
    for name in "IJ":
        assert not world.host(name).reach.own_interests
    # it is another run by now, at once
    world.host("E").start()
    world.run(5)
    assert [list(world.edges_of(name).active) for name in "IJ"] == [["E"], ["E"]]


def test_keys_that_make_no_sense_are_passed_over() -> None:
    world = TwoEdges()
    reach = world.host("I").reach
    texts = ("", "E", "E/", "E/x", "/7", "E/-1", "E/²", f"E/{'9' * 30}", "X/7", "X/0")
    for key in (f"{letter}{text}" for letter in "IJ" for text in texts):
        reach.set_interest("J", key, Interest(BALANCED))
        reach.set_interest("J", key, None)
        reach.set_interest("J", key, None)
    assert world.told == []
    assert world.connected("I") == ["E"]


@pytest.mark.parametrize("edge", ["E", "with space", "é"])
def test_the_key_of_a_run(edge: str) -> None:
    assert edge_run_in(edge_run_key(edge, 2**63 - 1)) == (edge, 2**63 - 1)


def instance(world: World, name: str) -> int:
    """Return the instance number of a router's present run."""
    network = world.host(name).control.network
    assert network is not None
    return network.membership.instance
