"""Records of a simulated network, as its routers would write them, in virtual time.

The routers run no plugin: a recorder outside the routers observes what a plugin would observe. A
router's flow records are made at the end of each interval of the simulation's clock. While the
router is paused, its interval does not end. If the router is killed, the flow records of its last
interval are missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypeAlias

from router import plugin
from router.simulation.host import SimulatedRouter
from router.simulation.network import Network
from router.simulation.observing import Observation
from router.simulation.virtual_clock import START_S
from router_telemetry.deliveries import DeliveryRows
from router_telemetry.events import TYPES, row_of
from router_telemetry.files import Files, Writable
from router_telemetry.flows import FlowMeter
from router_telemetry.rows import US, Rows
from router_telemetry.schema import EVENTS, FLOWS

BEGINNING: Final = datetime(2026, 1, 1, tzinfo=UTC)
"""Time at which a simulated network starts, on a correct clock."""

# A simulation waits for the disk, so this limit is never reached.
MOST_ROWS: Final = 10_000_000
# Number of waiting rows at which a router's rows are written, long before samples are lost.
WRITTEN_ROWS: Final = 30_000

Store: TypeAlias = Callable[[Writable], object]
"""Function that takes the rows of one run of a router."""


class WallClock:
    """Wall clock of a router, in seconds since 1970, `ahead_s` ahead of the correct time."""

    def __init__(self, clock: Callable[[], float], ahead_s: float) -> None:
        self.ahead_s = ahead_s
        self._clock = clock

    def __call__(self) -> float:
        """Return the wall-clock time."""
        return BEGINNING.timestamp() + self._clock() - START_S + self.ahead_s


class _Life:
    """Recorder of one run of a router."""

    def __init__(
        self, host: SimulatedRouter, observation: Observation, wall: WallClock, store: Store
    ) -> None:
        self.observation = observation
        self.epoch = epoch = round(wall() * US)
        self._wall = wall
        self._now = host.scheduler.clock
        self._store = store
        self._flows = Rows(FLOWS, host.name, epoch, MOST_ROWS)
        self._events = Rows(EVENTS, host.name, epoch, MOST_ROWS)
        self._deliveries = DeliveryRows(host.name, epoch, MOST_ROWS)
        self._meter = FlowMeter(self._flows, wall(), self._now())

    def heard(self, event: plugin.Event) -> None:
        """Add an event; if a link is detached, add its last flow record as well."""
        if isinstance(event, plugin.LinkDetached):
            self._meter.detached(event.totals, self._now())
        self._events.add(**row_of(event))

    def end_interval(self) -> None:
        """Add the flow records of the interval that ends now."""
        self._meter.begin_reading()
        self._meter.end_interval(self.observation.links(), self._wall(), self._now())

    def take_samples(self) -> None:
        """Add the finished samples that have not been taken yet."""
        self._deliveries.add(self.observation.take_samples(), self.observation.lost_samples)

    def write_some(self) -> None:
        """Pass all rows to the store, which writes them, if there are at least `WRITTEN_ROWS`."""
        waiting = len(self._flows) + len(self._events) + len(self._deliveries)
        if waiting + self.observation.waiting_samples >= WRITTEN_ROWS:
            self.write()

    def write(self) -> None:
        """Pass all rows to the store, which writes them."""
        self.take_samples()
        kinds: tuple[Rows | DeliveryRows, ...] = (self._flows, self._deliveries, self._events)
        for rows in kinds:
            for batch in rows.take():
                self._store(batch)
                rows.taken -= len(batch)


class SimulatedRecords:
    """Recorder of all routers of a network, which must be created before the network starts.

    `store_of` returns a store for a router's name and epoch. `share` is the share of deliveries
    sampled as they enter the network. `ahead_s` maps the name of a router to the seconds by which
    its wall clock is ahead of the correct time.
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
            name: WallClock(network.scheduler.clock, skews.get(name, 0.0)) for name in network.hosts
        }
        self._lives: dict[str, _Life] = {}
        for host in network.hosts.values():
            host.on_start.append(self._router_started)
        network.scheduler.after(interval_s, self._tick)

    def set_clock(self, router: str, ahead_s: float) -> None:
        """Change a router's wall clock; samples that have been finished keep their times."""
        life = self._lives.get(router)
        if life is not None and not life.observation.is_over:
            life.take_samples()
        self._walls[router].ahead_s = ahead_s

    def finish(self) -> None:
        """End the last interval and write all rows; call this when the simulation has ended."""
        self._end_intervals()
        for life in self._lives.values():
            life.write()

    def _router_started(self, host: SimulatedRouter) -> None:
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
        self._network.scheduler.after(self._interval_s, self._tick)

    def _end_intervals(self) -> None:
        for life in self._lives.values():
            if not life.observation.is_over and life.observation.host.runs:
                life.end_interval()


def files_below(directory: Path) -> Callable[[str, int], Store]:
    """Return a function that returns, for a router and an epoch, a store that writes files."""
    return lambda router, epoch: Files(directory, router, epoch).write
