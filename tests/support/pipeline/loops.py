"""Random networks in which costs are advised and applied again and again."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from random import Random
from typing import Final, TypeAlias

import attrs
import pyarrow as pa
from router_telemetry.schema import DATASETS
from router_telemetry.simulated import SimulatedRecords

from router.simulation.network import Network
from router.simulation.running import Simulation
from router.simulation.topology import LinkEntry, RouterEntry, SimulationSettings, Topology

from support.pipeline.clients import Taker, Talker
from support.pipeline.kept import KeptRows

Pair: TypeAlias = tuple[str, str]

TRAFFIC_S: Final = 3.0
ROUND_S: Final = 10.0
# The part of a round in which the new costs hold, and queues have become what they will be.
MEASURED_S: Final = 6.0


@attrs.frozen
class Stream:
    """Traffic that enters at one router and leaves at another."""

    talker: Talker
    taker: Taker


class Loop:
    """Network of 4 to 7 routers whose lines have random delays, bandwidths and costs."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(f"loop/{seed}")
        self.routers = [f"r{number}" for number in range(self.chance.randint(4, 7))]
        links = [self._link(pair) for pair in self._pairs()]
        topology = Topology(
            simulation=SimulationSettings(seed=seed),
            routers=tuple(RouterEntry(name=name) for name in self.routers),
            links=tuple(links),
        )
        self.network: Network = Simulation(topology).network
        self.kept = KeptRows()
        self.records = SimulatedRecords(self.network, self.kept.store_of, interval_s=5.0)
        self.streams = [self._stream(number) for number in range(self.chance.randint(3, 6))]

    def _pairs(self) -> list[Pair]:
        """Return a ring and a few chords, so that there are several paths."""
        names = self.routers
        ring = {tuple(sorted(pair)) for pair in zip(names, [*names[1:], names[0]], strict=True)}
        others = [pair for pair in combinations(names, 2) if pair not in ring]
        chords = self.chance.sample(others, min(len(others), self.chance.randint(1, 3)))
        return sorted([*((one, other) for one, other in ring), *chords])

    def _link(self, pair: Pair) -> LinkEntry:
        chance = self.chance
        return LinkEntry(
            between=pair,
            cost=chance.choice((1, 1, 2, 3, 10)),
            delay_milliseconds=chance.choice((1, 2, 5, 10, 40)),
            jitter_milliseconds=chance.choice((0, 0, 1)),
            bandwidth_megabits=chance.choice((None, 1.0, 0.4)),
        )

    def _stream(self, number: int) -> Stream:
        address, chance = f"q{number}", self.chance
        source, place = chance.sample(self.routers, 2)
        taker = Taker(self.network, f"taker{number}", place, address, 0.001, 100)
        rate = chance.uniform(10, 30)
        talker = Talker(self.network, f"talker{number}", source, address, rate, 0)
        talker.more_octets = chance.choice((100, 1000))
        return Stream(talker, taker)

    @property
    def costs(self) -> dict[Pair, int]:
        """Return the costs of all lines."""
        return {
            (min(pair), max(pair)): connection.connector.cost
            for pair, connection in self.network.connections.items()
        }

    def begin(self) -> None:
        """Let the network come to be, and traffic begin."""
        self.network.start()
        self.network.run(TRAFFIC_S)
        for stream in self.streams:
            stream.talker.begin()

    def run(self) -> float:
        """Run a round; return the mean time from sending to receiving in its last part, in ms."""
        self.network.run(ROUND_S - MEASURED_S)
        takers = [stream.taker for stream in self.streams]
        before = [(taker.received, taker.latency_s) for taker in takers]
        self.network.run(MEASURED_S)
        self.records.finish()
        received, latency_s = 0, 0.0
        for taker, (count, so_far_s) in zip(takers, before, strict=True):
            received += taker.received - count
            latency_s += taker.latency_s - so_far_s
        return 1000 * latency_s / max(1, received)

    def tables(self) -> dict[str, pa.Table]:
        """Return all rows so far, by dataset."""
        return {dataset.name: self.kept.table(dataset) for dataset in DATASETS}

    def apply(self, costs: Mapping[Pair, int]) -> None:
        """Set the costs of lines, while the network runs."""
        for (one, other), cost in costs.items():
            self.network.set_cost(one, other, cost)
