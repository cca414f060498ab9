"""Paths: which way each message took, and where it was lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from router_spark.jobs.paths import entered_within, paths
from router_spark.periods import Period
from router_spark.reading import GREATEST, checked_files, read_files
from router_telemetry.schema import DELIVERIES

from support.pipeline.rows import at, frame, tuples
from support.pipeline.telemetry import write_world
from support.pipeline.worlds import Stream, World, line_of

pytestmark = pytest.mark.spark


def trace(number: int, way: str, last: str | None = "client") -> list[dict[str, object]]:
    """Rows of a message at routers of one letter; a blank is one that has no row of it."""
    rows: list[dict[str, object]] = []
    for hop, router in enumerate(way, 1):
        is_last = hop == len(way)
        peer = last if is_last else way[hop]
        rows.append(
            {
                "trace_id": number.to_bytes(16, "big"),
                "hop": hop,
                "router": router,
                "arrived": at(number + hop / 10),
                "out_container": peer,
                "out_role": None
                if peer is None
                else "normal"
                if peer == "client"
                else "inter-router",
                "out_link_number": None if peer is None else 1,
                "settle_ns": 1000 - hop,
            }
        )
    return [row for row in rows if row["router"] != " "]


COLUMNS = ("hops", "routers", "copies", "state", "lost_at", "lost_to", "has_loop")


@pytest.mark.parametrize(
    ("rows", "path"),
    [
        (trace(1, "A"), (1, ["A"], 1, "complete", None, None, False)),
        (trace(1, "BAC"), (3, ["B", "A", "C"], 1, "complete", None, None, False)),
        # nobody took it: the router itself knows what became of it
        (trace(1, "AB", None), (2, ["A", "B"], 0, "complete", None, None, False)),
        (trace(1, "AB", "C"), (2, ["A", "B"], 0, "lost", "B", "C", False)),
        (trace(1, "A C"), (3, ["A", "C"], 1, "gap", None, None, False)),
        (trace(1, " BC"), (3, ["B", "C"], 1, "gap", None, None, False)),
        (trace(1, "ABAC"), (4, ["A", "B", "A", "C"], 1, "complete", None, None, True)),
        (
            [*trace(1, "AB"), *trace(1, "A"), *trace(1, "AC")[1:]],
            (2, ["A", "C"], 3, "complete", None, None, False),
        ),
    ],
)
def test_the_way_of_one_message(
    spark: SparkSession, rows: list[dict[str, object]], path: tuple[object, ...]
) -> None:
    found = paths(frame(spark, DELIVERIES, rows))
    assert tuples(found, *COLUMNS) == [path]


def test_times_are_those_of_the_first_router(spark: SparkSession) -> None:
    rows = [*trace(1, "AB"), *trace(2, "A"), *trace(3, " B")]
    found = paths(frame(spark, DELIVERIES, rows))
    times = [row["settle_ns"] for row in found.orderBy("trace_id").collect()]
    assert times == [999, 999, None]
    within = entered_within(found, at(2), at(3))
    assert sorted(row["trace_id"][-1] for row in within.collect()) == [2, 3]


def test_a_longer_way_than_the_list_holds(spark: SparkSession) -> None:
    found = paths(frame(spark, DELIVERIES, trace(1, "ABCDE")), most_hops=3)
    assert tuples(found, "hops", "routers", "state") == [(5, ["A", "B", "C"], "complete")]


def test_what_was_planted_is_found(spark: SparkSession, tmp_path: Path) -> None:
    lines, clients = line_of("A B C D", s="A", x="D", y="B")
    streams = (
        Stream("s", "a", "x", 500, lost=30, lost_at="C"),
        Stream("s", "b", "y", 200, rejected=10),
        Stream("s", "c", "x", 20, way=("A", "B", "A", "B", "C", "D")),
    )
    write_world(tmp_path, World(lines, clients, streams), rows_per_file=400)
    deliveries = read_files(spark, checked_files(tmp_path, DELIVERIES, Period()), DELIVERIES)
    assert deliveries.schema["hop"].metadata == {GREATEST: 6}
    found = paths(deliveries)
    counted = found.groupBy("routers", "state", "lost_at", "lost_to", "has_loop").count()
    assert tuples(counted) == [
        (["A", "B", "A", "B", "C", "D"], "complete", None, None, True, 20),
        (["A", "B", "C", "D"], "complete", None, None, False, 470),
        (["A", "B", "C"], "lost", "C", "D", False, 30),
        (["A", "B"], "complete", None, None, False, 200),
    ]
