"""Metrics of how long deliveries take until they are sent on, and until they are settled.

A histogram has a series for each bound. For the whole router, each decade has three bounds. For an
address, each decade has one bound, and there is no histogram before the first measurement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from router.core.model.counters import Counters
from router.core.model.histogram import BOUNDS_S, Histogram
from router.metrics.metric import HistogramValue, Metric, Sample, unlabelled
from router.metrics.reading import Reading

# Bounds of the histogram of an address.
COARSE_S: Final = (10e-6, 100e-6, 1e-3, 10e-3, 0.1, 1.0, 10.0)
_NOTHING: Final = Histogram()

Measured = Callable[[Counters], Histogram | None]


def spread(histogram: Histogram | None) -> HistogramValue:
    """Return a histogram's value with all buckets; None stands for an empty histogram."""
    found = _NOTHING if histogram is None else histogram
    return HistogramValue(BOUNDS_S, found.counts(), found.sum_s)


def coarse(histogram: Histogram) -> HistogramValue:
    """Return a histogram's value with one bucket for each decade."""
    counts = [0] * (len(COARSE_S) + 1)
    at = 0
    for bound, count in zip((*BOUNDS_S, float("inf")), histogram.counts(), strict=True):
        while at < len(COARSE_S) and bound > COARSE_S[at]:
            at += 1
        counts[at] += count
    return HistogramValue(COARSE_S, counts, histogram.sum_s)


def _by_address(measured: Measured) -> Callable[[Reading], Iterable[Sample]]:
    def samples(reading: Reading) -> Iterable[Sample]:
        for each in reading.addresses:
            histogram = measured(each.counters)
            if histogram is not None:
                yield (each.label,), coarse(histogram)

    return samples


def _forward(counters: Counters) -> Histogram | None:
    return counters.forward_latency


def _settle(counters: Counters) -> Histogram | None:
    return counters.settle_latency


LATENCY: Final = (
    Metric(
        "trioute_deliveries_forward_seconds",
        "histogram",
        "Time from the arrival of a delivery until it was sent on to a receiver.",
        (),
        unlabelled(lambda r: spread(r.counters.forward_latency)),
    ),
    Metric(
        "trioute_deliveries_settle_seconds",
        "histogram",
        "Time from the arrival of a delivery until the outcome was sent to its sender.",
        (),
        unlabelled(lambda r: spread(r.counters.settle_latency)),
    ),
    Metric(
        "trioute_address_forward_seconds",
        "histogram",
        "As trioute_deliveries_forward_seconds, for one address and with fewer bounds.",
        ("address",),
        _by_address(_forward),
    ),
    Metric(
        "trioute_address_settle_seconds",
        "histogram",
        "As trioute_deliveries_settle_seconds, for one address and with fewer bounds.",
        ("address",),
        _by_address(_settle),
    ),
)
