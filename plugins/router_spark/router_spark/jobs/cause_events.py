"""Find causes in events: steal wars, redirect loops, flapping lines, and risen costs of lines."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, functions as sf

from router_spark.jobs.cause_elements import Limits, Times, line_name


def steal_wars(events: DataFrame, times: Times, keys: Sequence[str], limits: Limits) -> DataFrame:
    """Return `name` (of the link), `container`, `n0` and `n1` of each steal war.

    `n0` and `n1` are how often the link was stolen in the baseline and in the period.
    """
    counted = _counted(
        events.where("kind = 'link-stolen'"), times, [*keys, "link_name", "container"]
    )
    return _many(counted, limits).withColumnRenamed("link_name", "name")


def redirect_loops(
    events: DataFrame, times: Times, keys: Sequence[str], limits: Limits
) -> DataFrame:
    """Return `name` (an address, or else the client's container) and `n1` of each redirect loop.

    A client is in a loop if a router redirects it to the same target at least twice in the period,
    and never did so in the baseline. `n1` is the number of redirects in the period.
    """
    at = [*keys, "container", "address", "router", "target"]
    again = _counted(events.where("kind = 'redirected'"), times, at).where("n1 >= 2 AND n0 = 0")
    name = sf.coalesce("address", "container")
    found = again.groupBy(*keys, name.alias("name")).agg(sf.sum("n1").alias("n1"))
    return found.where(sf.col("n1") >= limits.least_events)


def flapping_lines(
    events: DataFrame, times: Times, keys: Sequence[str], limits: Limits
) -> DataFrame:
    """Return `name`, `n0` and `n1` of each line that flaps.

    `n0` and `n1` are how often the line was lost in the baseline and in the period, according to
    the end that saw more losses.
    """
    lost = events.where("kind = 'neighbour-lost'").withColumn(
        "name", line_name("router", "other_router")
    )
    ends = _counted(lost, times, [*keys, "name", "router"])
    counted = ends.groupBy(*keys, "name").agg(sf.max("n0").alias("n0"), sf.max("n1").alias("n1"))
    return _many(counted, limits)


def dearer_lines(events: DataFrame, times: Times, keys: Sequence[str]) -> DataFrame:
    """Return `name`, `cost0` and `cost1` of each line whose cost has risen.

    `cost1` is the last cost that was reported in the period, and `cost0` the last one before the
    period.
    """
    is_within = times.phase("time") == 1
    start = times.period.start
    is_before = sf.lit(False) if start is None else sf.col("time") < sf.lit(start)

    def last(where: Column) -> Column:
        return sf.max_by(sf.when(where, sf.col("cost")), sf.when(where, sf.col("time")))

    return (
        events.where("kind IN ('neighbour-found', 'neighbour-cost-changed') AND cost IS NOT NULL")
        .withColumn("name", line_name("router", "other_router"))
        .groupBy(*keys, "name")
        .agg(last(is_before).alias("cost0"), last(is_within).alias("cost1"))
        .where("cost1 > cost0")
    )


def _counted(events: DataFrame, times: Times, by: list[str]) -> DataFrame:
    phase = times.phase("time")
    return events.groupBy(*by).agg(
        sf.count_if(phase == 0).alias("n0"), sf.count_if(phase == 1).alias("n1")
    )


def _many(counted: DataFrame, limits: Limits) -> DataFrame:
    return counted.where((sf.col("n1") >= limits.least_events) & (sf.col("n1") >= 3 * sf.col("n0")))
