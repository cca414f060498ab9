"""Events, samples and link totals of simulated routers, reproducible for the same seed."""

from __future__ import annotations

from router.plugin_events import ConnectionOpened, Event, LinkAttached, LinkDetached
from router.plugin_samples import SampleBatch
from router.simulation.network import Network
from router.simulation.observing import Observation
from router.simulation.topology import ReceiverEntry, SenderEntry
from router.simulation.traffic import Traffic

TYPES = (ConnectionOpened, LinkAttached, LinkDetached)
WALL_S = 1_700_000_000.0


class World:
    """One observed router with a sender and a receiver, of which ten seconds have passed."""

    def __init__(self) -> None:
        self.network = Network(seed=7)
        host = self.network.add("a")
        traffic = Traffic(
            self.network, ["a"], [ReceiverEntry(address="q")], [SenderEntry(address="q")]
        )
        self.heard: list[Event] = []
        self.seen: list[Observation] = []
        host.on_start.append(lambda _: self.watch())
        self.network.start()
        self.network.run(1)
        traffic.begin()
        self.network.run(10)
        traffic.end()
        self.network.run(1)
        self.sent = len(traffic.ledger.entries)

    def watch(self) -> None:
        """Observe a new life of the router."""
        network = self.network
        self.seen.append(
            Observation(
                network.hosts["a"],
                lambda: WALL_S + network.scheduler.now,
                network.chance("samples"),
                1.0,
                TYPES,
                self.heard.append,
            )
        )

    def samples(self) -> SampleBatch:
        """Take the samples of the router's first life."""
        return self.seen[0].take_samples()


def test_links_are_numbered_for_each_router_and_have_their_totals() -> None:
    world = World()
    totals = world.seen[0].links()

    assert sorted(each.link.number for each in totals) == [1, 2]
    assert [each.accepted for each in totals] == [world.sent, world.sent]
    assert {each.link.direction for each in totals} == {"in", "out"}


def test_events_are_told_when_they_happen_by_the_routers_wall_clock() -> None:
    world = World()
    opened = [each for each in world.heard if isinstance(each, ConnectionOpened)]
    attached = [each for each in world.heard if isinstance(each, LinkAttached)]

    assert len(opened) == 2
    assert all(WALL_S + 1000 <= each.time < WALL_S + 1001 for each in opened)
    assert sorted(each.link.number for each in attached) == [1, 2]


def test_each_delivery_is_sampled_and_the_same_again() -> None:
    one, other = World(), World()
    assert one.seen[0].waiting_samples == one.sent
    batch = one.samples()

    assert batch.count == one.sent > 90
    assert batch.wall_offset_ns == WALL_S * 1e9
    assert set(batch.links) == set(batch.columns["in_link"]) | set(batch.columns["out_link"])
    assert batch == other.samples()
    assert one.heard == other.heard
    assert one.samples().count == 0
    assert one.seen[0].lost_samples == 0


def test_each_life_is_observed_on_its_own() -> None:
    world = World()
    first = world.seen[0]
    world.network.hosts["a"].kill()
    assert first.is_over

    world.network.hosts["a"].start()
    world.network.run(5)
    assert first.is_over
    assert not world.seen[1].is_over
    assert len(world.seen[1].links()) == 2
