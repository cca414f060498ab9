"""Incidents: bursts of events with something in common."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from router_spark.jobs.incidents import Limits, incidents
from router_telemetry.schema import EVENTS

from support.pipeline.rows import at, frame, tuples

pytestmark = pytest.mark.spark


def event(kind: str, second: float, **columns: object) -> dict[str, object]:
    """One event."""
    return {"kind": kind, "time": at(second), **columns}


COLUMNS = ("incident", "subject", "routers", "start", "end", "count", "names")


def test_a_war_ends_when_there_is_peace_for_a_while(spark: SparkSession) -> None:
    def stolen(*seconds: float, link: str = "l") -> list[dict[str, object]]:
        return [
            event("link-stolen", second, link_name=link, container=f"c{index % 2}")
            for index, second in enumerate(seconds)
        ]

    rows = [*stolen(0, 30, 60), *stolen(200, 210), *stolen(300, 301, 302), *stolen(0, 1, link="m")]
    assert tuples(incidents(frame(spark, EVENTS, rows)), *COLUMNS) == [
        ("steal-war", "l", ["r"], at(0), at(60), 3, ["c0", "c1"]),
        ("steal-war", "l", ["r"], at(300), at(302), 3, ["c0", "c1"]),
    ]
    found = incidents(frame(spark, EVENTS, rows), Limits(steals=2, gap_s=1000))
    assert tuples(found, "subject", "count") == [("l", 8), ("m", 2)]


def test_each_kind(spark: SparkSession) -> None:
    rows = [
        *(event("redirected", s, container="x", target=f"h{s}:1/a") for s in range(2)),
        *(event("connection-closed", s, container="y", condition="e") for s in range(2)),
        *(event("connection-closed", s, container="y", router="q") for s in range(1)),
        *(event("neighbour-lost", s, other_router="n") for s in range(2)),
        event("routers-changed", 5, routers_found=["b"], routers_lost=[]),
        event("routers-changed", 6, routers_found=[], routers_lost=["a"], router="q"),
        event("link-attached", 5, link_name="l"),
    ]
    limits = Limits(redirects=2, closings=2, neighbour_losses=2)
    columns = ("incident", "subject", "routers", "count", "names")
    assert tuples(incidents(frame(spark, EVENTS, rows), limits), *columns) == [
        ("flapping-connection", "y", ["r"], 2, ["e"]),
        ("flapping-neighbour", "n", ["r"], 2, []),
        ("redirect-storm", "x", ["r"], 2, ["h0:1/a", "h1:1/a"]),
        ("route-change", None, ["q", "r"], 2, ["a", "b"]),
    ]
