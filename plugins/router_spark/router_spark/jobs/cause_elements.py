"""Times of lines and receivers in two periods, and the routers that slow lines have in common.

A line is a connection between two routers. Its time is a round trip: the time from the writing of a
message until its outcome is known, minus the time that the next router needed until it knew the
outcome. Both times are measured on the monotonic clock of one router. Only `skew` compares wall
clocks.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
from pyspark.sql import Column, DataFrame, functions as sf

from router_spark.jobs.passages import passages
from router_spark.periods import Period
from router_spark.roles import CLIENT_ROLES

NS_A_MS = 1e6
US_A_MS = 1e3
# Quantile that is taken as the time without a wait, which one message in twenty should have.
FLOOR_RANK = 0.02
ACCURACY = 1000


@attrs.frozen
class Limits:
    """Thresholds for changes: fewer messages or smaller rises are not evidence."""

    least_messages: int = 6
    rise_ratio: float = 1.5
    rise_ms: float = 6.0
    skew_ms: float = 8.0
    # a line that has risen by at least this is not still: a fault elsewhere may affect it
    touch_ratio: float = 1.15
    touch_ms: float = 1.5
    # least rise of a line's floor, as a share of the rise of its mean
    floor_share: float = 0.3
    least_events: int = 3
    hot_ratio: float = 1.8
    # A receiver is stuck if it has `least_unsettled` deliveries unsettled, or any for `kept_share`
    # of the period, and settles at most `stuck_ratio` of its earlier rate.
    least_unsettled: int = 3
    kept_share: float = 0.25
    stuck_ratio: float = 0.05
    # share of the rate that was accepted in the baseline
    expired_share: float = 0.02
    drop: float = 0.05
    rate_drop: float = 0.4


@attrs.frozen
class Times:
    """Two periods to compare: the baseline, and the period whose changes are to be explained."""

    baseline: Period
    period: Period

    def phase(self, time: str) -> Column:
        """Return a column: 0 if `time` is in the baseline, 1 if in the period, otherwise null.

        `time` is the name of a column.
        """
        return sf.when(_within(time, self.baseline), 0).when(_within(time, self.period), 1)


def _within(time: str, period: Period) -> Column:
    found = sf.lit(True)
    if period.start is not None:
        found &= sf.col(time) >= sf.lit(period.start)
    if period.end is not None:
        found &= sf.col(time) < sf.lit(period.end)
    return found


def elements(deliveries: DataFrame, times: Times, keys: Sequence[str], limits: Limits) -> DataFrame:
    """Return lines and receivers with their times in both periods, separately by values of `keys`.

    The suffix 0 stands for the baseline, 1 for the period. `a` and `b` are the routers at a line's
    ends; for a receiver, `a` is its router and `b` is null. Times are in milliseconds. `floor` is
    approximately the least time; `floor_a` is the same for messages sent to `a`. `is_still_a` is
    whether messages sent to `a` take no longer than before. `skew` is how far the clock of `b` has
    moved ahead of the clock of `a`.
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
    """Return the name of the line between the routers of two columns: `a-b`, sorted."""
    return sf.concat_ws("-", sf.least(one, other), sf.greatest(one, other))


def _lines(deliveries: DataFrame, times: Times, keys: Sequence[str]) -> DataFrame:
    passed = (
        passages(deliveries, keys)
        .withColumn("phase", times.phase("arrived"))
        .where("phase IS NOT NULL")
        .withColumn("taken", sf.col("round_trip_ns") / NS_A_MS)
        .withColumn("under_way", sf.col("one_way_us") / US_A_MS)
    )
    is_there = sf.col("sender") < sf.col("receiver")
    there = _shift(is_there)
    back = _shift(~is_there)
    longer = (_mean("taken", sf.lit(1)) - _mean("taken", sf.lit(0))) / 2
    skew = sf.coalesce((there - back) / 2, there - longer, longer - back)
    return passed.groupBy(
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
    """Return how much the mean one-way time has risen, by wall clocks.

    Only passages for which `where` is true count.
    """
    return _mean("under_way", sf.lit(1), where) - _mean("under_way", sf.lit(0), where)


def _floors(value: str, end: str, where: Column) -> list[Column]:
    """Return columns: count, mean and floor (approximate minimum) of times of messages to `end`."""
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
    """Return each router at the end of a line, with a summary of its lines.

    A line is still for a router if messages that are sent to the router take no longer than before.
    Messages from the router do not count: if the router stalls, it sends them together when it
    resumes, and is likely to be running when their outcomes arrive. The floor of a line is
    approximately the least time of its messages.

    A router `is_doubtful` if the times of two or more of its lines have risen and none of its lines
    is still. It `is_suspect` if, in addition, none of its lines has a risen floor. (A busy router
    delays many messages, but some find it idle; a longer line delays all of them.) It `is_slow` if
    it is suspect and a line whose times have risen leads to a router that is not suspect. A router
    with a single line is none of these, since the line may be the cause.
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
    # a line that has risen between two suspects is evidence against neither
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
    """Return router, `skew` and `lines` of each router whose wall clock has shifted.

    All lines of such a router are skewed by similar amounts. If the router has only one line, the
    neighbour at the other end must have another line that is not skewed.
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
        # a single line may be skewed by the clock of the neighbour instead
        .where("lines >= 2 OR doubtful = 0")
    )
