"""Skew: who has most of the load."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from router_spark.jobs.skew import hot_addresses, hot_containers, link_balance
from router_telemetry.schema import FLOWS

from support.pipeline.rows import frame, tuples

pytestmark = pytest.mark.spark


def flow(
    container: str, address: str | None, count: int, role: str = "normal"
) -> dict[str, object]:
    """Return the flow row of one incoming link."""
    return {
        "direction": "in",
        "container": container,
        "address": address,
        "role": role,
        "link_name": f"{container}-{address}",
        "deliveries": count,
    }


ROWS = [
    *(flow("s", "a", 40), flow("s", "a", 30), flow("t", "a", 10), flow("t", "b", 15)),
    *(
        flow("u", None, 5),
        flow("R", None, 100, "inter-router"),
        flow("Q", None, 300, "inter-router"),
    ),
]


def test_who_is_hot(spark: SparkSession) -> None:
    flows = frame(spark, FLOWS, ROWS)
    assert tuples(hot_addresses(flows)) == [
        ("in", 1, "a", 80, 80 / 95, 80 / 95),
        ("in", 2, "b", 15, 15 / 95, 1.0),
    ]
    assert tuples(hot_containers(flows, 2)) == [
        ("in", 1, "s", 70, 0.7, 0.7),
        ("in", 2, "t", 25, 0.25, 0.95),
    ]


def test_how_even_links_are_loaded(spark: SparkSession) -> None:
    found = link_balance(frame(spark, FLOWS, ROWS))
    columns = ("role", "links", "deliveries", "mean", "most", "busiest", "most_to_mean")
    assert tuples(found, *columns) == [
        ("inter-router", 2, 400, 200.0, 300, "Q-None", 1.5),
        ("normal", 4, 100, 25.0, 70, "s-a", 2.8),
    ]
