"""Read the events, samples and link totals of a simulated router, as a plugin does.

Only the clock and the random numbers of the simulation are used, and the links of each router are
numbered from 1, so the same seed gives the same result.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from itertools import count
from random import Random
from typing import Any, Final

import attrs

from router.hosting.observers import EventQueue, Observers
from router.hosting.sampling import Sampling
from router.hosting.translation import link_totals
from router.plugin_events import Event, LinkInfo, LinkTotals
from router.plugin_samples import SampleBatch
from router.simulation.host import SimulatedRouter

# Number of samples that are kept until they are taken.
MOST_SAMPLES: Final = 65_536
WORD_BITS: Final = 64


class _Direct(EventQueue):
    """Event queue that passes each event on immediately."""

    def __init__(self, types: tuple[type[Event], ...], hear: Callable[[Event], None]) -> None:
        super().__init__(types, 1)
        self._hear = hear

    def put(self, event: Event) -> None:
        """Pass an event on to the function of this queue."""
        self._hear(event)


class Observation:
    """Observation of a simulated router, from now until the router stops or is killed.

    `wall_clock` returns the router's wall-clock time, in seconds since 1970. `share` is the share
    of deliveries that are sampled as they enter the network at this router. `chance` seeds both the
    choice of samples and the trace-ids. `hear` is called with each event whose type is in `types`.
    """

    def __init__(
        self,
        host: SimulatedRouter,
        wall_clock: Callable[[], float],
        chance: Random,
        share: float,
        types: tuple[type[Event], ...],
        hear: Callable[[Event], None],
    ) -> None:
        self.host = host
        self._hub = host.hub
        self._hear = hear
        # numbers of links from 1, by their numbers in this process, which differ in each simulation
        self._numbers: dict[int, int] = {0: 0}
        self._next = count(1)
        seed = chance.getrandbits(WORD_BITS), chance.getrandbits(WORD_BITS)
        self._sampling = Sampling(self._hub, share, MOST_SAMPLES, seed, wall_clock)
        outcomes = self._hub.forwarder.outcomes
        observers = Observers(self._hub, host.control.network, wall_clock, outcomes)
        observers.add(_Direct(types, self._heard))

    @property
    def is_over(self) -> bool:
        """Return whether the observed router has stopped, even if it has started again."""
        return not self.host.is_alive or self.host.hub is not self._hub

    @property
    def lost_samples(self) -> int:
        """Return how many samples were lost because `MOST_SAMPLES` were already waiting."""
        return self._sampling.lost

    @property
    def waiting_samples(self) -> int:
        """Return how many finished samples have not been taken yet."""
        return self._sampling.waiting

    def links(self) -> list[LinkTotals]:
        """Return the totals of each attached link."""
        return [
            self._totals(link_totals(link))
            for pump in self._hub.pumps.values()
            for session in pump.connection.local_sessions.values()
            for link in session.local_links.values()
            if link.owner is not None
        ]

    def take_samples(self) -> SampleBatch:
        """Return and remove the finished samples."""
        batch = self._sampling.take()
        columns = dict(batch.columns)
        for name in ("in_link", "out_link"):
            columns[name] = array("Q", map(self._number, columns[name]))
        links = {self._number(each): self._link(link) for each, link in batch.links.items()}
        return attrs.evolve(batch, columns=columns, links=links)

    def _heard(self, event: Event) -> None:
        changed: dict[str, Any] = {}
        for field in attrs.fields(type(event)):
            value = getattr(event, field.name)
            if isinstance(value, LinkInfo):
                changed[field.name] = self._link(value)
            elif isinstance(value, LinkTotals):
                changed[field.name] = self._totals(value)
        self._hear(attrs.evolve(event, **changed) if changed else event)

    def _number(self, number: int) -> int:
        found = self._numbers.get(number)
        if found is None:
            found = self._numbers[number] = next(self._next)
        return found

    def _link(self, link: LinkInfo) -> LinkInfo:
        return attrs.evolve(link, number=self._number(link.number))

    def _totals(self, totals: LinkTotals) -> LinkTotals:
        return attrs.evolve(totals, link=self._link(totals.link))
