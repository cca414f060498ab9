"""Causes of a drop in acceptance or a rise in latency, compared with a baseline.

Naming a wrong cause is worse than naming none: a cause is named only if the evidence fits no other
cause, and otherwise the answer is `unknown`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame, functions as sf

from router_spark.jobs import cause_events
from router_spark.jobs.cause_elements import NS_A_MS, Limits, Times, elements, routers, skewed
from router_spark.periods import Period
from router_spark.roles import CLIENT_ROLES

UNKNOWN: Final = "unknown"
NONE: Final = "none"
EXPIRED: Final = "trioute:expired"
# Column of the group if there is only one.
_ALL: Final = "everything"
_FOUND: Final = ("kind", "subject", "confidence", "evidence")


def causes(
    flows: DataFrame,
    deliveries: DataFrame,
    events: DataFrame,
    baseline: Period,
    period: Period,
    groups: Sequence[str] = (),
    limits: Limits | None = None,
) -> DataFrame:
    """Return kind, subject, confidence and evidence of each cause.

    Both periods must have a start and an end. `groups` are columns of all DataFrames that tell to
    which of several networks a row belongs. Causes are determined for each network, and the result
    begins with these columns. A network without a cause has one row, of the kind `unknown` if
    acceptance has dropped or latency has risen, and otherwise `none`.

    The confidence, 0 to 1, ranks causes of one kind; it is not a probability. The evidence maps
    names to numbers; times are in milliseconds, rates in deliveries per second. A cause of the kind
    `clock-skew` explains wrong times but no latency, so a network with this cause may have a row
    of the kind `unknown` or `none` as well.
    """
    known = Limits() if limits is None else limits
    times, keys = Times(baseline, period), list(groups) or [_ALL]
    if not groups:
        flows, deliveries, events = (
            each.withColumn(_ALL, sf.lit(0)) for each in (flows, deliveries, events)
        )
    # each of these is small, and read more than once below
    parts = elements(deliveries, times, keys, known).localCheckpoint()
    at = routers(parts, keys).localCheckpoint()
    addresses = _addresses(deliveries, times, keys, known).localCheckpoint()
    takers = _takers(flows, times, keys, known).localCheckpoint()
    steals = cause_events.steal_wars(events, times, keys, known).localCheckpoint()
    flaps = cause_events.flapping_lines(events, times, keys, known).localCheckpoint()
    hot = addresses.where("is_hot")
    expiring = _expiring(takers, addresses, keys)
    stuck = takers.where("is_stuck").join(
        expiring.select(*keys, sf.col("subject").alias("container")), [*keys, "container"], "anti"
    )
    # a receiver with a higher load is not itself slow, and a stuck one is reported as stuck
    excused = (
        takers.where("is_busier OR is_stuck")
        .select(*keys, sf.col("container").alias("name"))
        .unionByName(expiring.select(*keys, sf.col("subject").alias("name")))
        .unionByName(steals.select(*keys, sf.col("container").alias("name")))
        .unionByName(flaps.select(*keys, "name"))
    )
    slow = _slow_elements(parts, at, keys).join(excused, [*keys, "name"], "anti")
    found = [
        _slow_routers(at, keys),
        _answer(
            slow,
            keys,
            sf.col("kind"),
            sf.col("name"),
            _of_rise(),
            before_ms=sf.col("mean0"),
            after_ms=sf.col("mean1"),
            messages=sf.col("n1"),
        ),
        expiring,
        _answer(
            stuck,
            keys,
            sf.lit("stuck-receiver"),
            sf.col("container"),
            _of_count("unsettled"),
            settled_a_second_before=sf.col("rate0"),
            settled_a_second_after=sf.col("rate1"),
            unsettled=sf.col("unsettled"),
        ),
        _answer(
            hot,
            keys,
            sf.lit("hot-address"),
            sf.col("address"),
            1 - sf.col("rate0") / sf.col("rate1"),
            entered_a_second_before=sf.col("rate0"),
            entered_a_second_after=sf.col("rate1"),
            before_ms=sf.col("mean0"),
            after_ms=sf.col("mean1"),
        ),
        _of_events("steal-war", steals, keys),
        _of_events("flapping-line", flaps, keys),
        _of_events("redirect-loop", cause_events.redirect_loops(events, times, keys, known), keys),
        _wrong_costs(events, parts, flaps, times, keys, known),
        _answer(
            skewed(parts, keys, known),
            keys,
            sf.lit("clock-skew"),
            sf.col("router"),
            _of_count("lines"),
            ahead_ms=sf.col("skew"),
            lines=sf.col("lines"),
        ),
    ]
    named = found[0]
    for more in found[1:]:
        named = named.unionByName(more)
    # a receiver with several links is one cause
    named = named.groupBy(*keys, "kind", "subject").agg(
        sf.max("confidence").alias("confidence"),
        sf.max_by("evidence", "confidence").alias("evidence"),
    )
    answers = _with_unknown(named.localCheckpoint(), addresses, keys)
    answers = answers.orderBy(*keys, sf.desc("confidence"), "kind", "subject")
    return answers.select(*groups, *_FOUND)


def _answer(
    found: DataFrame,
    keys: Sequence[str],
    kind: Column,
    subject: Column,
    confidence: Column,
    **evidence: Column,
) -> DataFrame:
    """Return rows of the result, in which the keyword arguments become the evidence."""
    numbers: list[Column] = []
    for name, value in evidence.items():
        numbers += [sf.lit(name), value.cast("double")]
    return found.select(
        *keys,
        kind.alias("kind"),
        subject.alias("subject"),
        sf.round(confidence.cast("double"), 3).alias("confidence"),
        sf.create_map(*numbers).alias("evidence"),
    )


def _of_count(name: str) -> Column:
    return sf.col(name) / (sf.col(name) + 1)


# Confidence: the relative rise, reduced if there are few messages.
def _of_rise() -> Column:
    return (1 - sf.col("mean0") / sf.col("mean1")) * sf.col("n1") / (sf.col("n1") + 5)


def _of_events(kind: str, found: DataFrame, keys: Sequence[str]) -> DataFrame:
    return _answer(found, keys, sf.lit(kind), sf.col("name"), _of_count("n1"), events=sf.col("n1"))


def _slow_routers(at: DataFrame, keys: Sequence[str]) -> DataFrame:
    return _answer(
        at.where("is_slow"),
        keys,
        sf.lit("slow-router"),
        sf.col("router"),
        _of_count("risen"),
        least_rise_ms=sf.col("least"),
        most_rise_ms=sf.col("most"),
        lines=sf.col("risen"),
        messages=sf.col("messages"),
    )


def _slow_elements(parts: DataFrame, at: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return the lines and receivers that are slow by themselves, each with its kind.

    A line or receiver is omitted if one of its routers is slow or doubtful. The terms slow,
    doubtful, still and floor are those of `router_spark.jobs.cause_elements.routers`.

    A line is slow if neither of its routers can be the cause. A router is not the cause if it has a
    line that is still. It is not the cause either if the floor of messages sent to it over the slow
    line has risen, but the times of the router's receivers have not. (A router that stalls may
    delay all messages that it sends, but not all messages that are sent to it.)

    A receiver is slow only if its floor has risen. A risen mean may be due to bursts of messages.
    """
    nothing, no = sf.lit(0), sf.lit(False)
    receivers = (
        parts.where("element = 'receiver'")
        .groupBy(*keys, sf.col("a").alias("router"))
        .agg(sf.count_if("is_risen").alias("late"))
    )
    around = at.join(receivers, [*keys, "router"], "full")
    ends = parts.where("is_risen")
    for end in ("a", "b"):
        here = around.select(
            *keys,
            sf.col("router").alias(end),
            sf.coalesce(sf.col("is_slow") | sf.col("is_doubtful"), no).alias(f"is_{end}_slow"),
            (sf.coalesce("still", nothing) > 0).alias(f"is_{end}_fit"),
            (sf.coalesce("late", nothing) == 0).alias(f"is_{end}_calm"),
        )
        ends = ends.join(here, [*keys, end], "left")
    is_line = sf.col("element") == "line"
    is_excused = sf.col("is_a_slow") | sf.coalesce("is_b_slow", no)
    is_slow_line = sf.lit(True)
    for end in ("a", "b"):
        is_alone_to_blame = sf.col(f"is_floor_{end}") & sf.col(f"is_{end}_calm")
        is_slow_line &= sf.col(f"is_{end}_fit") | is_alone_to_blame
    kind = sf.when(is_line, "slow-line").otherwise("slow-receiver")
    is_guilty = sf.when(is_line, is_slow_line).otherwise(sf.col("is_floor"))
    return ends.where(~is_excused & is_guilty).withColumn("kind", kind)


def _addresses(
    deliveries: DataFrame, times: Times, keys: Sequence[str], limits: Limits
) -> DataFrame:
    """Return rates, outcomes and latencies of each address, in both periods."""
    is_first = sf.col("hop") == 1
    is_expired = (sf.col("decided_by") == "router") & (sf.col("reason") == EXPIRED)
    weight = 1 / sf.col("share")
    rows = deliveries.where("address IS NOT NULL").withColumn("phase", times.phase("arrived"))
    found: list[Column] = []
    for phase, within in enumerate((times.baseline, times.period)):
        is_now, seconds = sf.col("phase") == phase, _seconds(within)
        entered = is_now & is_first

        def rate(where: Column, seconds: float = seconds) -> Column:
            return sf.coalesce(sf.sum(sf.when(where, weight)), sf.lit(0.0)) / seconds

        found += [
            sf.count_if(entered).alias(f"n{phase}"),
            rate(entered).alias(f"rate{phase}"),
            rate(entered & (sf.col("outcome") == "accepted")).alias(f"accepted{phase}"),
            rate(is_now & is_expired).alias(f"expired{phase}"),
            (sf.avg(sf.when(entered, sf.col("settle_ns"))) / NS_A_MS).alias(f"mean{phase}"),
        ]
    has_risen = (
        (sf.col("n1") >= limits.least_messages)
        & (sf.col("mean1") - sf.col("mean0") >= limits.rise_ms)
        & (sf.col("mean1") >= limits.rise_ratio * sf.col("mean0"))
    )
    worse = sf.col("accepted0") / sf.col("rate0") - sf.col("accepted1") / sf.col("rate1")
    has_dropped = (sf.col("accepted1") <= (1 - limits.rate_drop) * sf.col("accepted0")) | (
        sf.coalesce(worse >= limits.drop, sf.lit(False))
    )
    return (
        rows.where("phase IS NOT NULL")
        .groupBy(*keys, "address")
        .agg(*found)
        .withColumn("has_risen", sf.coalesce(has_risen, sf.lit(False)))
        .withColumn("has_dropped", (sf.col("n0") >= limits.least_messages) & has_dropped)
        .withColumn(
            "is_hot",
            (sf.col("n0") >= limits.least_messages)
            & (sf.col("rate1") >= limits.hot_ratio * sf.col("rate0"))
            & sf.col("has_risen"),
        )
        .withColumn(
            "is_expiring",
            sf.col("expired1") >= limits.expired_share * sf.col("accepted0") + sf.col("expired0"),
        )
    )


def _takers(flows: DataFrame, times: Times, keys: Sequence[str], limits: Limits) -> DataFrame:
    """Return, by receiver, settled deliveries per second, and how many are unsettled."""
    settled = sum(
        (sf.col(name) for name in ("rejected", "released", "modified")), sf.col("accepted")
    )
    phase = times.phase("interval_start")
    rates = [
        (
            sf.coalesce(sf.sum(sf.when(phase == number, settled)), sf.lit(0)) / _seconds(within)
        ).alias(f"rate{number}")
        for number, within in enumerate((times.baseline, times.period))
    ]
    is_usual = sf.col("rate0") * _seconds(times.baseline) >= limits.least_messages
    # intervals without a change have no row, so the last row has the final number
    is_long_ago = sf.lit(times.period.end) - sf.make_dt_interval(
        secs=sf.lit(_seconds(times.period) * limits.kept_share)
    )
    left = sf.max_by(
        sf.when(sf.col("is_final"), 0).otherwise(sf.col("unsettled")), "interval_start"
    )
    return (
        flows.where(sf.col("direction") == "out")
        .where(sf.col("role").isin(*CLIENT_ROLES))
        .where(sf.col("interval_start") < sf.lit(times.period.end))
        .groupBy(*keys, "router", "container", "address")
        .agg(*rates, left.alias("unsettled"), sf.max("interval_start").alias("last"))
        .withColumn("holds", is_usual & (sf.col("unsettled") >= limits.least_unsettled))
        .withColumn("is_busier", is_usual & (sf.col("rate1") >= 1.3 * sf.col("rate0")))
        .withColumn("keeps", is_usual & (sf.col("unsettled") > 0) & (sf.col("last") < is_long_ago))
        .withColumn(
            "is_stuck",
            (sf.col("holds") | sf.col("keeps"))
            & (sf.col("rate1") <= limits.stuck_ratio * sf.col("rate0")),
        )
    )


def _expiring(takers: DataFrame, addresses: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return receivers that hold messages of an address while other messages for it expire.

    Addresses with more than one such receiver are omitted.
    """
    guilty = takers.where("holds AND rate1 < 0.5 * rate0").drop("rate0", "rate1")
    found = guilty.join(addresses.where("is_expiring AND NOT is_hot"), [*keys, "address"])
    alone = found.groupBy(*keys, "address").agg(
        sf.count("*").alias("guilty"),
        *(sf.first(name).alias(name) for name in ("container", "unsettled", "expired1")),
    )
    return _answer(
        alone.where("guilty = 1"),
        keys,
        sf.lit("expiring"),
        sf.col("container"),
        _of_count("unsettled"),
        expired_a_second=sf.col("expired1"),
        unsettled=sf.col("unsettled"),
    )


def _wrong_costs(
    events: DataFrame,
    parts: DataFrame,
    flaps: DataFrame,
    times: Times,
    keys: Sequence[str],
    limits: Limits,
) -> DataFrame:
    """Return the lines whose cost has risen and that carry far fewer messages than before."""
    dearer = cause_events.dearer_lines(events, times, keys)
    left = parts.where(
        (sf.col("element") == "line")
        & (sf.col("n0") >= limits.least_messages)
        & (sf.col("n1") <= 0.2 * sf.col("n0"))
    )
    found = dearer.join(left.select(*keys, "name", "n0", "n1"), [*keys, "name"]).join(
        flaps, [*keys, "name"], "anti"
    )
    return _answer(
        found,
        keys,
        sf.lit("wrong-cost"),
        sf.col("name"),
        1 - sf.col("cost0") / sf.col("cost1"),
        cost_before=sf.col("cost0"),
        cost_after=sf.col("cost1"),
        messages_before=sf.col("n0"),
        messages_after=sf.col("n1"),
    )


def _with_unknown(named: DataFrame, addresses: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Add a row for each network without a cause other than `clock-skew`.

    The kind of the row is `unknown` if acceptance or latency got worse, otherwise `none`.
    """
    symptoms = addresses.groupBy(*keys).agg(
        sf.count_if("has_dropped").alias("dropped"), sf.count_if("has_risen").alias("risen")
    )
    rest = symptoms.join(named.where("kind != 'clock-skew'"), list(keys), "anti")
    kind = sf.when(sf.col("dropped") + sf.col("risen") > 0, UNKNOWN).otherwise(NONE)
    other = _answer(
        rest,
        keys,
        kind,
        sf.lit(None).cast("string"),
        sf.lit(0.0),
        addresses_with_a_drop=sf.col("dropped"),
        addresses_with_a_rise=sf.col("risen"),
    )
    return named.unionByName(other)


def _seconds(period: Period) -> float:
    if period.start is None or period.end is None:
        raise ValueError(f"the period {period} needs a start and an end")
    return (period.end - period.start).total_seconds()
