"""Histogram of durations with fixed bounds, from ten microseconds to half a minute.

A message that is forwarded immediately takes tens of microseconds, and one that waits takes as long
as its receivers need; each decade in between has three bounds (docs/decisions/0041).
"""

from __future__ import annotations

from array import array

BOUNDS_S = (
    *(10e-6, 25e-6, 50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3),
    *(0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0),
)
SIZE = len(BOUNDS_S)
_bounds = array("d", BOUNDS_S)


class Histogram:
    """Histogram of durations: a count for each of `BOUNDS_S`, and one above the last bound."""

    def __init__(self) -> None:
        self._counts = array("Q", bytes(8 * (SIZE + 1)))
        self.sum_s = 0.0
        self._bounds = _bounds

    def observe(self, age_s: float, count: int) -> None:
        """Count a duration `count` times.

        A negative duration (a clock was set back) counts, but adds nothing to the sum.
        """
        at = 0
        while at < SIZE and age_s > self._bounds[at]:
            at += 1
        self._counts[at] += count
        if age_s > 0:
            self.sum_s += age_s * count

    def add(self, other: Histogram) -> None:
        """Add the counts of another histogram."""
        for at in range(SIZE + 1):
            self._counts[at] += other._counts[at]
        self.sum_s += other.sum_s

    def subtract(self, other: Histogram) -> None:
        """Subtract the counts of an earlier state of this histogram."""
        for at in range(SIZE + 1):
            self._counts[at] -= other._counts[at]
        self.sum_s -= other.sum_s

    def counts(self) -> list[int]:
        """Return the count for each of `BOUNDS_S`, and the count above the last bound."""
        return [self._counts[at] for at in range(SIZE + 1)]
