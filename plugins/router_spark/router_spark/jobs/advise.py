"""Measure lines and traffic for advice on costs: the time on each line, and the demands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any, Final, TypeAlias

import attrs
from pyspark.sql import DataFrame, Row, Window, functions as sf

from router_spark.advising.observed import (
    CostChange,
    Demand,
    Direction,
    Line,
    Measured,
    Observed,
)
from router_spark.advising.routes import Pair, line_between
from router_spark.jobs.passages import passages

Case: TypeAlias = tuple[Any, ...]
"""Values of the keys."""
Histories: TypeAlias = Mapping[Pair, tuple[CostChange, ...]]
"""Costs that each line has had."""

NS_A_MS: Final = 1e6
US_A_MS: Final = 1e3
US_A_S: Final = 1e6
LEAST_RANK: Final = 0.1
ACCURACY: Final = 1000
SETTLE_S: Final = 2.0
"""Seconds after a change of costs in which messages may still take the old path."""

COSTS: Final = ("neighbour-found", "neighbour-cost-changed", "neighbour-lost")


@attrs.frozen
class Epochs:
    """Times of the last two changes of costs, in microseconds since 1970.

    `last_us` is the last change and `before_us` the change before; None means that there was no
    such change. `changed` are the lines whose costs changed last.
    """

    last_us: int | None = None
    before_us: int | None = None
    changed: tuple[Pair, ...] = ()


def observe(
    deliveries: DataFrame,
    events: DataFrame,
    keys: Sequence[str] = (),
    start: datetime | None = None,
    settle_s: float = SETTLE_S,
) -> dict[Case, Observed]:
    """Return the network of each group: its lines, its demands, and the lines changed last.

    A group has the rows with the same values of the columns `keys`. Lines are found in the events
    of routers; a line that was lost and not found again is omitted. A line's measurements are from
    the time since costs last changed or, if no message has passed the line since then, from
    earlier. Of the events before `start`, only the costs of lines are used.
    """
    start_us = 0 if start is None else round(start.timestamp() * US_A_S)
    histories = _histories(events, keys, start_us)
    if not histories:
        return {}
    idle_ms = _idle_ms(events, keys, start_us)
    settle_us = round(settle_s * US_A_S)
    epochs = {case: epochs_of(lines, settle_us) for case, lines in histories.items()}
    passed = _in_phases(passages(deliveries, keys, ["inter-router"]), epochs, keys, settle_us)
    passed = passed.persist()
    try:
        rows = _by_direction(passed, keys)
        seconds = _seconds(rows, keys)
        directions = _directions(rows, keys, seconds)
        demands = _demands(passed, keys, seconds)
    finally:
        passed.unpersist()
    return {
        case: Observed(
            tuple(
                Line(pair, costs, measured.get(pair), measured.get(pair[::-1]), trips.get(pair))
                for pair, costs in sorted(lines.items())
            ),
            tuple(demands.get(case, ())),
            epochs[case].changed,
        )
        for case, lines in histories.items()
        for measured, trips in [(directions.get(case, {}), idle_ms.get(case, {}))]
    }


def _idle_ms(
    events: DataFrame, keys: Sequence[str], start_us: int
) -> dict[Case, dict[Pair, float]]:
    """Return, by values of `keys`, the shortest round trip of control messages on each line."""
    rows = (
        events.where("kind = 'neighbour-measured'")
        .where(sf.unix_micros("time") >= start_us)
        .groupBy(
            *keys,
            sf.least("router", "other_router").alias("a"),
            sf.greatest("router", "other_router").alias("b"),
        )
        .agg((sf.min("round_trip_us") / US_A_MS).alias("ms"))
        .collect()
    )
    found: dict[Case, dict[Pair, float]] = {}
    for row in rows:
        found.setdefault(_case(row, keys), {})[row["a"], row["b"]] = row["ms"]
    return found


def _histories(events: DataFrame, keys: Sequence[str], start_us: int) -> dict[Case, Histories]:
    """Return, by values of `keys`, the costs of each line so far, as one of its routers reports."""
    by = [*keys, "router", "other_router"]
    earlier = (
        Window.partitionBy(*by).orderBy("time", "seq").rowsBetween(Window.unboundedPreceding, -1)
    )
    told = events.where(sf.col("kind").isin(*COSTS)).withColumn(
        "before", sf.last("cost", ignorenulls=True).over(earlier)
    )
    is_other = sf.col("cost").isNotNull() & ~sf.col("cost").eqNullSafe(sf.col("before"))
    change = sf.struct(sf.unix_micros("time").alias("time_us"), "cost")
    rows = (
        told.groupBy(*by)
        .agg(
            sf.array_sort(sf.collect_list(sf.when(is_other, change))).alias("costs"),
            sf.max_by("kind", sf.struct("time", "seq")).alias("last"),
        )
        .where("last <> 'neighbour-lost' AND size(costs) > 0")
        .orderBy(*by)
        .collect()
    )
    found: dict[Case, dict[Pair, tuple[CostChange, ...]]] = {}
    for row in rows:
        pair = line_between(row["router"], row["other_router"])
        costs = [CostChange(each["time_us"], int(each["cost"])) for each in row["costs"]]
        earlier_than_start = sum(each.time_us < start_us for each in costs)
        kept = tuple(costs[max(0, earlier_than_start - 1) :])
        found.setdefault(_case(row, keys), {}).setdefault(pair, kept)
    return dict(found)


def epochs_of(histories: Histories, settle_us: int) -> Epochs:
    """Return when costs last changed; changes at most `settle_us` apart count as one."""
    changes = sorted(
        (each.time_us, pair) for pair, costs in histories.items() for each in costs[1:]
    )
    if not changes:
        return Epochs()
    begins = [
        0,
        *(
            number
            for number, (before, now) in enumerate(pairwise(changes), 1)
            if now[0] - before[0] > settle_us
        ),
    ]
    last = changes[begins[-1] :]
    before_us = changes[begins[-1] - 1][0] if len(begins) > 1 else None
    return Epochs(last[-1][0], before_us, tuple(sorted({pair for _, pair in last})))


def _in_phases(
    passed: DataFrame, epochs: Mapping[Case, Epochs], keys: Sequence[str], settle_us: int
) -> DataFrame:
    """Add `phase`: 1 since the last change of costs, 0 between the last two changes, -1 earlier.

    The phase is null within `settle_us` after a change.
    """
    rows = [(*case, each.last_us, each.before_us) for case, each in epochs.items()]
    types = dict(passed.dtypes)
    schema = ", ".join([*(f"{key} {types[key]}" for key in keys), "last_us long", "before_us long"])
    known = sf.broadcast(passed.sparkSession.createDataFrame(rows, schema))
    arrived_us = sf.unix_micros("arrived")
    is_now = sf.col("last_us").isNull() | (arrived_us >= sf.col("last_us") + settle_us)
    is_before = (arrived_us < sf.col("last_us")) & (
        sf.col("before_us").isNull() | (arrived_us >= sf.col("before_us") + settle_us)
    )
    is_earlier = arrived_us < sf.col("before_us")
    phase = sf.when(is_now, 1).when(is_before, 0).when(is_earlier, -1)
    joined = passed.join(known, list(keys)) if keys else passed.crossJoin(known)
    return joined.withColumn("phase", phase).drop("last_us", "before_us")


def _by_direction(passed: DataFrame, keys: Sequence[str]) -> list[Row]:
    """Return the samples, round trips and period of each direction of a line, by phase.

    The oldest phase is first; `_in_phases` explains phases.
    """
    round_trip_ms = sf.col("round_trip_ns") / NS_A_MS
    arrived_us = sf.unix_micros("arrived")
    return (
        passed.where("phase IS NOT NULL")
        .groupBy(*keys, "phase", "sender", "receiver")
        .agg(
            sf.count("*").alias("samples"),
            sf.sum(1 / sf.col("share")).alias("messages"),
            sf.percentile_approx(round_trip_ms, LEAST_RANK, ACCURACY).alias("least_ms"),
            sf.avg(round_trip_ms).alias("mean_ms"),
            sf.min(arrived_us).alias("first_us"),
            sf.max(arrived_us).alias("last_us"),
        )
        .orderBy("phase")
        .collect()
    )


def _seconds(rows: Iterable[Row], keys: Sequence[str]) -> dict[tuple[Case, int], float]:
    """Return, by values of `keys` and phase, the seconds from the first message to the last."""
    times: dict[tuple[Case, int], list[int]] = {}
    for row in rows:
        phase = times.setdefault((_case(row, keys), row["phase"]), [])
        phase += row["first_us"], row["last_us"]
    return {phase: max(1, max(each) - min(each)) / US_A_S for phase, each in times.items()}


def _directions(
    rows: Iterable[Row], keys: Sequence[str], seconds: Mapping[tuple[Case, int], float]
) -> dict[Case, dict[Pair, Direction]]:
    """Return, by values of `keys`, the measurements of each direction of a line.

    They are from the newest phase in which messages have passed in that direction.
    """
    found: dict[Case, dict[Pair, Direction]] = {}
    for row in rows:
        case, pair = _case(row, keys), (row["sender"], row["receiver"])
        rate = row["messages"] / seconds[case, row["phase"]]
        found.setdefault(case, {})[pair] = Direction(
            row["samples"], rate, row["least_ms"], row["mean_ms"], is_now=row["phase"] == 1
        )
    return found


def _demands(
    passed: DataFrame, keys: Sequence[str], seconds: Mapping[tuple[Case, int], float]
) -> dict[Case, list[Demand]]:
    """Return, by values of `keys`, the messages from each router of entry to each router of exit.

    Messages are omitted if `passed` lacks a hop of their path, or if they go to several receivers.
    """
    journeys = (
        passed.groupBy(*keys, "trace_id")
        .agg(
            sf.min_by("phase", "hop").alias("phase"),
            sf.min_by("sender", "hop").alias("ingress"),
            sf.max_by("receiver", "hop").alias("egress"),
            (sf.max("hop") - sf.min("hop") + 1).alias("hops"),
            sf.min("hop").alias("first"),
            sf.count("*").alias("passages"),
            (sf.sum("round_trip_ns") / NS_A_MS).alias("ms"),
            (1 / sf.first("share")).alias("messages"),
        )
        .where("phase IS NOT NULL AND first = 1 AND hops = passages")
    )
    rows = (
        journeys.groupBy(*keys, "ingress", "egress")
        .pivot("phase", [0, 1])
        .agg(
            sf.sum("messages").alias("messages"),
            sf.count("ms").alias("samples"),
            sf.avg("ms").alias("mean_ms"),
            sf.coalesce(sf.stddev_samp("ms"), sf.lit(0.0)).alias("spread_ms"),
        )
        .orderBy(*keys, "ingress", "egress")
        .collect()
    )
    found: dict[Case, list[Demand]] = {}
    for row in rows:
        case = _case(row, keys)
        messages = row["1_messages"]
        per_s = messages / seconds[case, 1] if messages else 0.0
        demand = Demand(row["ingress"], row["egress"], per_s, _measured(row, 1), _measured(row, 0))
        found.setdefault(case, []).append(demand)
    return found


def _measured(row: Row, phase: int) -> Measured | None:
    samples = row[f"{phase}_samples"]
    if not samples:
        return None
    error_ms = row[f"{phase}_spread_ms"] / samples**0.5
    return Measured(samples, row[f"{phase}_mean_ms"], error_ms)


def _case(row: Row, keys: Iterable[str]) -> Case:
    return tuple(row[key] for key in keys)
