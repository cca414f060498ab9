"""Definition of a metric: name, kind, labels, meaning, and source of its values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal

import attrs

from router.metrics.reading import Reading


@attrs.frozen
class HistogramValue:
    """Value of a histogram metric.

    `counts` has a count for each bucket: the values up to each of the `bounds` and above the
    previous one, and last the values above all bounds. `sum` is the sum of all values.
    """

    bounds: Sequence[float]
    counts: Sequence[int]
    sum: float

    def buckets(self) -> list[tuple[str, float]]:
        """Return Prometheus's cumulative buckets: each upper bound, and the count up to it."""
        found = []
        total = 0
        for bound, count in zip((*self.bounds, float("inf")), self.counts, strict=True):
            total += count
            found.append(("+Inf" if bound == float("inf") else f"{bound:g}", float(total)))
        return found


Value = float | HistogramValue
Sample = tuple[tuple[str, ...], Value]
"""The values of a metric's labels, in order, and the metric's value."""


@attrs.frozen
class Metric:
    """Definition of a metric; `name` is its name in the text format of Prometheus."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    meaning: str
    labels: tuple[str, ...]
    read: Callable[[Reading], Iterable[Sample]]

    @property
    def is_by_address(self) -> bool:
        """Return whether the metric has a series for each address."""
        return "address" in self.labels

    @property
    def is_by_connection(self) -> bool:
        """Return whether the metric has a series for each connection."""
        return "connection" in self.labels


def unlabelled(read: Callable[[Reading], Value]) -> Callable[[Reading], Iterable[Sample]]:
    """Return a reader for a metric without labels, whose only sample has the value from `read`."""
    return lambda reading: [((), read(reading))]
