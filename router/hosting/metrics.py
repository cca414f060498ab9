"""Metrics of a plugin, as part of the router's metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import Metric

from router.config.plugins import metric_part

MAX_SERIES: Final = 10_000
"""Maximum number of series of a plugin."""


class PluginMetrics:
    """Collector of the Prometheus client library for the metrics of a plugin.

    `fail` stops the plugin; it is called if there are too many series, or if they cannot be read.
    `owners` maps the full names of all running plugins' metrics to their collectors.
    """

    def __init__(
        self,
        plugin: str,
        fail: Callable[[str, BaseException | None], None],
        owners: dict[str, PluginMetrics] | None = None,
    ) -> None:
        self.prefix = f"plugin_{metric_part(plugin)}_"
        self._plugin = plugin
        self._registry = CollectorRegistry()
        self._fail = fail
        self._owners = {} if owners is None else owners

    def _full_name(self, name: str) -> str:
        """Return the full name of a metric, and reserve it for this plugin.

        Raises ValueError if another plugin has reserved it: the metric `x` of plugin `a_b` and the
        metric `b_x` of plugin `a` have the same full name.
        """
        full = self.prefix + name
        owner = self._owners.get(full, self)
        if owner._plugin != self._plugin:
            raise ValueError(
                f"the metric {full} belongs to the plugin {owner._plugin}; choose another name"
            )
        self._owners[full] = self
        return full

    def close(self) -> None:
        """Release the names of the metrics, so that other plugins can use them."""
        for name in [name for name, owner in self._owners.items() if owner is self]:
            del self._owners[name]

    def counter(self, name: str, description: str, labels: Sequence[str]) -> Counter:
        """Add a counter."""
        return Counter(self._full_name(name), description, labels, registry=self._registry)

    def gauge(self, name: str, description: str, labels: Sequence[str]) -> Gauge:
        """Add a gauge."""
        return Gauge(self._full_name(name), description, labels, registry=self._registry)

    def histogram(
        self, name: str, description: str, labels: Sequence[str], buckets: Sequence[float]
    ) -> Histogram:
        """Add a histogram."""
        return Histogram(
            self._full_name(name), description, labels, registry=self._registry, buckets=buckets
        )

    def collect(self) -> Iterator[Metric]:
        """Yield the plugin's metrics; stop the plugin if they cannot be read or are too many."""
        try:
            families = list(self._registry.collect())
            for family in families:
                for sample in family.samples:
                    # a label that cannot be encoded would make the whole page fail
                    "".join(map(str, sample.labels.values())).encode()
        except BaseException as error:  # noqa: BLE001 - a plugin's code may raise anything
            self._fail("crashed", error)
            return
        series = sum(len(family.samples) for family in families)
        if series > MAX_SERIES:
            why = f"the plugin has {series} series of metrics; at most {MAX_SERIES} are allowed"
            self._fail(why, None)
            return
        yield from families

    def describe(self) -> Iterable[Metric]:
        """Return no metrics; the client library would only use them to find duplicate names.

        Duplicate names have been refused already when a metric was added.
        """
        return ()
