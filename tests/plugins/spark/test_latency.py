"""Latency sketches, by hour and merged to days."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from router_spark.jobs.latency import by_day, by_hour
from router_telemetry.schema import DELIVERIES

from support.pipeline.rows import at, frame, tuples

pytestmark = pytest.mark.spark

COUNT = 200


def test_hours_merge_to_days(spark: SparkSession) -> None:
    rows = [
        {
            "address": "a",
            "out_container": "x",
            "arrived": at(3600 * hour + number),
            "forward_ns": hour * COUNT + number + 1,
            "settle_ns": None if hour else 7,
        }
        for hour in (0, 1)
        for number in range(COUNT)
    ]
    hours = by_hour(frame(spark, DELIVERIES, rows)).cache()
    columns = ("router", "next_container", "address", "forward_ns_count", "forward_ns_p50")
    assert tuples(hours, *columns, "forward_ns_p95", "forward_ns_p99") == [
        ("r", "x", "a", COUNT, 100, 190, 198),
        ("r", "x", "a", COUNT, 300, 390, 398),
    ]
    assert tuples(hours, "settle_ns_count", "settle_ns_p50", "settle_ns_p99") == [
        (0, None, None),
        (COUNT, 7, 7),
    ]
    days = by_day(hours)
    assert tuples(days, "forward_ns_count", "forward_ns_p50", "forward_ns_p99") == [
        (2 * COUNT, COUNT, 396)
    ]
    assert tuples(days, "settle_ns_count", "settle_ns_p95") == [(COUNT, 7)]
    assert [str(row["day"]) for row in days.collect()] == ["2026-11-25"]
