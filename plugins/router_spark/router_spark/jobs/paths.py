"""Paths of sampled messages, and the places where messages were lost.

All values are aggregated as numbers, for which Spark uses hash tables and needs no sort. A router
is represented by its position in the sorted list of all names.
"""

from __future__ import annotations

from datetime import datetime

from pyspark.sql import Column, DataFrame, functions as sf

from router_spark.reading import GREATEST
from router_spark.roles import ROUTER_ROLES

MOST_HOPS = 16

CODE_BITS = 22
"""Enough for four million routers, so that two codes, a hop and a flag fit into 64 bits."""
HOP_SHIFT = 2 * CODE_BITS + 1
CODE_SHIFT = CODE_BITS + 1


def paths(deliveries: DataFrame, most_hops: int = MOST_HOPS) -> DataFrame:
    """Return one row for each trace.

    - `arrived` (on the clock of its first router), `hops`, and `routers` in order. For a message
      to several receivers, the list has one router for each hop; it ends after `most_hops`.
    - `copies`: number of deliveries of the message to clients.
    - `state`: `complete`, `lost` (the last router passed the message on, but the next one has no
      row for it) or `gap` (a router before the last has no row for it).
    - `lost_at` and `lost_to`: for a lost message, the last router that it left, and the next one.
    - `has_loop`: a router is in its path more than once.
    - `settle_ns`: time from the message's arrival at the first router until the outcome was known
      there; null for a message that was sent settled.
    """
    # each hop takes a column, even if no message went that far
    known = deliveries.schema["hop"].metadata.get(GREATEST, most_hops)
    most_hops = max(1, min(most_hops, known))
    names = _names(deliveries)
    return _described(_traces(_coded(deliveries, names), most_hops), names, most_hops)


def entered_within(found: DataFrame, start: datetime | None, end: datetime | None) -> DataFrame:
    """Return the traces that entered the network in a period, and those without a first hop.

    `found` should be from a longer period, so that it includes the last routers of these traces.
    """
    if start is not None:
        found = found.where(sf.col("arrived").isNull() | (sf.col("arrived") >= sf.lit(start)))
    if end is not None:
        found = found.where(sf.col("arrived").isNull() | (sf.col("arrived") < sf.lit(end)))
    return found


def next_router() -> Column:
    """Return the router that a delivery was sent to; null if it was sent to no router."""
    return sf.when(sf.col("out_role").isin(*ROUTER_ROLES), sf.col("out_container"))


def _names(deliveries: DataFrame) -> DataFrame:
    """Return one row with the sorted names of all routers, as an array."""
    pairs = deliveries.select("router", next_router().alias("next")).distinct()
    names = pairs.select(sf.explode(sf.array("router", "next")).alias("name"))
    return names.agg(sf.array_sort(sf.collect_set("name")).alias("names"))


def _coded(deliveries: DataFrame, names: DataFrame) -> DataFrame:
    """Return `trace_id`, `passage`, `arrived` and `settle_ns` of each delivery.

    `arrived` and `settle_ns` are null except at the first hop.

    A passage is a number. It has the hop in its high bits, so that the greatest passage is that of
    the last hop. Next are the code of the router, the code of the next router plus 1 (0 if there is
    none), and a bit for messages that were sent to a client. A code is an index in `names`.

    Codes are looked up by 64-bit hashes of the names, which is faster than by the names themselves.
    Even with a million routers, two names with the same hash are very improbable.
    """
    codes = names.select(sf.posexplode("names").alias("code", "name"))
    here = codes.select("code", sf.xxhash64("name").alias("router_hash"))
    there = codes.select(sf.col("code").alias("next_code"), sf.xxhash64("name").alias("next_hash"))
    next_hash = sf.when(next_router().isNotNull(), sf.xxhash64(next_router()))
    is_first = sf.col("hop") == 1
    has_next = sf.col("next_code").isNotNull()
    leaves = sf.col("out_link_number").isNotNull() & ~has_next
    passage = (
        sf.shiftleft(sf.col("hop").cast("long"), HOP_SHIFT)
        .bitwiseOR(sf.shiftleft(sf.col("code").cast("long"), CODE_SHIFT))
        .bitwiseOR(sf.when(has_next, sf.shiftleft(sf.col("next_code") + 1, 1)).otherwise(0))
        .bitwiseOR(leaves.cast("long"))
    )
    return (
        deliveries.withColumns(
            {"router_hash": sf.xxhash64("router"), "next_hash": next_hash},
        )
        .join(sf.broadcast(here), "router_hash")
        .join(sf.broadcast(there), "next_hash", "left")
        .select(
            "trace_id",
            passage.alias("passage"),
            sf.when(is_first, sf.col("arrived")).alias("arrived"),
            sf.when(is_first, sf.col("settle_ns")).alias("settle_ns"),
        )
    )


def _traces(rows: DataFrame, most_hops: int) -> DataFrame:
    """Aggregate the rows of each trace, which `_coded` has made, to one row of numbers."""
    passage = sf.col("passage")
    passed_on = _next_of(passage) > 0
    codes = [
        sf.max(sf.when(_hop_of(passage) == hop, _code_of(passage))).alias(f"code_{hop}")
        for hop in range(1, most_hops + 1)
    ]
    # The rows of a trace are in the files of different routers, so partial aggregation before the
    # shuffle saves nothing, and turns narrow rows into wide ones.
    return (
        rows.repartition("trace_id")
        .groupBy("trace_id")
        .agg(
            sf.max("arrived").alias("arrived"),
            sf.max("settle_ns").alias("settle_ns"),
            sf.sum(passage.bitwiseAND(sf.lit(1))).alias("copies"),
            sf.max(passage).alias("last"),
            sf.max(sf.when(passed_on, passage)).alias("last_passed_on"),
            *codes,
        )
    )


def _described(traces: DataFrame, names: DataFrame, most_hops: int) -> DataFrame:
    """Replace codes with names, and add the state of each trace."""
    all_codes = [sf.col(f"code_{hop}") for hop in range(1, most_hops + 1)]
    known = sf.least(sf.col("hops"), sf.lit(most_hops))
    was_passed_on = _hop_of(sf.col("last_passed_on")) == sf.col("hops")
    state = (
        sf.when(sf.col("recorded") < known, "gap").when(was_passed_on, "lost").otherwise("complete")
    )
    is_gap, is_lost = sf.col("state") == "gap", sf.col("state") == "lost"
    routers = sf.array(*(sf.get("names", code) for code in all_codes))
    codes = sf.array_compact(sf.array(*all_codes))
    repeats = sf.size(sf.array_distinct(codes)) < sf.col("recorded")
    return (
        traces.withColumn("hops", _hop_of(sf.col("last")))
        .withColumn(
            "recorded", sum((code.isNotNull().cast("int") for code in all_codes), sf.lit(0))
        )
        .withColumn("state", state)
        .crossJoin(sf.broadcast(names))
        .select(
            "trace_id",
            "arrived",
            sf.col("hops").cast("int").alias("hops"),
            # the routers after a gap have to be moved forward, which is slower
            sf.when(is_gap, sf.array_compact(routers))
            .otherwise(sf.slice(routers, 1, sf.col("recorded")))
            .alias("routers"),
            sf.col("copies").cast("int").alias("copies"),
            "state",
            sf.when(is_lost, _name(_code_of(sf.col("last_passed_on")))).alias("lost_at"),
            sf.when(is_lost, _name(_next_of(sf.col("last_passed_on")) - 1)).alias("lost_to"),
            (sf.when(sf.col("recorded") > 1, repeats).otherwise(sf.lit(False))).alias("has_loop"),
            "settle_ns",
        )
    )


def _hop_of(passage: Column) -> Column:
    return sf.shiftright(passage, HOP_SHIFT)


def _code_of(passage: Column) -> Column:
    return _bits(sf.shiftright(passage, CODE_SHIFT))


def _next_of(passage: Column) -> Column:
    """Return the code of a passage's next router plus 1, or 0 if there is none."""
    return _bits(sf.shiftright(passage, 1))


def _bits(number: Column) -> Column:
    return number.bitwiseAND(sf.lit(2**CODE_BITS - 1)).cast("int")


def _name(code: Column) -> Column:
    return sf.get("names", code)
