"""What a metric is: name, kind, labels, one sentence, and where its numbers come from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal

import attrs

from router.metrics.reading import Reading


@attrs.frozen
class Spread:
    """The value of a histogram: `counts` of what was at most as large as each of the `bounds`, and
    at last of what was larger than all of them; not cumulated. `sum` is of all that was counted.
    """

    bounds: Sequence[float]
    counts: Sequence[int]
    sum: float

    def buckets(self) -> list[tuple[str, float]]:
        """As Prometheus has them: the upper bound of each, and all that is not above it."""
        found = []
        total = 0
        for bound, count in zip((*self.bounds, float("inf")), self.counts, strict=True):
            total += count
            found.append(("+Inf" if bound == float("inf") else f"{bound:g}", float(total)))
        return found


Value = float | Spread
Sample = tuple[tuple[str, ...], Value]
"""The values of a metric's labels, in order, and the number; of a histogram its spread."""


@attrs.frozen
class Metric:
    """One metric, as it is called in the text format of Prometheus."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    meaning: str
    labels: tuple[str, ...]
    read: Callable[[Reading], Iterable[Sample]]

    @property
    def is_by_address(self) -> bool:
        """Whether it has a series for each address."""
        return "address" in self.labels

    @property
    def is_by_connection(self) -> bool:
        """Whether it has a series for each connection."""
        return "connection" in self.labels


def one(read: Callable[[Reading], Value]) -> Callable[[Reading], Iterable[Sample]]:
    """What reads a metric without labels."""
    return lambda reading: [((), read(reading))]
