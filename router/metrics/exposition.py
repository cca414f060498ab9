"""Expose the metrics as text, in the format that the scraper prefers, while the router forwards.

A reading is taken in steps and turned into text metric by metric; the router forwards in between.
One text is made at a time, and it answers all requests that arrived before the router began to make
it. So the cost to the router does not depend on the number of scrapers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

import attrs
import trio
from prometheus_client import (
    CollectorRegistry,
    GCCollector,
    PlatformCollector,
    ProcessCollector,
)
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric as Family,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from router.config.model import MetricsSettings
from router.metrics.address_labels import OTHER, AddressLabels
from router.metrics.catalogue import METRICS
from router.metrics.connection_labels import ConnectionLabels
from router.metrics.dispatch import DISPATCH
from router.metrics.metric import HistogramValue, Metric, Value
from router.metrics.plugins import PluginsReading
from router.metrics.policy import VhostReading
from router.metrics.readiness import Readiness
from router.metrics.reading import Reading, read_in_steps
from router.metrics.views import MeasuredRouter

_OPENMETRICS: Final = "application/openmetrics-text"
_OPENMETRICS_END: Final = b"# EOF\n"
# Maximum number of texts kept: scrapers request one or two content types.
_TEXTS: Final = 2

Encoder = Callable[[Collector], bytes]


class RouterCollector:
    """Collector for the Prometheus client library, which exposes one reading of the router."""

    def __init__(
        self, observed: MeasuredRouter, settings: MetricsSettings, readiness: Readiness
    ) -> None:
        self.readiness = readiness
        self.observed = observed
        self.labels = AddressLabels(observed.table, 0)
        self.connection_labels = ConnectionLabels(observed, 0)
        self.started_at = time.monotonic()
        self.metrics: list[Metric] = []
        # further uses of memory, in octets, by their names in the metric
        self.accounts: dict[str, Callable[[], int]] = {}
        # the number of log lines, by level
        self.log_lines: Callable[[], Mapping[str, int]] = dict
        # the numbers of the plugins
        self.plugins: Callable[[], PluginsReading] = PluginsReading
        # the counts of the policy
        self.policy: Callable[[], list[VhostReading]] = lambda: [VhostReading(OTHER)]
        self._reading: Reading | None = None
        self.configure(settings)

    def configure(self, settings: MetricsSettings) -> None:
        """Apply settings from now on; labels that are in use are kept."""
        self.labels.limit = settings.address_label_limit
        self.connection_labels.limit = settings.connection_label_limit
        self.metrics = [
            metric
            for metric in METRICS
            if (settings.address_label_limit or not metric.is_by_address)
            and (settings.connection_label_limit or not metric.is_by_connection)
        ]
        if settings.qdr_names:
            self.metrics.extend(each.metric for each in DISPATCH)

    async def read(self) -> None:
        """Take a reading for the next `collect`, in steps between which other tasks run."""
        uptime_s = time.monotonic() - self.started_at
        steps = read_in_steps(self.observed, self.labels, self.connection_labels, uptime_s)
        while True:
            try:
                next(steps)
            except StopIteration as over:
                self._reading = over.value
                return
            await trio.lowlevel.checkpoint()

    def collect(self) -> Iterator[Family]:
        """Yield each metric with its values in the last reading, which can be used only once."""
        reading, self._reading = self._reading, None
        if reading is None:
            return
        reading.log_lines = self.log_lines()
        reading.plugins = self.plugins()
        reading.policy = self.policy()
        reading.certificate_expiries = self.observed.certificate_expiries
        reading.crl_expiries = self.observed.crl_expiries
        for reason, account in self.accounts.items():
            reading.memory[reason] = account()
        reading.is_ready = not self.readiness.reasons()
        for metric in self.metrics:
            family = _family(metric)
            for labels, value in metric.read(reading):
                _add(family, labels, value)
            yield family

    def describe(self) -> Iterable[Family]:
        """Return the metrics without values, so that the registry can refuse duplicate names."""
        return [_family(metric) for metric in self.metrics]


def _family(metric: Metric) -> CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily:
    if metric.kind == "histogram":
        return HistogramMetricFamily(metric.name, metric.meaning, labels=metric.labels)
    make = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
    return make(metric.name, metric.meaning, labels=metric.labels)


def _add(family: Family, labels: tuple[str, ...], value: Value) -> None:
    if isinstance(value, HistogramValue):
        assert isinstance(family, HistogramMetricFamily)
        family.add_metric(labels, value.buckets(), value.sum)
    else:
        assert isinstance(family, CounterMetricFamily | GaugeMetricFamily)
        family.add_metric(labels, value)


@attrs.frozen
class _Single:
    """Stand-in for a registry, so that an encoder encodes a single metric."""

    family: Family

    def collect(self) -> Iterable[Family]:
        return [self.family]


class Exposition:
    """All metrics of one router and its process, in their own registry."""

    def __init__(
        self,
        observed: MeasuredRouter,
        settings: MetricsSettings,
        readiness: Readiness | None = None,
    ) -> None:
        self.registry = CollectorRegistry()
        self.collector = RouterCollector(observed, settings, readiness or Readiness())
        self.registry.register(self.collector)
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        self._turn = trio.Lock()
        # the number of texts begun so far
        self.begun = 0
        # the last text of each content type, with its number
        self._texts: dict[str, tuple[int, bytes]] = {}

    async def render(self, accept: str, ticket: int | None = None) -> tuple[str, bytes]:
        """Return the content type and the text for an Accept header.

        `ticket` is the value that the counter `begun` had when the request arrived; None means that
        the request has just arrived. A text that was begun after the arrival is recent enough, and
        is returned instead of a new one.
        """
        encode, content_type = _chosen(accept)
        asked_at = self.begun if ticket is None else ticket
        async with self._turn:
            begun_as, text = self._texts.get(content_type, (0, b""))
            if begun_as <= asked_at:
                text = await self._make(encode, content_type)
        return content_type, text

    async def _make(self, encode: Encoder, content_type: str) -> bytes:
        """Make a text, and keep it for the other requests that have already arrived."""
        self.begun += 1
        number = self.begun
        chunks = []
        await self.collector.read()
        for family in self.registry.collect():
            chunks.append(encode(_Single(family)).removesuffix(_OPENMETRICS_END))
            await trio.lowlevel.checkpoint()
        if content_type.startswith(_OPENMETRICS):
            chunks.append(_OPENMETRICS_END)
        text = b"".join(chunks)
        if len(self._texts) >= _TEXTS:
            self._texts.clear()
        self._texts[content_type] = (number, text)
        return text


def _chosen(accept: str) -> tuple[Encoder, str]:
    try:
        return choose_encoder(accept)
    except TypeError:
        # the version is not a number: answer in the plain format, which every scraper reads
        return choose_encoder("")
