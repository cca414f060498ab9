"""Advise costs of many simulated networks at once, apply them, and begin anew."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import Final

import attrs
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from router_spark.advising.proposing import Bounds, propose
from router_spark.jobs.advise import observe
from router_telemetry.schema import DELIVERIES, EVENTS, Dataset

from router.simulation.running import without_log

from support.pipeline.loops import Loop, Pair

SETTLED: Final = 2
"""Rounds without advice after which a network has come to an end."""


@attrs.define
class Course:
    """Course of one network: mean latency (ms) and costs of each round.

    `left_alone_ms` is the latency of the last round where nothing was changed.
    """

    seed: int
    loop: Loop
    left_alone_ms: float = 0.0
    latencies_ms: list[float] = attrs.Factory(list)
    costs: list[dict[Pair, int]] = attrs.Factory(list)
    advised: list[list[tuple[Pair, int]]] = attrs.Factory(list)

    @property
    def has_ended(self) -> bool:
        """Return whether nothing was advised for some rounds."""
        return len(self.advised) >= SETTLED and not any(self.advised[-SETTLED:])

    @property
    def rounds(self) -> int:
        """Return the number of rounds with advice."""
        return sum(1 for each in self.advised if each)

    @property
    def gain(self) -> float:
        """Return the share by which latency is lower in the last round than without any change."""
        return 1 - self.latencies_ms[-1] / self.left_alone_ms

    def most_returns(self) -> int:
        """Return the highest number of returns of a line to a cost that it had left."""
        most = 0
        for pair in self.loop.costs:
            costs = [each[pair] for each in self.costs]
            changes = [new for old, new in pairwise(costs) if new != old]
            seen, returns = {costs[0]}, 0
            for cost in changes:
                returns += cost in seen
                seen.add(cost)
            most = max(most, returns)
        return most


def loop_all(
    spark: SparkSession,
    seeds: Iterable[int],
    folder: Path,
    bounds: Bounds,
    most_rounds: int,
    progress: Callable[[str], None],
) -> list[Course]:
    """Run all networks until nothing is advised any more, or for so many rounds."""
    with without_log():
        courses = [Course(seed, Loop(seed)) for seed in seeds]
        for course in courses:
            course.loop.begin()
        for number in range(most_rounds):
            going = [course for course in courses if not course.has_ended]
            if not going:
                break
            progress(f"round {number + 1}: {len(going)} networks")
            for course in going:
                course.latencies_ms.append(course.loop.run())
                course.costs.append(course.loop.costs)
                for dataset in (DELIVERIES, EVENTS):
                    _write(course, dataset, folder)
            _advise(spark, going, folder, bounds)
        for course in courses:
            course.latencies_ms.append(course.loop.run())
            course.costs.append(course.loop.costs)
            course.left_alone_ms = _left_alone_ms(course)
    return courses


def _left_alone_ms(course: Course) -> float:
    alone = Loop(course.seed)
    alone.begin()
    return [alone.run() for _ in course.latencies_ms][-1]


def _write(course: Course, dataset: Dataset, folder: Path) -> None:
    rows = course.loop.tables()[dataset.name]
    case = pa.repeat(pa.scalar(course.seed, pa.int64()), len(rows))
    path = folder / dataset.name / f"{course.seed}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows.append_column("case", case), path)


def _advise(spark: SparkSession, going: list[Course], folder: Path, bounds: Bounds) -> None:
    deliveries, events = (
        spark.read.parquet(*(str(folder / dataset.name / f"{each.seed}.parquet") for each in going))
        for dataset in (DELIVERIES, EVENTS)
    )
    observed = observe(deliveries, events, ["case"])
    for course in going:
        proposals = propose(observed[course.seed,], bounds)
        advised = [(each.line.pair, each.cost) for each in proposals]
        course.loop.apply(dict(advised))
        course.advised.append(advised)
