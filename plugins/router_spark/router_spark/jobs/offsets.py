"""Offsets between routers' wall clocks, from the fastest messages between each pair of routers."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
from pyspark.sql import DataFrame, functions as sf

from router_spark.errors import BadInput
from router_spark.roles import ROUTER_ROLES

OFFSETS = "router string, reference string, offset_us double, bound_us double"


@attrs.frozen
class OneWayTime:
    """Least time between sending by one router and receipt by the next, by their wall clocks."""

    sender: str
    receiver: str
    least_us: int


@attrs.frozen
class Offset:
    """Time by which a router's clock is ahead of the reference; its error is at most `bound_us`.

    The offset and the bound are None if no messages connect the router with the reference.
    """

    router: str
    reference: str
    offset_us: float | None
    bound_us: float | None


def one_way_times(deliveries: DataFrame) -> DataFrame:
    """Return the least one-way time and the message count for each sender and receiver."""
    is_sent = sf.col("out_role").isin(*ROUTER_ROLES) & sf.col("forward_ns").isNotNull()
    arrived_us = sf.unix_micros("arrived")
    nothing = sf.lit(None).cast("long")
    left = deliveries.where(is_sent).select(
        "trace_id",
        sf.col("hop").cast("int").alias("hop"),
        sf.col("router").alias("sender"),
        sf.col("out_container").alias("receiver"),
        (arrived_us + sf.expr("forward_ns div 1000")).alias("left_us"),
        nothing.alias("came_us"),
    )
    came = deliveries.where(sf.col("in_role").isin(*ROUTER_ROLES)).select(
        "trace_id",
        (sf.col("hop") - 1).cast("int").alias("hop"),
        sf.col("in_container").alias("sender"),
        sf.col("router").alias("receiver"),
        nothing.alias("left_us"),
        arrived_us.alias("came_us"),
    )
    # the rows of both routers are paired by grouping, which, unlike a join, needs no sort
    return (
        left.unionByName(came)
        .groupBy("trace_id", "hop", "sender", "receiver")
        .agg(sf.min("left_us").alias("left_us"), sf.min("came_us").alias("came_us"))
        .where("left_us IS NOT NULL AND came_us IS NOT NULL")
        .groupBy("sender", "receiver")
        .agg(
            sf.min(sf.col("came_us") - sf.col("left_us")).alias("least_us"),
            sf.count("*").alias("messages"),
        )
    )


def offsets(deliveries: DataFrame, reference: str | None = None) -> DataFrame:
    """Return the clock offset of each router, in microseconds, and the bound of its error.

    The error between two neighbours cannot be measured: it is half the difference between the
    minimum transit times of the two directions. Its bound is half the minimum round trip, which is
    the error if one direction took no time at all. The default `reference` is the first router by
    name in the largest group that messages connect. Raises BadInput if the reference is not a
    router of these deliveries.
    """
    found = [OneWayTime(*row) for row in one_way_times(deliveries).drop("messages").collect()]
    named = sorted(row[0] for row in deliveries.select("router").distinct().collect())
    if reference is not None and reference not in named:
        raise BadInput(
            f"--reference {reference}: not a router here; routers are {', '.join(named)}"
        )
    solved = solve(found, named, reference)
    rows = [attrs.astuple(each) for each in solved]
    return deliveries.sparkSession.createDataFrame(rows, OFFSETS)


def solve(
    found: Sequence[OneWayTime], routers: Sequence[str], reference: str | None
) -> list[Offset]:
    """Solve for the offsets by least squares; a pair with a shorter round trip weighs more."""
    pairs = _pairs(found)
    names = sorted({*routers, *(name for pair in pairs for name in pair)})
    if not names:
        return []
    group = _connected(names, [*pairs], reference)
    if reference is None:
        reference = min(group)
    inside = [(pair, way) for pair, way in pairs.items() if pair[0] in group]
    numbers = {name: index for index, name in enumerate(sorted(group))}
    known = _least_squares(inside, numbers, reference)
    nothing = (None, None)
    return [Offset(name, reference, *known.get(name, nothing)) for name in names]


def _pairs(found: Sequence[OneWayTime]) -> dict[tuple[str, str], tuple[float, float]]:
    """Return the offset and half the round trip of each pair with messages in both directions."""
    least = {(time.sender, time.receiver): time.least_us for time in found}
    return {
        (a, b): ((there - least[b, a]) / 2, (there + least[b, a]) / 2)
        for (a, b), there in least.items()
        if a < b and (b, a) in least
    }


def _connected(
    names: Sequence[str], pairs: Sequence[tuple[str, str]], reference: str | None
) -> set[str]:
    """Return the routers that messages connect with the reference.

    Without a reference, return the largest group of routers that messages connect.
    """
    neighbours: dict[str, set[str]] = {name: set() for name in names}
    for a, b in pairs:
        neighbours[a].add(b)
        neighbours[b].add(a)
    largest: set[str] = set()
    for name in names if reference is None else [reference]:
        group, waiting = set[str](), [name]
        while waiting:
            each = waiting.pop()
            if each not in group:
                group.add(each)
                waiting += neighbours.get(each, ())
        largest = max(largest, group, key=len)
    return largest


def _least_squares(
    pairs: Sequence[tuple[tuple[str, str], tuple[float, float]]],
    numbers: dict[str, int],
    reference: str,
) -> dict[str, tuple[float, float]]:
    """Return the clock offset of each router in `numbers`, with the bound of its error."""
    equations = np.zeros((len(pairs), len(numbers)))
    measured, half_trips = np.zeros(len(pairs)), np.zeros(len(pairs))
    for row, ((a, b), (offset, half_trip)) in enumerate(pairs):
        equations[row, numbers[a]], equations[row, numbers[b]] = -1, 1
        measured[row], half_trips[row] = offset, half_trip
    # a pair with a short round trip is more exact; clocks are exact to a microsecond
    weights = 1 / np.maximum(half_trips, 1)
    gain = np.linalg.pinv(equations * weights[:, None]) * weights
    gain -= gain[numbers[reference]]
    found = gain @ measured
    # each equation may be wrong by half its round trip, and the worst case adds up
    bounds = np.abs(gain) @ half_trips
    return {name: (float(found[row]), float(bounds[row])) for name, row in numbers.items()}
