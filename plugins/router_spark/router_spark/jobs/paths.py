"""Paths of sampled messages, and the places where messages were lost.

Everything is aggregated as numbers, for which Spark uses hash tables and needs no sort: a router is
represented by its position in the sorted list of all names.
"""

from __future__ import annotations

from datetime import datetime

from pyspark.sql import Column, DataFrame, functions as sf

from router_spark.roles import ROUTER_ROLES

MOST_HOPS = 16
HOP_SHIFT = 32


def paths(deliveries: DataFrame, most_hops: int = MOST_HOPS) -> DataFrame:
    """Return one row for each trace.

    - `arrived` (by the clock of its first router), `hops`, and `routers` in order. For a message
      to several receivers, the list has one router for each hop; it ends after `most_hops`.
    - `copies`: number of deliveries of it to clients.
    - `state`: `complete`, `lost` (the last router passed it on, the next one has no row of it) or
      `gap` (a router before the last has no row of it).
    - `lost_at` and `lost_to`: for a lost one, the router that it left last, and the next one.
    - `has_loop`: a router is in its path more than once.
    - `settle_ns`: from its arrival at the first router until the outcome was known there; null
      for one that was sent settled.
    """
    names = _names(deliveries)
    return _described(_traces(_coded(deliveries, names), most_hops), names, most_hops)


def entered_within(found: DataFrame, start: datetime | None, end: datetime | None) -> DataFrame:
    """Return the traces that entered the network in a period, and those without a first hop.

    Read more than the period, so that the rows of a message at its last routers are not cut off.
    """
    if start is not None:
        found = found.where(sf.col("arrived").isNull() | (sf.col("arrived") >= sf.lit(start)))
    if end is not None:
        found = found.where(sf.col("arrived").isNull() | (sf.col("arrived") < sf.lit(end)))
    return found


def next_router() -> Column:
    """Return the router that a delivery was sent to; null if it left the network or stayed."""
    return sf.when(sf.col("out_role").isin(*ROUTER_ROLES), sf.col("out_container"))


def _names(deliveries: DataFrame) -> DataFrame:
    """Return one row with the sorted names of all routers, as an array."""
    pairs = deliveries.select("router", next_router().alias("next")).distinct()
    names = pairs.select(sf.explode(sf.array("router", "next")).alias("name"))
    return names.agg(sf.array_sort(sf.collect_set("name")).alias("names"))


def _coded(deliveries: DataFrame, names: DataFrame) -> DataFrame:
    """Return the rows with `code` and `next_code`, the numbers of the router and the next one.

    They are looked up by 64-bit hashes of the names, which is faster than by the names themselves.
    Even with a million routers, two names with the same hash are very improbable.
    """
    codes = names.select(sf.posexplode("names").alias("code", "name"))
    here = codes.select("code", sf.xxhash64("name").alias("router_hash"))
    there = codes.select(sf.col("code").alias("next_code"), sf.xxhash64("name").alias("next_hash"))
    next_hash = sf.when(next_router().isNotNull(), sf.xxhash64(next_router()))
    return (
        deliveries.select(
            "trace_id",
            sf.col("hop").cast("long"),
            "arrived",
            "out_link_number",
            "settle_ns",
            sf.xxhash64("router").alias("router_hash"),
            next_hash.alias("next_hash"),
        )
        .join(sf.broadcast(here), "router_hash")
        .join(sf.broadcast(there), "next_hash", "left")
        .drop("router_hash", "next_hash")
    )


def _traces(rows: DataFrame, most_hops: int) -> DataFrame:
    """Aggregate the rows of each trace to numbers."""
    hop, is_first = sf.col("hop"), sf.col("hop") == 1
    # the hop in the high bits, so that the greatest number is that of the last hop
    position = sf.shiftleft(hop, HOP_SHIFT)
    passed_on = position.bitwiseOR(sf.col("next_code"))
    leaves = sf.col("out_link_number").isNotNull() & sf.col("next_code").isNull()
    codes = [
        sf.max(sf.when(hop == number, sf.col("code"))).alias(f"code_{number}")
        for number in range(1, most_hops + 1)
    ]
    # The rows of a trace are in the files of different routers, so partial aggregation before the
    # shuffle saves nothing, and turns narrow rows into wide ones.
    return (
        rows.repartition("trace_id")
        .groupBy("trace_id")
        .agg(
            sf.max("hop").alias("hops"),
            sf.min(sf.when(is_first, sf.col("arrived"))).alias("arrived"),
            sf.max(sf.when(is_first, sf.col("settle_ns"))).alias("settle_ns"),
            sf.sum(leaves.cast("long")).alias("copies"),
            sf.max(position.bitwiseOR(sf.col("code"))).alias("last"),
            sf.max(passed_on).alias("last_passed_on"),
            *codes,
        )
    )


def _described(traces: DataFrame, names: DataFrame, most_hops: int) -> DataFrame:
    """Replace numbers by names, and add the state of each trace."""
    codes = sf.array_compact(sf.array(*(f"code_{hop}" for hop in range(1, most_hops + 1))))
    known = sf.least(sf.col("hops"), sf.lit(most_hops))
    is_lost = _hop_of("last_passed_on") == sf.col("hops")
    state = sf.when(sf.size("codes") < known, "gap").when(is_lost, "lost").otherwise("complete")
    lost = sf.col("state") == "lost"
    return (
        traces.withColumn("codes", codes)
        .withColumn("state", state)
        .crossJoin(sf.broadcast(names))
        .select(
            "trace_id",
            "arrived",
            sf.col("hops").cast("int").alias("hops"),
            sf.transform("codes", lambda code: sf.get("names", code)).alias("routers"),
            sf.col("copies").cast("int").alias("copies"),
            "state",
            sf.when(lost, sf.get("names", _code_of("last"))).alias("lost_at"),
            sf.when(lost, sf.get("names", _code_of("last_passed_on"))).alias("lost_to"),
            (sf.size(sf.array_distinct("codes")) < sf.size("codes")).alias("has_loop"),
            "settle_ns",
        )
    )


def _hop_of(column: str) -> Column:
    return sf.shiftright(sf.col(column), HOP_SHIFT)


def _code_of(column: str) -> Column:
    return sf.col(column).bitwiseAND(sf.lit(2**HOP_SHIFT - 1)).cast("int")
