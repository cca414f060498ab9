"""Forecast of the time at which links reach a limit, if their load keeps growing as before."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, functions as sf

LINK: Final = ("router", "direction", "role", "container", "link_name")
HOUR_S: Final = 3600
Z: Final = 1.959964
"""Quantile of the normal distribution for a band of 95 %."""

FARTHEST_HOURS: Final = 10 * 365 * 24
"""Limit of a forecast: ten years. A time farther in the future is null."""


def capacity(flows: DataFrame, limit_per_s: float, least_hours: int = 24) -> DataFrame:
    """Return the trend of each link, and the time at which it reaches a limit.

    A straight line is fitted to the deliveries per second of whole hours. Returns the link's keys,
    `hours`, `mean_per_s`, `now_per_s` (the fitted rate at the end of the data), `per_s_per_day`
    (the slope), `reaches_limit`, and `earliest` and `latest`, the times at which the 95 % band
    around the line reaches the limit.

    A time is null if it is more than ten years after the data. All three times are null if the load
    does not grow; `earliest` and `latest` are also null if its growth is not certain enough. Links
    with fewer than `least_hours` whole hours, or fewer than 3, have no row.
    """
    fitted = _fitted(_hourly(flows))
    return _forecast(fitted.where(sf.col("hours") >= max(3, least_hours)), limit_per_s)


def _hourly(flows: DataFrame) -> DataFrame:
    """Return the deliveries per second of each link in each whole hour, idle ones too."""
    ended = sf.timestamp_micros(sf.unix_micros("interval_start") + sf.col("interval_us"))
    last = flows.agg(sf.date_trunc("hour", sf.max(ended)).alias("last"))
    hours = flows.groupBy(*LINK, sf.date_trunc("hour", "interval_start").alias("hour")).agg(
        sf.sum("deliveries").alias("deliveries"), sf.min("interval_start").alias("began")
    )
    one_hour = sf.expr("INTERVAL 1 HOUR")
    # the hour in which a link first appears is not whole, nor is the one in which the data ends
    began = sf.min("began")
    first = sf.when(sf.date_trunc("hour", began) == began, began).otherwise(
        sf.date_trunc("hour", began) + one_hour
    )
    whole = (
        hours.groupBy(*LINK)
        .agg(first.alias("first"))
        .crossJoin(sf.broadcast(last))
        .where("first < last")
        .select(
            *LINK,
            "last",
            sf.explode(sf.sequence("first", sf.col("last") - one_hour, one_hour)).alias("hour"),
        )
    )
    joined = whole.join(hours, [*LINK, "hour"], "left")
    return joined.select(
        *LINK,
        "last",
        # the middle of an hour, counted from the end of the data
        ((sf.unix_seconds("hour") - sf.unix_seconds("last")) / HOUR_S + 0.5).alias("x"),
        (sf.coalesce("deliveries", sf.lit(0)) / HOUR_S).alias("y"),
    )


def _fitted(hourly: DataFrame) -> DataFrame:
    """Fit a straight line to the deliveries per second of each link."""
    return hourly.groupBy(*LINK, "last").agg(
        sf.count("*").alias("hours"),
        sf.avg("x").alias("mean_x"),
        sf.avg("y").alias("mean_per_s"),
        sf.regr_slope("y", "x").alias("slope"),
        sf.regr_sxx("y", "x").alias("sxx"),
        sf.regr_syy("y", "x").alias("syy"),
    )


def _forecast(fitted: DataFrame, limit_per_s: float) -> DataFrame:
    """Compute the times at which the fitted line, and each edge of its band, reach the limit.

    With u in hours from the mean time of the data, and d the limit minus the mean load, the band
    reaches the limit where (slope * u - d)^2 = spread^2 * (1 / hours + u^2 / sxx). There are two
    solutions if the slope differs significantly from 0.
    """
    slope, sxx, hours = sf.col("slope"), sf.col("sxx"), sf.col("hours")
    rest = sf.greatest(sf.lit(0.0), sf.col("syy") - slope * slope * sxx)
    freedom = hours - 2
    spread = _student(freedom) * sf.sqrt(rest / freedom)
    d = sf.lit(limit_per_s) - sf.col("mean_per_s")
    certain = slope * slope - spread * spread / sxx
    root = spread * sf.sqrt(d * d / sxx + certain / hours)
    grows = slope > 0
    has_band = grows & (certain > 0)
    return fitted.select(
        *LINK,
        "hours",
        "mean_per_s",
        (sf.col("mean_per_s") - slope * sf.col("mean_x")).alias("now_per_s"),
        (slope * 24).alias("per_s_per_day"),
        _time(grows, d / slope).alias("reaches_limit"),
        _time(has_band, (slope * d - root) / certain).alias("earliest"),
        _time(has_band, (slope * d + root) / certain).alias("latest"),
    ).orderBy(sf.col("reaches_limit").asc_nulls_last(), *LINK)


def _student(freedom: Column) -> Column:
    """Return Student's t for a 95 % band, within 1 % for at least 3 degrees of freedom."""
    first = (Z**3 + Z) / 4
    second = (5 * Z**5 + 16 * Z**3 + 3 * Z) / 96
    third = (3 * Z**7 + 19 * Z**5 + 17 * Z**3 - 15 * Z) / 384
    return Z + first / freedom + second / freedom**2 + third / freedom**3


def _time(holds: Column, u: Column) -> Column:
    """Return the time `u` hours after the mean time of the data.

    The time is null if `holds` is false, or if it is more than ten years after the data.
    """
    from_end = sf.col("mean_x") + u
    near = holds & (from_end < FARTHEST_HOURS)
    seconds = sf.unix_seconds("last") + sf.round(from_end * HOUR_S)
    return sf.when(near, sf.timestamp_seconds(seconds))
