"""Records of a simulated network, as its routers would write them, in virtual time.

The routers are told nothing of it: what a plugin would have seen of them is read at each interval
of the simulation's clock. A router that stands still writes nothing meanwhile, and of one that is
killed the flows of its last interval are missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypeAlias

from router import plugin
from router.simulation.agenda import START_S
from router.simulation.host import Host
from router.simulation.network import Network
from router.simulation.observing import Observation
from router_telemetry.deliveries import DeliveryRows
from router_telemetry.events import TYPES, row_of
from router_telemetry.files import Files, Writable
from router_telemetry.flows import FlowMeter
from router_telemetry.rows import US, Rows
from router_telemetry.schema import EVENTS, FLOWS

BEGINNING: Final = datetime(2026, 1, 1, tzinfo=UTC)
"""What time it is, by a clock that is right, when a simulated network comes to be."""

# A simulation waits for the disk, so that there is always room.
MOST_ROWS: Final = 10_000_000
# From so many rows on, one router's are written, long before there is no room for samples.
WRITTEN_ROWS: Final = 30_000

Store: TypeAlias = Callable[[Writable], object]
"""What takes the rows of one router, and of one run of it."""


class WallClock:
    """The wall clock of one router, in seconds since 1970; `ahead_s` is how wrong it is."""

    def __init__(self, clock: Callable[[], float], ahead_s: float) -> None:
        self.ahead_s = ahead_s
        self._clock = clock

    def __call__(self) -> float:
        """Return what time it is."""
        return BEGINNING.timestamp() + self._clock() - START_S + self.ahead_s


class _Life:
    """The records of one life of a router."""

    def __init__(self, host: Host, observation: Observation, wall: WallClock, store: Store) -> None:
        self.observation = observation
        self.epoch = epoch = round(wall() * US)
        self._wall = wall
        self._now = host.agenda.clock
        self._store = store
        self._flows = Rows(FLOWS, host.name, epoch, MOST_ROWS)
        self._events = Rows(EVENTS, host.name, epoch, MOST_ROWS)
        self._deliveries = DeliveryRows(host.name, epoch, MOST_ROWS)
        self._meter = FlowMeter(self._flows, wall(), self._now())

    def heard(self, event: plugin.Event) -> None:
        """Add an event, and the last flows of a link that is detached."""
        if isinstance(event, plugin.LinkDetached):
            self._meter.detached(event.totals, self._now())
        self._events.add(**row_of(event))

    def end_interval(self) -> None:
        """Read what the router has carried since the interval began."""
        self._meter.begin_reading()
        self._meter.end_interval(self.observation.links(), self._wall(), self._now())

    def take_samples(self) -> None:
        """Add what was sampled."""
        self._deliveries.add(self.observation.take_samples(), self.observation.lost_samples)

    def write_some(self) -> None:
        """Hand over all rows, if there are many."""
        waiting = len(self._flows) + len(self._events) + len(self._deliveries)
        if waiting + self.observation.waiting_samples >= WRITTEN_ROWS:
            self.write()

    def write(self) -> None:
        """Hand over all rows."""
        self.take_samples()
        kinds: tuple[Rows | DeliveryRows, ...] = (self._flows, self._deliveries, self._events)
        for rows in kinds:
            for batch in rows.take():
                self._store(batch)
                rows.taken -= len(batch)


class SimulatedRecords:
    """The records of all routers of a network that is not started yet.

    `store_of` is asked for a store by each router's name and epoch. Of what enters the network,
    `share` is sampled. `ahead_s` says by router how far its wall clock is ahead of the right time.
    """

    def __init__(
        self,
        network: Network,
        store_of: Callable[[str, int], Store],
        *,
        share: float = 1.0,
        interval_s: float = 1.0,
        ahead_s: Mapping[str, float] | None = None,
    ) -> None:
        self._network = network
        self._store_of = store_of
        self._share = share
        self._interval_s = interval_s
        skews = {} if ahead_s is None else ahead_s
        self._walls = {
            name: WallClock(network.agenda.clock, skews.get(name, 0.0)) for name in network.hosts
        }
        self._lives: dict[str, _Life] = {}
        for host in network.hosts.values():
            host.born.append(self._born)
        network.agenda.after(interval_s, self._tick)

    def set_clock(self, router: str, ahead_s: float) -> None:
        """Set a router's wall clock; what was sampled so far has the times of before."""
        life = self._lives.get(router)
        if life is not None and not life.observation.is_over:
            life.take_samples()
        self._walls[router].ahead_s = ahead_s

    def finish(self) -> None:
        """Write all that is there; the network goes no further."""
        self._end_intervals()
        for life in self._lives.values():
            life.write()

    def _born(self, host: Host) -> None:
        before = self._lives.get(host.name)
        if before is not None:
            before.write()
        wall = self._walls[host.name]
        chance = self._network.chance(f"records/{host.name}/{host.lives}")

        def hear(event: plugin.Event) -> None:
            life.heard(event)

        observation = Observation(host, wall, chance, self._share, TYPES, hear)
        store = self._store_of(host.name, round(wall() * US))
        self._lives[host.name] = life = _Life(host, observation, wall, store)

    def _tick(self) -> None:
        self._end_intervals()
        for life in self._lives.values():
            life.write_some()
        self._network.agenda.after(self._interval_s, self._tick)

    def _end_intervals(self) -> None:
        for life in self._lives.values():
            if not life.observation.is_over and life.observation.host.runs:
                life.end_interval()


def files_below(directory: Path) -> Callable[[str, int], Store]:
    """Return what gives each router files below a directory, as the plugin writes them."""
    return lambda router, epoch: Files(directory, router, epoch).write
