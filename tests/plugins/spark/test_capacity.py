"""Capacity: when a link's load reaches a limit."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from pyspark.sql import Row, SparkSession
from router_spark.jobs.capacity import capacity
from router_telemetry.schema import FLOWS

from support.pipeline.rows import at, frame
from support.pipeline.worlds import START

pytestmark = pytest.mark.spark


def forecast(spark: SparkSession, loads: list[float], limit: float = 100, least: int = 3) -> Row:
    """Return the row of a link that has carried so many deliveries per second in each hour."""
    rows = [
        {
            "link_name": "l",
            "direction": "in",
            "container": "c",
            "role": "normal",
            "interval_start": at(3600 * hour),
            "interval_us": 3_600_000_000,
            "deliveries": round(3600 * load),
        }
        for hour, load in enumerate(loads)
        if load > 0
    ]
    (row,) = capacity(frame(spark, FLOWS, rows), limit, least).collect()
    return row


def hours(time: datetime) -> float:
    """Return how many hours after START that is."""
    return (time.astimezone(UTC) - START) / timedelta(hours=1)


def test_a_load_that_grows_by_a_straight_line(spark: SparkSession) -> None:
    row = forecast(spark, [10, 20, 30, 40])
    assert (row["hours"], row["mean_per_s"], row["per_s_per_day"]) == (4, 25, pytest.approx(240))
    assert row["now_per_s"] == pytest.approx(45)
    # 10 is the load in the middle of the first hour
    assert [hours(row[each]) for each in ("reaches_limit", "earliest", "latest")] == [9.5] * 3


def test_an_hour_without_deliveries_counts_as_none(spark: SparkSession) -> None:
    row = forecast(spark, [3, 0, 3, 3, 3])
    assert (row["hours"], row["mean_per_s"]) == (5, pytest.approx(2.4))


def test_a_load_that_does_not_grow_never_reaches_it(spark: SparkSession) -> None:
    row = forecast(spark, [40, 30, 20, 10])
    assert [row[each] for each in ("reaches_limit", "earliest", "latest")] == [None] * 3


def test_an_uncertain_trend_has_no_band(spark: SparkSession) -> None:
    row = forecast(spark, [10, 50, 10, 50, 10, 52])
    assert row["reaches_limit"] is not None
    assert (row["earliest"], row["latest"]) == (None, None)


def test_the_band_is_where_the_bounds_of_the_line_reach_the_limit(spark: SparkSession) -> None:
    loads = [10.0, 21, 29, 42, 49, 61, 69, 81]
    row = forecast(spark, loads)
    x = np.arange(len(loads)) + 0.5
    slope, start = np.polyfit(x, loads, 1)
    sxx = ((x - x.mean()) ** 2).sum()
    spread = 2.4469 * np.sqrt(((loads - start - slope * x) ** 2).sum() / (len(x) - 2))
    for name, side in (("earliest", 1), ("latest", -1)):
        time = hours(row[name])
        width = spread * np.sqrt(1 / len(x) + (time - x.mean()) ** 2 / sxx)
        assert start + slope * time + side * width == pytest.approx(100, abs=0.02)
    assert row["earliest"] < row["reaches_limit"] < row["latest"]
