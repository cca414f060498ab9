"""Predict how long messages take with other costs, from the measured times and loads of lines.

A line's round trip is the sum of its least round trip and the time that messages wait for each
other. The wait is that of a queue with random arrivals (M/M/1) whose service rate follows from the
measured wait. If no wait was measured on a line, no wait is assumed up to a trusted rate: twice the
highest rate that was measured on any line without a wait.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from statistics import median
from typing import Final

import attrs

from router_spark.advising.observed import Demand, Direction, Line, Observed
from router_spark.advising.routes import Pair, Routes, line_between

# If the mean exceeds the least round trip by less than this, it is jitter, not a queue.
WAIT_RATIO: Final = 0.5
WAIT_MS: Final = 0.5
# The trusted rate, relative to the highest rate that was measured on a line without a wait.
TRUST: Final = 2.0
# Above this load a queue would grow without bounds; it is assumed to grow linearly instead.
HIGHEST_LOAD: Final = 0.95


@attrs.frozen
class Queue:
    """Queueing model of one direction of a line.

    `least_ms` is the round trip without a wait, and `service_per_s` the service rate. If the
    service rate `is_known`, messages wait as in an M/M/1 queue. Otherwise the rate is assumed, and
    messages wait only above it. `background_per_s` is the traffic that the line carries in addition
    to the known demands.
    """

    least_ms: float
    service_per_s: float
    background_per_s: float = 0.0
    is_known: bool = False

    def round_trip_ms(self, per_s: float) -> float:
        """Return the mean round trip at a rate of `per_s` messages per second."""
        load = (per_s + self.background_per_s) / self.service_per_s
        bounded = min(load, HIGHEST_LOAD if self.is_known else 1.0)
        slope_s = 1 / (self.service_per_s * (1 - HIGHEST_LOAD) ** 2)
        wait_s = (load - bounded) * slope_s
        if self.is_known:
            wait_s += bounded / (self.service_per_s * (1 - bounded))
        return self.least_ms + 1000 * wait_s


def is_queued(direction: Direction) -> bool:
    """Return whether messages wait for each other in this direction of a line."""
    wait_ms = direction.mean_ms - direction.least_ms
    return wait_ms > WAIT_MS and wait_ms > WAIT_RATIO * direction.least_ms


def service_per_s(direction: Direction) -> float:
    """Return the service rate that explains the measured wait at the measured arrival rate."""
    rate, wait_s = direction.per_s, (direction.mean_ms - direction.least_ms) / 1000
    return (rate + math.sqrt(rate * rate + 4 * rate / wait_s)) / 2


def _queue_of(direction: Direction, trusted_per_s: float, background_per_s: float) -> Queue:
    if is_queued(direction):
        rate = service_per_s(direction)
        return Queue(direction.least_ms, rate, background_per_s, is_known=True)
    # without a queue, the line can carry more than it does
    return Queue(direction.mean_ms, trusted_per_s, background_per_s)


class Model:
    """Model that predicts the mean time that messages spend on lines, for given costs of lines.

    A line that no sampled message has passed is assumed to have the round trip of its control
    messages or, if that is unknown, the median of the other lines. With `only_measured`, the time
    on such a line is unknown, and so is the mean time of routes over it.
    """

    def __init__(self, observed: Observed, *, only_measured: bool = False) -> None:
        self.lines = {line.pair: line for line in observed.lines}
        self.demands = [each for each in observed.demands if each.ingress != each.egress]
        self.costs: dict[Pair, int] = {pair: line.cost for pair, line in self.lines.items()}
        self._queues = self._queues_of(observed.lines, only_measured)
        self.total_per_s = sum(each.per_s for each in self.demands)
        self.now = Routes(self.costs)
        self.now_ms = self.mean_ms(self.now)

    def _queues_of(self, lines: Iterable[Line], only_measured: bool) -> dict[Pair, Queue]:
        measured = {
            pair: each
            for line in lines
            for pair, each in ((line.pair, line.there), (line.pair[::-1], line.back))
            if each is not None
        }
        trusted = TRUST * max(
            (each.per_s for each in measured.values() if not is_queued(each)), default=1.0
        )
        assumed_ms = median([each.least_ms for each in measured.values()] or [0.0])
        known = self._loads(Routes(self.costs), self.demands)
        queues: dict[Pair, Queue] = {}
        for line in lines:
            for pair in (line.pair, line.pair[::-1]):
                here, other = measured.get(pair), measured.get(pair[::-1])
                if here is not None:
                    background = here.per_s - known[pair] if here.is_now else 0.0
                    queues[pair] = _queue_of(here, trusted, max(0.0, background))
                elif other is not None:
                    # a round trip includes both directions
                    queues[pair] = Queue(other.least_ms, trusted)
                elif not only_measured:
                    queues[pair] = Queue(line.idle_ms or assumed_ms, trusted)
        return queues

    def _loads(self, routes: Routes, demands: Iterable[Demand]) -> defaultdict[Pair, float]:
        loads: defaultdict[Pair, float] = defaultdict(float)
        for demand in demands:
            for hop in routes.path(demand.ingress, demand.egress) or ():
                loads[hop] += demand.per_s
        return loads

    def with_cost(self, line: Pair, cost: int) -> Routes:
        """Return the routes with a different cost of one line."""
        return Routes({**self.costs, line: cost})

    def mean_ms(self, routes: Routes) -> float:
        """Return the mean time of messages on lines with these routes; infinite if unknown."""
        loads = self._loads(routes, self.demands)
        total = 0.0
        for hop, per_s in loads.items():
            queue = self._queues.get(hop)
            if queue is None:
                return math.inf
            total += per_s * queue.round_trip_ms(per_s)
        return total / self.total_per_s if self.total_per_s else 0.0

    def moved(self, routes: Routes) -> list[Demand]:
        """Return the demands whose path with these routes differs from their present path."""
        return [
            each
            for each in self.demands
            if routes.path(each.ingress, each.egress) != self.now.path(each.ingress, each.egress)
        ]

    def is_measured(self, routes: Routes) -> bool:
        """Return whether sampled messages have passed all lines that these routes use."""
        paths = [routes.path(each.ingress, each.egress) or () for each in self.demands]
        return all(self.lines[line_between(*hop)].samples for path in paths for hop in path)


def time_by_line(model: Model) -> Mapping[Pair, float]:
    """Return for each line the total time that messages spend there, in ms per second."""
    return {
        pair: sum(
            each.per_s * each.mean_ms
            for each in (line.there, line.back)
            if each is not None and each.is_now
        )
        for pair, line in model.lines.items()
    }
