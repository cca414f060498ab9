"""The report: one page that needs nothing else."""

from __future__ import annotations

import re
from datetime import timedelta
from html.parser import HTMLParser
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from router_spark.charts import OUTCOMES, losses_over_time, step_of
from router_spark.jobs.overview import changes, load_of_lines, outcomes_over_time, settle_times
from router_spark.page import format_rows
from router_spark.periods import Period
from router_spark.reading import checked_files, read_files
from router_spark.reporting import previous_period, report_page
from router_telemetry.schema import DELIVERIES, FLOWS

from support.pipeline.rows import at, frame, tuples
from support.pipeline.telemetry import START_US, write_world
from support.pipeline.worlds import START, Stream, World, line_of

pytestmark = pytest.mark.spark

HOUR = timedelta(hours=1)


def test_the_page_shows_what_was_planted(spark: SparkSession, tmp_path: Path) -> None:
    lines, clients = line_of("A B", **{"$s<1>": "A", "x": "B"})
    streams = (Stream("$s<1>", "a$b$", "x", 50, rejected=5),)
    write_world(tmp_path, World(lines, clients, streams))
    flows, deliveries = (
        read_files(spark, checked_files(tmp_path, each, Period()), each)
        for each in (FLOWS, DELIVERIES)
    )
    page = report_page(flows, deliveries, flows.limit(0), Period(START, START + HOUR))
    HTMLParser().feed(page)
    assert page.count("<svg") == page.count("</svg>") == 4
    assert "<script" not in page
    assert not re.search(r'(src|href)="(?!#|data:)', page)
    assert "5 of 50 deliveries were not accepted." in page
    assert "$s&lt;1&gt;" in page
    assert "<1>" not in page
    assert "2026-11-25 08:00:00 to 2026-11-25 09:00:00 UTC" in page


def test_the_period_before_is_as_long() -> None:
    assert previous_period(Period(START, START + HOUR)) == Period(START - HOUR, START)
    assert previous_period(Period(START)) is None


def flow(address: str, count: int, **columns: object) -> dict[str, object]:
    """Return the flow row of a client that has sent messages."""
    common = {"direction": "in", "role": "normal", "container": "s", "rejected": 1, "released": 0}
    return {**common, "modified": 0, "address": address, "deliveries": count, **columns}


def test_what_is_summed_up(spark: SparkSession) -> None:
    lines = {"direction": "out", "role": "inter-router", "container": "q"}
    now = frame(spark, FLOWS, [flow("a", 5), flow("a", 2), flow("b", 3), flow("", 9, **lines)])
    before = frame(spark, FLOWS, [flow("a", 1), flow("b", 3), flow("c", 10)])
    assert tuples(changes(now, before)) == [("a", 7, 1, 6), ("c", 0, 10, -10)]
    assert tuples(load_of_lines(now)) == [("r", "q", 9)]
    assert tuples(outcomes_over_time(now, 3600)) == [(START_US // 1_000_000, 10, 3, 0, 0)]
    rows = [{"hop": 1, "settle_ns": number} for number in range(1, 101)]
    assert tuples(settle_times(frame(spark, DELIVERIES, rows))) == [("r", 50, 95, 99)]


def test_time_goes_on_in_steps(spark: SparkSession) -> None:
    rows = [flow("a", 1, interval_start=at(seconds)) for seconds in (0, 59, 60, 130)]
    found = tuples(outcomes_over_time(frame(spark, FLOWS, rows), 60), "time_s", "deliveries")
    start = START_US // 1_000_000
    assert found == [(start, 2), (start + 60, 1), (start + 120, 1)]


def test_a_chart_has_no_more_steps_than_can_be_seen() -> None:
    spans = (0, 30, 3600, 86_400, 7 * 86_400, 400 * 86_400)
    assert [step_of(span) for span in spans] == [1, 1, 60, 3600, 21_600, 86_400]
    times = [at(0), at(3000)]
    chart = losses_over_time(times, {name: [1, 2] for name in OUTCOMES}, 60)
    assert "deliveries in a minute" in chart
    # without any losses as well
    assert losses_over_time([], {name: [] for name in OUTCOMES}, 1).startswith("<svg")


def test_tables_escape_what_they_show() -> None:
    text = format_rows(("<a>", "n", "share"), [("<b>", 12345, 0.125)])
    assert "<th>&lt;a&gt;</th>" in text
    assert '<td>&lt;b&gt;</td><td class="number">12,345</td><td class="number">12.5 %</td>' in text
