"""Times of runs that are repeated, and what is said of them."""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import attrs


@attrs.define
class Watch:
    """Takes the time of a block, in seconds."""

    taken_s: float = 0.0


@contextmanager
def watch() -> Iterator[Watch]:
    """Time a block."""
    found = Watch()
    began = time.monotonic()
    yield found
    found.taken_s = time.monotonic() - began


@attrs.frozen
class Measured:
    """Measurement of a component: rows or messages of each run, and its duration.

    The first run is `cold`: what is loaded and compiled once is in it. `load` is the machine's load
    average over a minute, after the last run.
    """

    name: str
    rows: int
    cold_s: float
    warm_s: tuple[float, ...]
    load: float

    @property
    def warm_rate(self) -> float:
        """Rows a second, by the median of the runs after the first."""
        return self.rows / statistics.median(self.warm_s or (self.cold_s,))

    @property
    def cold_rate(self) -> float:
        """Rows a second of the first run."""
        return self.rows / self.cold_s


def measured(name: str, rows: int, times: list[float]) -> Measured:
    """Return what so many runs, the first of them cold, come to."""
    return Measured(name, rows, times[0], tuple(times[1:]), os.getloadavg()[0])


def say(text: str) -> None:
    """Tell on stderr how far it is."""
    print(text, file=sys.stderr, flush=True)
