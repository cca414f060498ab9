"""The traffic matrix: estimated from samples, fitted to exact totals."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from router_spark.jobs.traffic import matrix, totals
from router_spark.periods import Period
from router_spark.reading import checked_files, read_files
from router_telemetry.schema import DELIVERIES, FLOWS, Dataset

from support.pipeline.rows import frame, tuples
from support.pipeline.telemetry import write_world
from support.pipeline.worlds import Stream, World, line_of

pytestmark = pytest.mark.spark


def sampled(count: int, receiver: str, first: int, origin: str = "s") -> list[dict[str, object]]:
    """Deliveries that came in and left at the same router, one in ten of all."""
    return [
        {
            "trace_id": number.to_bytes(16, "big"),
            "hop": 1,
            "share": 0.1,
            "origin_container": origin,
            "address": "a",
            "in_role": "normal",
            "out_container": receiver,
            "out_role": "normal",
            "out_link_number": 1,
            "size": 50,
        }
        for number in range(first, first + count)
    ]


def flow(direction: str, container: str, address: str | None, count: int) -> dict[str, object]:
    """Return the flow row of one link of a client."""
    return {
        "direction": direction,
        "container": container,
        "address": address,
        "role": "normal",
        "deliveries": count,
        "accepted": count,
    }


def test_estimates_are_fitted_to_both_sides(spark: SparkSession) -> None:
    deliveries = frame(spark, DELIVERIES, [*sampled(3, "x", 0), *sampled(1, "y", 10)])
    flows = frame(
        spark,
        FLOWS,
        [
            *(flow("in", "s", "a", 30), flow("in", "s", "a", 20)),
            *(flow("out", "x", "a", 40), flow("out", "y", "a", 10)),
        ],
    )
    found = {row["destination"]: row for row in matrix(deliveries, flows).collect()}
    assert [found[each]["sampled"] for each in "xy"] == [3, 1]
    assert [found[each]["estimate"] for each in "xy"] == [30, 10]
    assert [found[each]["deliveries"] for each in "xy"] == pytest.approx([40, 10])
    assert [found[each]["octets"] for each in "xy"] == pytest.approx([2000, 500])
    # each sampled delivery adds 0.9 / 0.01 to the variance
    assert found["x"]["estimate_error"] == pytest.approx(math.sqrt(3 * 90))
    # each receiver had only one sender
    assert [found[each]["deliveries_error"] for each in "xy"] == [0, 0]


def test_what_is_known_on_one_side_only_has_an_error(spark: SparkSession) -> None:
    deliveries = frame(spark, DELIVERIES, [*sampled(3, "x", 0), *sampled(1, "y", 10)])
    flows = frame(spark, FLOWS, [flow("in", "s", "a", 50)])
    found = {row["destination"]: row for row in matrix(deliveries, flows).collect()}
    assert [found[each]["deliveries"] for each in "xy"] == pytest.approx([37.5, 12.5])
    error = 50 / 40 * math.sqrt(270 / 16 + 90 * 9 / 16)
    assert [found[each]["deliveries_error"] for each in "xy"] == pytest.approx([error, error])


def test_what_is_certain_stays(spark: SparkSession) -> None:
    """`t` sends to `x` only; what else `x` has received is from `s`."""
    deliveries = frame(
        spark,
        DELIVERIES,
        [*sampled(3, "x", 0), *sampled(1, "y", 10), *sampled(5, "x", 20, "t")],
    )
    flows = frame(
        spark,
        FLOWS,
        [
            *(flow("in", "s", "a", 40), flow("in", "t", "a", 60)),
            *(flow("out", "x", "a", 85), flow("out", "y", "a", 15)),
        ],
    )
    columns = ("origin_container", "destination", "deliveries", "deliveries_error")
    assert tuples(matrix(deliveries, flows), *columns) == [
        ("s", "x", pytest.approx(25), 0),
        ("s", "y", pytest.approx(15), 0),
        ("t", "x", pytest.approx(60), 0),
    ]


def test_what_goes_to_one_receiver_has_no_error(spark: SparkSession) -> None:
    deliveries = frame(spark, DELIVERIES, sampled(3, "x", 0))
    flows = frame(spark, FLOWS, [flow("in", "s", "a", 47)])
    (row,) = matrix(deliveries, flows).collect()
    assert (row["deliveries"], row["deliveries_error"]) == (pytest.approx(47), 0)


def test_what_goes_to_all_receivers_was_sent_once(spark: SparkSession) -> None:
    deliveries = frame(spark, DELIVERIES, [*sampled(4, "x", 0), *sampled(4, "y", 0)])
    flows = frame(
        spark,
        FLOWS,
        [flow("in", "s", "a", 44), flow("out", "x", "a", 44), flow("out", "y", "a", 44)],
    )
    assert tuples(matrix(deliveries, flows), "destination", "deliveries", "deliveries_error") == [
        ("x", pytest.approx(44), 0),
        ("y", pytest.approx(44), 0),
    ]


def test_a_container_with_an_anonymous_link_is_fitted_as_a_whole(spark: SparkSession) -> None:
    deliveries = frame(spark, DELIVERIES, [*sampled(4, "x", 0), *sampled(4, "y", 10, "t")])
    flows = frame(
        spark,
        FLOWS,
        [flow("in", "s", None, 30), flow("in", "s", "a", 20), flow("in", "t", "a", 60)],
    )
    assert tuples(matrix(deliveries, flows), "origin_container", "deliveries") == [
        ("s", pytest.approx(50)),
        ("t", pytest.approx(60)),
    ]


def test_without_totals_the_estimate_stands(spark: SparkSession) -> None:
    deliveries = frame(spark, DELIVERIES, sampled(4, "x", 0))
    (row,) = matrix(deliveries, frame(spark, FLOWS, [])).collect()
    assert (row["deliveries"], row["deliveries_error"]) == (40, row["estimate_error"])


def test_totals_are_those_of_clients(spark: SparkSession) -> None:
    flows = frame(
        spark,
        FLOWS,
        [
            *(flow("in", "s", "a", 3), flow("in", "s", "a", 4), flow("out", "x", "a", 5)),
            {**flow("out", "router", None, 7), "role": "inter-router"},
        ],
    )
    columns = ("direction", "container", "address", "deliveries", "accepted")
    assert tuples(totals(flows), *columns) == [("in", "s", "a", 7, 7), ("out", "x", "a", 5, 5)]


def read(spark: SparkSession, folder: Path, dataset: Dataset) -> DataFrame:
    """Read all files of a dataset."""
    return read_files(spark, checked_files(folder, dataset, Period()), dataset)


def test_what_was_planted_is_found(spark: SparkSession, tmp_path: Path) -> None:
    lines, clients = line_of("A B C", s="A", t="B", x="C", y="B")
    streams = (
        Stream("s", "a", "x", 4000),
        Stream("s", "a", "y", 1000),
        Stream("t", "a", "x", 2000, lost=400, lost_at="B"),
        Stream("t", "b", "y", 500),
    )
    world = World(lines, clients, streams, share=0.2)
    write_world(tmp_path, world)
    found = {
        (row["origin_container"], row["address"], row["destination"]): row
        for row in matrix(read(spark, tmp_path, DELIVERIES), read(spark, tmp_path, FLOWS)).collect()
    }
    planted = {(each.origin, each.address, each.destination): each for each in streams}
    assert found.keys() == planted.keys()
    for key, row in found.items():
        stream = planted[key]
        arrived = stream.deliveries - stream.lost
        assert abs(row["deliveries"] - arrived) <= 4 * max(row["deliveries_error"], 1)
    assert found["t", "b", "y"]["deliveries"] == pytest.approx(500)
    received = sum(found[origin, "a", "x"]["deliveries"] for origin in "st")
    assert received == pytest.approx(5600)
