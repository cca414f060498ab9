"""Sampling of deliveries for a plugin: the implementation of `router.plugin.DeliverySamples`."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable

from router.core.deliveries.sampling import Sampler
from router.hosting.translation import link_info
from router.net.router_hub import RouterHub
from router.plugin_samples import SampleBatch

NS = 1_000_000_000


class Sampling:
    """Sampling of deliveries at one router, which lasts until it is closed.

    `seed` determines the trace-ids and the choice of deliveries; without a seed they are random.
    """

    def __init__(
        self,
        hub: RouterHub,
        share: float,
        capacity: int,
        seed: tuple[int, int] | None = None,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._hub = hub
        self._wall_clock = wall_clock
        chosen = (secrets.randbits(64), secrets.randbits(64)) if seed is None else seed
        self._sampler = Sampler(hub.turn, share, capacity, chosen, link_info)
        hub.forwarder.outcomes.sampler = self._sampler

    @property
    def lost(self) -> int:
        """Return how many samples were lost because there was no room."""
        return self._sampler.lost

    @property
    def waiting(self) -> int:
        """Return how many finished samples wait to be read with `take`."""
        return self._sampler.count

    def take(self) -> SampleBatch:
        """Remove and return the finished samples."""
        rows = self._sampler.take()
        wall_offset_ns = round((self._wall_clock() - self._hub.clock()) * NS)
        return SampleBatch(rows.count, wall_offset_ns, rows.columns, rows.texts, rows.links)

    def close(self) -> None:
        """Stop sampling."""
        outcomes = self._hub.forwarder.outcomes
        if outcomes.sampler is self._sampler:
            outcomes.sampler = None
