"""Advice on costs: what is read of telemetry, and that repeated advice comes to a good end."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from bench.advice.looping import loop_all
from click.testing import CliRunner
from pyspark.sql import SparkSession
from router_spark.advise_command import advise_command, changes, lines
from router_spark.advising.advice import as_data
from router_spark.advising.observed import CostChange, Measured
from router_spark.advising.proposing import Bounds, propose
from router_spark.jobs.advise import US_A_S, Epochs, epochs_of, observe
from router_telemetry.schema import DELIVERIES, EVENTS

from router.cli.advice import read_advice

from support.pipeline.rows import at, frame, tuples
from support.pipeline.small_networks import triangle

pytestmark = pytest.mark.spark

MS = 1_000_000


def us(seconds: float) -> int:
    """Return a time in microseconds since 1970."""
    return round(at(seconds).timestamp() * US_A_S)


def told(
    seconds: float, router: str, other: str, kind: str = "neighbour-found", **columns: object
) -> dict[str, object]:
    """Return an event of a router about its neighbour."""
    return {
        "time": at(seconds),
        "router": router,
        "other_router": other,
        "kind": kind,
        **columns,
    }


def passage(
    trace: int, seconds: float, routers: str, *, first: int = 1, trip_ms: int = 10
) -> list[dict[str, object]]:
    """Return the rows of a message that passes some routers, with equal round trips."""
    rows: list[dict[str, object]] = []
    last = len(routers) - 1
    for number, router in enumerate(routers):
        is_out = number < last
        rows.append(
            {
                "arrived": at(seconds),
                "trace_id": trace.to_bytes(16, "big"),
                "hop": first + number,
                "share": 0.5,
                "router": router,
                "in_role": "inter-router" if first + number > 1 else "normal",
                "in_container": routers[number - 1] if number else "sender",
                "out_role": "inter-router" if is_out else "normal",
                "out_container": routers[number + 1] if is_out else "receiver",
                "forward_ns": 1 * MS,
                "settle_ns": (1 + (last - number) * (trip_ms + 1)) * MS,
                "decided_by": "receiver",
            }
        )
    return rows


def test_costs_change_in_epochs() -> None:
    histories = {
        ("a", "b"): (CostChange(0, 1), CostChange(100, 2), CostChange(1000, 3)),
        ("a", "c"): (CostChange(0, 1), CostChange(1010, 2)),
        ("b", "c"): (CostChange(0, 5),),
    }
    assert epochs_of(histories, 50) == Epochs(1010, 100, (("a", "b"), ("a", "c")))
    assert epochs_of({("b", "c"): (CostChange(0, 5),)}, 50) == Epochs()
    assert epochs_of({("a", "b"): histories["a", "b"][:2]}, 50) == Epochs(100, None, (("a", "b"),))


def test_a_network_is_observed(spark: SparkSession) -> None:
    events = frame(
        spark,
        EVENTS,
        [
            told(0, "a", "b", cost=3),
            told(1, "b", "a", cost=3),
            told(2, "b", "c", cost=1),
            told(3, "a", "b", cost=3),
            told(100, "a", "b", "neighbour-cost-changed", cost=4),
            # one that was lost and is not there any more
            told(4, "a", "d", cost=1),
            told(50, "a", "d", "neighbour-lost"),
            told(60, "b", "c", "neighbour-measured", round_trip_us=4000),
            told(70, "c", "b", "neighbour-measured", round_trip_us=3500),
            told(5, "c", "a", cost=9),
        ],
    )
    rows = [
        *passage(1, 10, "abc", trip_ms=10),
        *passage(2, 60, "abc", trip_ms=30),
        # in the moment of the change nobody knows which cost counts
        *passage(3, 101, "abc", trip_ms=500),
        *passage(4, 110, "abc", trip_ms=20),
        *passage(5, 120, "ab", trip_ms=40),
        *passage(6, 130, "ab", trip_ms=60),
        # where it came in was not sampled
        *passage(7, 140, "ab", first=2),
    ]
    (observed,) = observe(frame(spark, DELIVERIES, rows), events).values()
    assert observed.changed == (("a", "b"),)
    ab, ac, bc = observed.lines
    assert ab.costs == (CostChange(us(0), 3), CostChange(us(100), 4))
    assert (ac.pair, ac.cost, ac.there, ac.idle_ms) == (("a", "c"), 9, None, None)
    assert ab.there is not None
    assert (ab.there.samples, ab.there.least_ms, ab.there.mean_ms) == (4, 10, 32.5)
    # two for each of four samples, in 30 seconds
    assert ab.there.per_s == pytest.approx(8 / 30)
    assert bc.there is not None
    assert (bc.costs, bc.idle_ms, bc.back) == ((CostChange(us(2), 1),), 3.5, None)
    assert (bc.there.samples, bc.there.least_ms, bc.there.mean_ms) == (1, 20, 20)
    assert bc.there.per_s == pytest.approx(2 / 30)
    found = {each.ingress + each.egress: each for each in observed.demands}
    assert set(found) == {"ab", "ac"}
    assert found["ab"].now is not None
    assert (found["ab"].now.samples, found["ab"].now.mean_ms, found["ab"].before) == (2, 50, None)
    assert found["ac"].now == Measured(1, 40, 0)
    assert found["ac"].before is not None
    assert (found["ac"].before.samples, found["ac"].before.mean_ms) == (2, 40)
    assert found["ac"].per_s == pytest.approx(2 / 30)


def test_what_was_before_the_period_only_says_what_lines_cost_then(spark: SparkSession) -> None:
    events = frame(
        spark,
        EVENTS,
        [
            told(0, "a", "b", cost=3),
            told(10, "a", "b", "neighbour-cost-changed", cost=5),
            told(20, "a", "b", "neighbour-cost-changed", cost=3),
        ],
    )
    rows = frame(spark, DELIVERIES, passage(1, 40, "ab"))
    (observed,) = observe(rows, events, start=at(15)).values()
    assert [each.cost for each in observed.lines[0].costs] == [5, 3]
    (observed,) = observe(rows, events, start=at(30)).values()
    assert [each.cost for each in observed.lines[0].costs] == [3]
    assert observed.changed == ()
    assert observe(rows, events.where("false")) == {}


def test_tables_and_the_file(spark: SparkSession) -> None:
    observed = triangle(1)
    proposals = propose(observed, Bounds())
    found = tuples(changes(spark, proposals), "line", "cost", "advised", "target")
    assert found == [("a-c", 1, 2, 3)]
    assert tuples(lines(spark, observed), "line", "cost", "there_mean_ms", "back_mean_ms") == [
        ("a-b", 1, None, None),
        ("a-c", 1, 60.0, None),
        ("b-c", 1, None, None),
    ]
    now = datetime(2026, 1, 1, tzinfo=UTC)
    data = as_data(observed, proposals, now, at(1) - at(0))
    (change,) = read_advice(json.dumps(data), now).changes
    assert (change.routers, change.advised, change.samples) == (("a", "c"), 2, 1000)
    assert [each["idleMilliseconds"] for each in data["lines"]] == [4.0, None, 6.0]


def test_a_file_needs_a_folder(tmp_path: Path) -> None:
    result = CliRunner().invoke(advise_command, [str(tmp_path), "--advice", "no/folder/a.json"])
    assert result.exit_code != 0
    assert "there is no folder no/folder" in result.output


def test_repeated_advice_comes_to_an_end_and_no_network_gets_slower(
    spark: SparkSession, tmp_path: Path
) -> None:
    courses = loop_all(spark, (109, 128), tmp_path, Bounds(), 12, lambda _: None)
    for course in courses:
        assert course.has_ended
        assert course.rounds
        assert course.most_returns() <= 2
        assert course.gain > 0.1
