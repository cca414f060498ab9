"""The metrics of one plugin, as a part of the router's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import Metric

from router.config.plugins import metric_part

MOST_SERIES: Final = 10_000
"""Number of series that a plugin may have."""


class PluginMetrics:
    """A collector of the Prometheus client library for what a plugin counts.

    `fail` stops the plugin: it has too many series, or its metrics cannot be read.
    """

    def __init__(self, plugin: str, fail: Callable[[str, BaseException | None], None]) -> None:
        self.prefix = f"plugin_{metric_part(plugin)}_"
        self._registry = CollectorRegistry()
        self._fail = fail

    def counter(self, name: str, description: str, labels: Sequence[str]) -> Counter:
        """Add a counter."""
        return Counter(self.prefix + name, description, labels, registry=self._registry)

    def gauge(self, name: str, description: str, labels: Sequence[str]) -> Gauge:
        """Add a gauge."""
        return Gauge(self.prefix + name, description, labels, registry=self._registry)

    def histogram(
        self, name: str, description: str, labels: Sequence[str], buckets: Sequence[float]
    ) -> Histogram:
        """Add a histogram."""
        return Histogram(
            self.prefix + name, description, labels, registry=self._registry, buckets=buckets
        )

    def collect(self) -> Iterator[Metric]:
        """Yield the plugin's metrics, or nothing if they cannot be read or are too many."""
        try:
            families = list(self._registry.collect())
            for family in families:
                for sample in family.samples:
                    # what cannot be encoded would spoil the whole page
                    "".join(map(str, sample.labels.values())).encode()
        except BaseException as error:  # noqa: BLE001 - a plugin's code may raise anything
            self._fail("crashed", error)
            return
        series = sum(len(family.samples) for family in families)
        if series > MOST_SERIES:
            self._fail(f"has {series} series of metrics; at most {MOST_SERIES} are allowed", None)
            return
        yield from families

    def describe(self) -> Iterable[Metric]:
        """Return nothing: the prefix keeps the names apart from all others."""
        return ()
