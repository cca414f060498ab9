"""Small simulated networks with traffic, in which a fault begins at a known time."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from random import Random
from typing import Final

import attrs
import pyarrow as pa
from router_telemetry.schema import DATASETS
from router_telemetry.simulated import BEGINNING, SimulatedRecords

from router.config.router_settings import RouterSettings
from router.simulation.network import Network
from router.simulation.running import Simulation
from router.simulation.topology import LinkEntry, RouterEntry, SimulationSettings, Topology

from support.pipeline.clients import Taker, Talker
from support.pipeline.kept import KeptRows

# In seconds since the start of the network; clients connect before the first of them.
TRAFFIC_S: Final = 4.0
BASELINE_S: Final = 5.0
PLANTED_S: Final = 17.0
END_S: Final = 29.0
BASELINE: Final = (
    BEGINNING + timedelta(seconds=BASELINE_S),
    BEGINNING + timedelta(seconds=PLANTED_S - 1),
)
PERIOD: Final = (BEGINNING + timedelta(seconds=PLANTED_S), BEGINNING + timedelta(seconds=END_S))

Tables = dict[str, pa.Table]


@attrs.define(eq=False)
class Stream:
    """Clients of one address."""

    talker: Talker
    takers: list[Taker]


class Scene:
    """Random network: a ring or a tree of 3 to 6 routers, with some streams.

    `is_ring` chooses the topology; without it, this is random too.
    """

    def __init__(self, seed: int, *, is_ring: bool | None = None) -> None:
        self.chance = Random(f"scene/{seed}")
        self.routers = [f"r{number}" for number in range(self.chance.randint(3, 6))]
        ring = self.chance.random() < 0.4 if is_ring is None else is_ring
        self.lines = self._ring() if ring else self._tree()
        links = [
            LinkEntry(
                between=line,
                delay_milliseconds=self.chance.uniform(1, 6),
                jitter_milliseconds=self.chance.uniform(0, 1),
            )
            for line in self.lines
        ]
        topology = Topology(
            simulation=SimulationSettings(seed=seed),
            routers=tuple(RouterEntry(name=name) for name in self.routers),
            links=tuple(links),
        )
        self.network: Network = Simulation(topology).network
        for host in self.network.hosts.values():
            settings = attrs.evolve(host.configuration.router, link_stealing="any")
            assert isinstance(settings, RouterSettings)
            host.configuration = attrs.evolve(host.configuration, router=settings)
        self._kept = KeptRows()
        self.records = SimulatedRecords(self.network, self._kept.store_of, interval_s=1.0)
        # lines that messages of some stream pass before the fault
        self.used_lines: list[tuple[str, str]] = []
        self.streams = [self._stream(number) for number in range(self.chance.randint(4, 7))]

    def _ring(self) -> list[tuple[str, str]]:
        return [*pairwise(self.routers), (self.routers[-1], self.routers[0])]

    def _tree(self) -> list[tuple[str, str]]:
        return [
            (name, self.chance.choice(self.routers[:number]))
            for number, name in enumerate(self.routers)
            if number
        ]

    def _stream(self, number: int) -> Stream:
        address, chance = f"q{number}", self.chance
        source, *places = chance.sample(self.routers, 3)
        if chance.random() < 0.2:
            places[0] = source
        takers = [
            Taker(
                self.network,
                f"taker{number}{'ab'[index]}",
                place,
                address,
                chance.uniform(0.002, 0.02),
                chance.randint(5, 40),
            )
            for index, place in enumerate(places[: 2 if chance.random() < 0.25 else 1])
        ]
        ttl_ms = chance.choice((0, 0, 5000))
        rate = chance.uniform(6, 12)
        talker = Talker(self.network, f"talker{number}", source, address, rate, ttl_ms)
        return Stream(talker, takers)

    def _used_lines(self) -> list[tuple[str, str]]:
        used = set()
        for stream in self.streams:
            for taker in stream.takers:
                used |= self._way(stream.talker.router, taker.router)
        return [line for line in self.lines if line in used]

    def _way(self, start: str, end: str) -> set[tuple[str, str]]:
        """Return the lines of the path between two routers."""
        found, here = set(), start
        while here != end:
            path = self.network.hosts[here].reach.path(end)
            if path is None:
                break
            found.add(next(line for line in self.lines if set(line) == {here, path.via}))
            here = path.via
        return found

    def begin(self) -> None:
        """Start the network, and run it until the end of its baseline."""
        self.network.start()
        self.network.run(TRAFFIC_S)
        for stream in self.streams:
            stream.talker.begin()
        self.network.run(PLANTED_S - TRAFFIC_S)
        self.used_lines = self._used_lines()

    def finish(self) -> Tables:
        """Run the network with its faults until the end; return all rows, by dataset."""
        self.network.run(END_S - PLANTED_S)
        self.records.finish()
        return {dataset.name: self._kept.table(dataset) for dataset in DATASETS}
