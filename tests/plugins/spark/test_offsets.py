"""Clock offsets, from the fastest messages."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from router_spark.errors import BadInput
from router_spark.jobs.offsets import Offset, OneWayTime, offsets, one_way_times, solve
from router_spark.periods import Period
from router_spark.reading import checked_files, read_files
from router_telemetry.schema import DELIVERIES

from support.pipeline.rows import at, frame, tuples
from support.pipeline.telemetry import write_world
from support.pipeline.worlds import Line, Stream, World

pytestmark = pytest.mark.spark


def hop(number: int, hop: int, router: str, **columns: object) -> dict[str, object]:
    """One row of a trace."""
    return {"trace_id": number.to_bytes(16, "big"), "hop": hop, "router": router, **columns}


def test_edges_have_the_least_delay(spark: SparkSession) -> None:
    sent = {"out_container": "B", "out_role": "inter-router", "forward_ns": 5000}
    came = {"in_container": "A", "in_role": "inter-router"}
    rows = [
        *(hop(1, 1, "A", arrived=at(1), **sent), hop(1, 2, "B", arrived=at(1.5), **came)),
        *(hop(2, 1, "A", arrived=at(2), **sent), hop(2, 2, "B", arrived=at(2.1), **came)),
        # no row where it came in, and none where it left
        *(hop(3, 1, "A", arrived=at(3), **sent), hop(4, 2, "B", arrived=at(0), **came)),
    ]
    assert tuples(one_way_times(frame(spark, DELIVERIES, rows))) == [("A", "B", 99_995, 2)]


def test_the_error_is_half_the_asymmetry() -> None:
    # 100 us there, 300 us back, and B is 1000 us ahead
    found = solve([OneWayTime("A", "B", 1100), OneWayTime("B", "A", -700)], ["A", "B"], None)
    assert found[0] == Offset("A", "A", 0, 0)
    assert found[1].offset_us == pytest.approx(900)
    assert found[1].bound_us == pytest.approx(200)


def test_routers_that_are_not_connected_have_none() -> None:
    two_ways = [
        *(OneWayTime("B", "C", 10), OneWayTime("C", "B", 10)),
        *(OneWayTime("C", "D", 30), OneWayTime("D", "C", -10)),
        # messages went only one way
        OneWayTime("A", "B", 10),
    ]
    found = solve(two_ways, ["A", "B", "C", "D", "E"], None)
    assert [(each.router, each.reference) for each in found] == [(name, "B") for name in "ABCDE"]
    assert [each.offset_us for each in found] == [
        *(None, pytest.approx(0), pytest.approx(0), pytest.approx(20), None)
    ]
    assert [each.bound_us for each in found][1:4] == [pytest.approx(each) for each in (0, 10, 20)]
    assert solve(two_ways, ["A"], "E")[1] == Offset("B", "E", None, None)
    assert solve([], [], None) == []


def test_the_shorter_round_trip_counts_more() -> None:
    """Three routers in a ring whose measurements contradict each other."""
    ring = [
        *(OneWayTime("A", "B", 10), OneWayTime("B", "A", 10)),
        *(OneWayTime("B", "C", 10), OneWayTime("C", "B", 10)),
        *(OneWayTime("A", "C", 1500), OneWayTime("C", "A", -500)),
    ]
    found = solve(ring, ["A", "B", "C"], "A")
    offset = found[2].offset_us
    assert offset is not None
    assert 0 < offset < 1
    bound = found[2].bound_us
    assert bound is not None
    assert bound == pytest.approx(20, abs=2)


def test_what_was_planted_is_found(spark: SparkSession, tmp_path: Path) -> None:
    lines = (Line("A", "B"), Line("B", "C"), Line("A", "C"))
    clients = {"a": "A", "b": "B", "c": "C"}
    streams = tuple(Stream(x, "q", y, 300) for x in "abc" for y in "abc" if x != y)
    planted = {"B": 12_000, "C": -7_000}
    write_world(tmp_path, World(lines, clients, streams, planted))
    deliveries = read_files(spark, checked_files(tmp_path, DELIVERIES, Period()), DELIVERIES)
    found = {row["router"]: row for row in offsets(deliveries, "A").collect()}
    for router in "ABC":
        off_by = abs(found[router]["offset_us"] - planted.get(router, 0))
        assert off_by < 10
        assert off_by <= found[router]["bound_us"] < 300
    with pytest.raises(BadInput, match="--reference Z: not a router here; routers are A, B, C"):
        offsets(deliveries, "Z")
