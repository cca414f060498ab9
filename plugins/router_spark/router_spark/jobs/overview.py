"""Tables that only the report uses."""

from __future__ import annotations

from pyspark.sql import DataFrame, functions as sf

from router_spark.roles import CLIENT_ROLES, ROUTER_ROLES

RANKS = ("p50", "p95", "p99")


def outcomes_over_time(flows: DataFrame, step_s: int) -> DataFrame:
    """Count deliveries from clients by time step: all, rejected, released and modified.

    `time_s` is the start of a step, in seconds since 1970.
    """
    seconds = sf.unix_seconds("interval_start")
    sent = flows.where(sf.col("role").isin(*CLIENT_ROLES) & (sf.col("direction") == "in"))
    names = ("deliveries", "rejected", "released", "modified")
    return (
        sent.groupBy((seconds - seconds % step_s).alias("time_s"))
        .agg(*(sf.sum(name).alias(name) for name in names))
        .orderBy("time_s")
    )


def load_of_lines(flows: DataFrame) -> DataFrame:
    """Return the deliveries from each router (`sender`) to each neighbour (`receiver`)."""
    sent = flows.where(sf.col("role").isin(*ROUTER_ROLES) & (sf.col("direction") == "out"))
    return (
        sent.groupBy(sf.col("router").alias("sender"), sf.col("container").alias("receiver"))
        .agg(sf.sum("deliveries").alias("deliveries"))
        .orderBy("sender", "receiver")
    )


def settle_times(deliveries: DataFrame) -> DataFrame:
    """Return, by the client's router, p50, p95 and p99 of the time until an outcome, in ns."""
    quantiles = sf.percentile_approx("settle_ns", [0.5, 0.95, 0.99], 1000)
    return (
        deliveries.where("hop = 1 AND settle_ns IS NOT NULL")
        .groupBy("router")
        .agg(quantiles.alias("q"))
        .select("router", *(sf.get("q", sf.lit(n)).alias(p) for n, p in enumerate(RANKS)))
        .orderBy("router")
    )


def changes(now: DataFrame, before: DataFrame, top: int = 10) -> DataFrame:
    """Return the addresses whose counts of deliveries from clients have changed the most."""
    return (
        _by_address(now, "now")
        .join(_by_address(before, "before"), "address", "full")
        .na.fill(0, ["now", "before"])
        .withColumn("change", sf.col("now") - sf.col("before"))
        .where("change != 0")
        .orderBy(sf.desc(sf.abs("change")), "address")
        .limit(top)
    )


def _by_address(flows: DataFrame, name: str) -> DataFrame:
    sent = flows.where(sf.col("role").isin(*CLIENT_ROLES) & (sf.col("direction") == "in"))
    return (
        sent.where("address IS NOT NULL").groupBy("address").agg(sf.sum("deliveries").alias(name))
    )
