"""Passages of sampled messages from one router to the next."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, functions as sf

from router_spark.roles import ROUTER_ROLES

_TIMES = ("left_ns", "left_us", "came_ns", "came_us")


def passages(
    deliveries: DataFrame, keys: Sequence[str] = (), roles: Sequence[str] = ROUTER_ROLES
) -> DataFrame:
    """Return each passage of a message from one router, `sender`, to the next, `receiver`.

    Returns the keys, `trace_id`, `hop` and `arrived` (of the sender's row), `sender`, `receiver`,
    `share`, `round_trip_ns` and `one_way_us`. The round trip is the time from the writing of the
    message until the sender knew its outcome, minus the time that the receiver needed until it knew
    the outcome. Both times are measured on the monotonic clock of one router. The one-way time
    compares the wall clocks of both routers.

    Only connections with one of `roles` are included, and only messages whose outcome was decided
    by their receiver. If a message has two passages with the same hop, sender and receiver, both
    are omitted, since their rows cannot be told apart.
    """
    arrived_us = sf.unix_micros("arrived")
    nothing = sf.lit(None).cast("long")
    left = deliveries.where(
        sf.col("out_role").isin(*roles)
        & (sf.col("decided_by") == "receiver")
        & sf.col("forward_ns").isNotNull()
        & sf.col("settle_ns").isNotNull()
    ).select(
        *keys,
        "trace_id",
        sf.col("hop").cast("int").alias("hop"),
        sf.col("router").alias("sender"),
        sf.col("out_container").alias("receiver"),
        "arrived",
        "share",
        (sf.col("settle_ns") - sf.col("forward_ns")).alias("left_ns"),
        (arrived_us + sf.expr("forward_ns div 1000")).alias("left_us"),
        nothing.alias("came_ns"),
        nothing.alias("came_us"),
    )
    came = deliveries.where(
        sf.col("in_role").isin(*roles) & sf.col("settle_ns").isNotNull()
    ).select(
        *keys,
        "trace_id",
        (sf.col("hop") - 1).cast("int").alias("hop"),
        sf.col("in_container").alias("sender"),
        sf.col("router").alias("receiver"),
        sf.lit(None).cast("timestamp").alias("arrived"),
        sf.lit(None).cast("double").alias("share"),
        nothing.alias("left_ns"),
        nothing.alias("left_us"),
        sf.col("settle_ns").alias("came_ns"),
        arrived_us.alias("came_us"),
    )
    # the rows of both routers are paired by grouping, which, unlike a join, needs no sort
    return (
        left.unionByName(came)
        .groupBy(*keys, "trace_id", "hop", "sender", "receiver")
        .agg(
            *(sf.min(name).alias(name) for name in ("arrived", "share", *_TIMES)),
            sf.count("left_ns").alias("left"),
            sf.count("came_ns").alias("came"),
        )
        .where("left = 1 AND came = 1")
        .select(
            *keys,
            "trace_id",
            "hop",
            "sender",
            "receiver",
            "arrived",
            "share",
            (sf.col("left_ns") - sf.col("came_ns")).alias("round_trip_ns"),
            (sf.col("came_us") - sf.col("left_us")).alias("one_way_us"),
        )
    )
