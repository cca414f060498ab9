"""How long each line and each receiver takes, before and after, and which router they have in
common; all from durations on one clock.

What a line takes is the time from the writing of a message until its outcome, less what the next
router needed until it knew the outcome: a round trip, which no wall clock has a part in.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
from pyspark.sql import Column, DataFrame, functions as sf

from router_spark.periods import Period
from router_spark.roles import CLIENT_ROLES, ROUTER_ROLES

NS_A_MS = 1e6
US_A_MS = 1e3
# low enough that one message in twenty which need not wait is below it
FLOOR_RANK = 0.02
ACCURACY = 1000


@attrs.frozen
class Limits:
    """What counts as a change: fewer messages, or less of a rise, say nothing."""

    least_messages: int = 6
    rise_ratio: float = 1.5
    rise_ms: float = 6.0
    skew_ms: float = 8.0
    # what has risen as little may have been touched by what has happened elsewhere
    touch_ratio: float = 1.15
    touch_ms: float = 1.5
    # the least share of a line's rise that all its messages have
    floor_share: float = 0.3
    least_events: int = 3
    hot_ratio: float = 1.8
    # a receiver is stuck that has as many, or any for this share of the period
    least_unsettled: int = 3
    kept_share: float = 0.25
    stuck_ratio: float = 0.05
    # of what was accepted before
    expired_share: float = 0.02
    drop: float = 0.05
    rate_drop: float = 0.4


@attrs.frozen
class Times:
    """The two times that are compared."""

    baseline: Period
    period: Period

    def phase(self, time: str) -> Column:
        """Return 0 within the baseline, 1 within the period, and otherwise null."""
        return sf.when(_within(time, self.baseline), 0).when(_within(time, self.period), 1)


def _within(time: str, period: Period) -> Column:
    found = sf.lit(True)
    if period.start is not None:
        found &= sf.col(time) >= sf.lit(period.start)
    if period.end is not None:
        found &= sf.col(time) < sf.lit(period.end)
    return found


def elements(deliveries: DataFrame, times: Times, keys: Sequence[str], limits: Limits) -> DataFrame:
    """Return the lines and receivers of each group, each with what it took before and after.

    `a` and `b` are the routers at a line's ends; of a receiver `a` is its router, and `b` is null.
    Times are in milliseconds. `floor` is the least of them, or nearly so; `floor_a` is that of what
    was sent to `a`. `skew` is how far the clock of `b` has gone ahead of that of `a`.
    """
    found = _lines(deliveries, times, keys).unionByName(_receivers(deliveries, times, keys))
    is_measured = (sf.col("n0") >= limits.least_messages) & (sf.col("n1") >= limits.least_messages)
    rise = sf.col("mean1") - sf.col("mean0")
    is_risen = (rise >= limits.rise_ms) & (sf.col("mean1") >= limits.rise_ratio * sf.col("mean0"))

    def is_still(end: str) -> Column:
        before, after = sf.col(f"mean{end}0"), sf.col(f"mean{end}1")
        enough = [sf.col(f"n{end}{phase}") >= limits.least_messages for phase in (0, 1)]
        is_touched = (after - before >= limits.touch_ms) & (after >= limits.touch_ratio * before)
        return sf.coalesce(enough[0] & enough[1] & ~is_touched, sf.lit(False))

    def is_floor(end: str = "") -> Column:
        before, after = sf.col(f"floor{end}0"), sf.col(f"floor{end}1")
        enough = [sf.col(f"n{end}{phase}") >= limits.least_messages for phase in (0, 1)]
        is_much = (sf.col("element") == "receiver") | (
            after - before >= limits.floor_share * sf.col("rise")
        )
        has_risen = (after - before >= limits.rise_ms / 2) & (after >= limits.rise_ratio * before)
        return sf.col("is_risen") & sf.coalesce(
            enough[0] & enough[1] & has_risen & is_much, sf.lit(False)
        )

    return (
        found.withColumn("is_measured", is_measured)
        .withColumn("rise", rise)
        .withColumn("is_risen", sf.col("is_measured") & is_risen)
        .withColumn("is_still_a", is_still("_a"))
        .withColumn("is_still_b", is_still("_b"))
        .withColumn("is_floor", is_floor())
        .withColumn("is_floor_a", is_floor("_a"))
        .withColumn("is_floor_b", is_floor("_b"))
    )


def line_name(one: str, other: str) -> Column:
    """Return what the line between the routers of two columns is called: `a-b`, in this order."""
    return sf.concat_ws("-", sf.least(one, other), sf.greatest(one, other))


def _lines(deliveries: DataFrame, times: Times, keys: Sequence[str]) -> DataFrame:
    """Bring the two rows of each passage together by grouping, which needs no sort."""
    arrived_us = sf.unix_micros("arrived")
    nothing = sf.lit(None).cast("long")
    left = deliveries.where(
        sf.col("out_role").isin(*ROUTER_ROLES)
        & (sf.col("decided_by") == "receiver")
        & sf.col("forward_ns").isNotNull()
        & sf.col("settle_ns").isNotNull()
    ).select(
        *keys,
        "trace_id",
        sf.col("hop").cast("int").alias("hop"),
        sf.col("router").alias("sender"),
        sf.col("out_container").alias("receiver"),
        times.phase("arrived").alias("phase"),
        (sf.col("settle_ns") - sf.col("forward_ns")).alias("left_ns"),
        (arrived_us + sf.expr("forward_ns div 1000")).alias("left_us"),
        nothing.alias("came_ns"),
        nothing.alias("came_us"),
    )
    came = deliveries.where(
        sf.col("in_role").isin(*ROUTER_ROLES) & sf.col("settle_ns").isNotNull()
    ).select(
        *keys,
        "trace_id",
        (sf.col("hop") - 1).cast("int").alias("hop"),
        sf.col("in_container").alias("sender"),
        sf.col("router").alias("receiver"),
        sf.lit(None).cast("int").alias("phase"),
        nothing.alias("left_ns"),
        nothing.alias("left_us"),
        sf.col("settle_ns").alias("came_ns"),
        arrived_us.alias("came_us"),
    )
    passages = (
        left.unionByName(came)
        .groupBy(*keys, "trace_id", "hop", "sender", "receiver")
        .agg(
            *(sf.min(name).alias(name) for name in ("phase", *_TIMES)),
            sf.count("left_ns").alias("left"),
            sf.count("came_ns").alias("came"),
        )
        # what passes twice cannot be told apart
        .where("phase IS NOT NULL AND left = 1 AND came = 1")
        .withColumn("taken", (sf.col("left_ns") - sf.col("came_ns")) / NS_A_MS)
        .withColumn("under_way", (sf.col("came_us") - sf.col("left_us")) / US_A_MS)
    )
    is_there = sf.col("sender") < sf.col("receiver")
    there = _shift(is_there)
    back = _shift(~is_there)
    longer = (_mean("taken", sf.lit(1)) - _mean("taken", sf.lit(0))) / 2
    skew = sf.coalesce((there - back) / 2, there - longer, longer - back)
    return passages.groupBy(
        *keys,
        sf.least("sender", "receiver").alias("a"),
        sf.greatest("sender", "receiver").alias("b"),
    ).agg(
        sf.lit("line").alias("element"),
        line_name("a", "b").alias("name"),
        *_compared("taken"),
        *_floors("taken", "b", is_there),
        *_floors("taken", "a", ~is_there),
        skew.alias("skew"),
    )


_TIMES = ("left_ns", "left_us", "came_ns", "came_us")


def _receivers(deliveries: DataFrame, times: Times, keys: Sequence[str]) -> DataFrame:
    settled = deliveries.where(
        sf.col("out_role").isin(*CLIENT_ROLES)
        & (sf.col("decided_by") == "receiver")
        & sf.col("forward_ns").isNotNull()
    ).select(
        *keys,
        sf.col("router").alias("a"),
        sf.col("out_container").alias("name"),
        times.phase("arrived").alias("phase"),
        ((sf.col("settle_ns") - sf.col("forward_ns")) / NS_A_MS).alias("taken"),
    )
    return (
        settled.where("phase IS NOT NULL")
        .groupBy(*keys, "a", "name")
        .agg(
            sf.lit(None).cast("string").alias("b"),
            sf.lit("receiver").alias("element"),
            *_compared("taken"),
            *_floors("taken", "a", sf.lit(True)),
            *_floors("taken", "b", sf.lit(False)),
            sf.lit(None).cast("double").alias("skew"),
        )
    )


def _mean(value: str, phase: Column, where: Column | None = None) -> Column:
    wanted = sf.col("phase") == phase
    return sf.avg(sf.when(wanted if where is None else wanted & where, sf.col(value)))


def _shift(where: Column) -> Column:
    """Return how much longer messages were under way in one direction, by the wall clocks."""
    return _mean("under_way", sf.lit(1), where) - _mean("under_way", sf.lit(0), where)


def _floors(value: str, end: str, where: Column) -> list[Column]:
    """Return the number, mean and floor of what was sent to one end."""
    found = []
    for phase in (0, 1):
        kept = sf.when((sf.col("phase") == phase) & where, sf.col(value))
        found += [
            sf.count(kept).alias(f"n_{end}{phase}"),
            sf.avg(kept).alias(f"mean_{end}{phase}"),
            sf.percentile_approx(kept, FLOOR_RANK, ACCURACY).alias(f"floor_{end}{phase}"),
        ]
    return found


def _compared(value: str) -> list[Column]:
    found = []
    for phase in (0, 1):
        kept = sf.when(sf.col("phase") == phase, sf.col(value))
        found += [
            sf.count(kept).alias(f"n{phase}"),
            sf.avg(kept).alias(f"mean{phase}"),
            sf.percentile_approx(kept, FLOOR_RANK, ACCURACY).alias(f"floor{phase}"),
        ]
    return found


def routers(found: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return each router at the end of a line, with what is known of its lines.

    A router is slow if two of its lines or more have risen, none of them by its floor, and none is
    still: who waits for a router that has other things to do is lucky now and then, who waits for
    light never is. With one line, it cannot be told from the line. Only what is sent to a router
    says that a line of it is still. A router that is late for everything sends all at once when it
    is not, and may well be there for the outcomes; it may be there for those of receivers, too.

    It `is_doubtful` if all its lines have risen in another way.
    """
    lines = found.where("element = 'line' AND is_measured")
    both = [
        sf.struct(sf.col(end).alias("router"), sf.col(f"is_still_{end}").alias("is_still"))
        for end in ("a", "b")
    ]
    ends = lines.withColumn("end", sf.explode(sf.array(*both))).select("*", "end.*")
    risen = sf.when(sf.col("is_risen"), sf.col("rise"))
    is_all = (sf.col("risen") >= 2) & (sf.col("still") == 0)
    suspects = (
        ends.groupBy(*keys, "router")
        .agg(
            *(
                sf.count_if(name).alias(name.removeprefix("is_"))
                for name in ("is_risen", "is_still", "is_floor")
            ),
            sf.sum(sf.when(sf.col("is_risen"), sf.col("n1"))).alias("messages"),
            sf.min(risen).alias("least"),
            sf.max(risen).alias("most"),
        )
        .withColumn("is_doubtful", is_all)
        .withColumn("is_suspect", is_all & (sf.col("floor") == 0))
    )
    # what has risen between two suspects speaks against neither of them
    other = sf.when(sf.col("router") == sf.col("a"), sf.col("b")).otherwise(sf.col("a"))
    others = suspects.where("is_suspect").select(*keys, sf.col("router").alias("other"))
    own = (
        ends.where("is_risen")
        .withColumn("other", other)
        .join(others, [*keys, "other"], "anti")
        .groupBy(*keys, "router")
        .agg(sf.count("*").alias("own"))
    )
    return suspects.join(own, [*keys, "router"], "left").withColumn(
        "is_slow", sf.col("is_suspect") & sf.col("own").isNotNull()
    )


def skewed(found: DataFrame, keys: Sequence[str], limits: Limits) -> DataFrame:
    """Return router, `skew` and `lines` of each router whose wall clock has gone another way.

    That is one at which all lines say so, and alike, while at each of its neighbours one does not.
    """
    lines = found.where("element = 'line' AND is_measured").withColumn(
        "is_skewed",
        sf.abs("skew") > limits.skew_ms + 3 * sf.greatest(sf.lit(0.0), sf.col("rise")),
    )
    ends = lines.select(
        *keys,
        "is_skewed",
        (sf.abs("skew") <= limits.skew_ms).alias("is_right"),
        sf.explode(
            sf.array(
                sf.struct(
                    sf.col("a").alias("router"),
                    sf.col("b").alias("other"),
                    (-sf.col("skew")).alias("ahead"),
                ),
                sf.struct(
                    sf.col("b").alias("router"),
                    sf.col("a").alias("other"),
                    sf.col("skew").alias("ahead"),
                ),
            )
        ).alias("end"),
    ).select(*keys, "is_skewed", "is_right", "end.*")
    here = (
        ends.groupBy(*keys, "router")
        .agg(
            sf.count("*").alias("lines"),
            sf.count_if("is_skewed").alias("skewed"),
            sf.count_if("is_right").alias("right"),
            sf.min("ahead").alias("least"),
            sf.max("ahead").alias("most"),
            sf.avg("ahead").alias("skew"),
            sf.collect_set("other").alias("others"),
        )
        .withColumn("is_all", sf.col("lines") == sf.col("skewed"))
    )
    alike = sf.abs(sf.col("most") - sf.col("least")) <= 0.5 * sf.abs("skew")
    neighbours = here.select(
        *keys, sf.col("router").alias("other"), (sf.col("right") == 0).alias("is_doubtful_too")
    )
    return (
        here.where(sf.col("is_all") & alike)
        .withColumn("other", sf.explode("others"))
        .join(neighbours, [*keys, "other"])
        .groupBy(*keys, "router")
        .agg(
            sf.first("skew").alias("skew"),
            sf.first("lines").alias("lines"),
            sf.count_if("is_doubtful_too").alias("doubtful"),
        )
        # one of a neighbour that only has this line may well be followed by the others
        .where("lines >= 2 OR doubtful = 0")
    )
