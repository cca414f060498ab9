"""Sample deliveries for a plugin: the implementation of `router.plugin.DeliverySamples`."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from typing import Protocol

from router.core.sampling import Sampler
from router.engine.outbox import Turn
from router.hosting.translation import link_info
from router.plugin_samples import SampleBatch


class SampledForwarder(Protocol):
    """What has deliveries sampled."""

    sampler: Sampler | None

    def sample_by(self, sampler: Sampler | None) -> None:
        """Have a sampler choose among the deliveries that come in from now on, or none."""


class SampledExchange(Protocol):
    """What deliveries are sampled in; `clock` is that of `turn`."""

    turn: Turn
    clock: Callable[[], float]

    @property
    def forwarder(self) -> SampledForwarder:
        """Return the core."""


class Sampling:
    """The samples of one router, for the one plugin that has asked for them."""

    def __init__(self, exchange: SampledExchange, share: float, capacity: int) -> None:
        seed = secrets.randbits(64), secrets.randbits(64)
        self._exchange = exchange
        self._sampler = Sampler(exchange.turn, share, capacity, seed, link_info)
        exchange.forwarder.sample_by(self._sampler)

    @property
    def lost(self) -> int:
        """Return the number of samples for which there was no room."""
        return self._sampler.lost

    def take(self) -> SampleBatch:
        """Return the samples that are over and were not taken yet."""
        rows = self._sampler.take()
        wall_offset_ns = round((time.time() - self._exchange.clock()) * 1e9)
        return SampleBatch(rows.count, wall_offset_ns, rows.columns, rows.texts, rows.links)

    def close(self) -> None:
        """Sample no more."""
        if self._exchange.forwarder.sampler is self._sampler:
            self._exchange.forwarder.sample_by(None)
