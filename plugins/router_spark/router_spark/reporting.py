"""Collect the data of the report, and write its page."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import DataFrame, functions as sf

from router_spark import charts
from router_spark.errors import BadInput
from router_spark.jobs import losses, overview, skew, traffic
from router_spark.page import Section, format_page, format_rows
from router_spark.periods import Period

TOP = 10


def previous_period(period: Period) -> Period | None:
    """Return the preceding period of the same length, or None if a limit is missing."""
    if period.start is None or period.end is None:
        return None
    return Period(period.start - (period.end - period.start), period.start)


def report_page(
    flows: DataFrame, deliveries: DataFrame, before: DataFrame | None, period: Period
) -> str:
    """Return the report for a period; `before` has the flow records of the previous period."""
    flows = flows.cache()
    try:
        sections = [
            _matrix(flows, deliveries),
            _topology(flows),
            _latency(deliveries),
            _losses_over_time(flows),
            _reasons(deliveries),
            _top_talkers(flows),
            _changes(flows, before),
        ]
    finally:
        flows.unpersist()
    return format_page("Message network", f"From {period}.", sections)


def write_page(page: str, path: Path) -> None:
    """Write the page to a file. Raises BadInput if that fails."""
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise BadInput(f"--page {path}: cannot be written: {error.strerror}") from error


def _matrix(flows: DataFrame, deliveries: DataFrame) -> Section:
    cells = (
        traffic.matrix(deliveries, flows)
        .groupBy("origin_container", "destination")
        .agg(sf.sum("deliveries").alias("deliveries"))
        .collect()
    )
    found = {(row[0], row[1]): float(row[2]) for row in cells}
    text = "Deliveries from each sender to each receiver, the 25 with the most on either side."
    body = charts.heat_map(found) if found else "<p>Nothing was delivered.</p>"
    return Section("Who sends to whom", text, body)


def _topology(flows: DataFrame) -> Section:
    lines = {(row[0], row[1]): float(row[2]) for row in overview.load_of_lines(flows).collect()}
    body = charts.topology(lines) if lines else "<p>No routers are connected.</p>"
    return Section("Load between routers", "Sum of the deliveries in both directions.", body)


def _latency(deliveries: DataFrame) -> Section:
    rows = [
        (row[0], row[1] / 1e6, row[2] / 1e6, row[3] / 1e6)
        for row in overview.settle_times(deliveries).collect()
    ]
    text = "From a message's arrival in the network until its outcome is known there."
    body = charts.latencies(rows) if rows else "<p>Nothing was settled.</p>"
    return Section("Time until the outcome", text, body)


def _losses_over_time(flows: DataFrame) -> Section:
    seconds = sf.unix_seconds("interval_start")
    (span,) = flows.agg((sf.max(seconds) - sf.min(seconds)).alias("span_s")).collect()
    step_s = charts.step_of(span["span_s"] or 0)
    rows = overview.outcomes_over_time(flows, step_s).collect()
    times = [datetime.fromtimestamp(row["time_s"], UTC) for row in rows]
    counts = {name: [row[name] for row in rows] for name in charts.OUTCOMES}
    lost, sent = sum(map(sum, counts.values())), sum(row["deliveries"] for row in rows)
    text = f"{lost:,} of {sent:,} deliveries were not accepted."
    return Section("Losses over time", text, charts.losses_over_time(times, counts, step_s))


def _reasons(deliveries: DataFrame) -> Section:
    rows = [
        (
            row["outcome"],
            row["decided_by"] or "nobody",
            row["reason"] or "",
            row["router"],
            row["next_container"] or "",
            round(row["deliveries"]),
            row["share"],
        )
        for row in losses.losses(deliveries).limit(TOP).collect()
    ]
    names = ("outcome", "decided by", "reason", "at router", "sent to", "deliveries", "share")
    return Section("Why", "Estimated from samples.", format_rows(names, rows))


def _top_talkers(flows: DataFrame) -> Section:
    rows = [
        (
            "sends" if row["direction"] == "in" else "receives",
            row["container"],
            row["deliveries"],
            row["share"],
            row["top_share"],
        )
        for row in skew.hot_containers(flows, TOP).collect()
    ]
    names = ("", "container", "deliveries", "share", "cumulative share")
    return Section("Top talkers", "The clients with the most deliveries.", format_rows(names, rows))


def _changes(flows: DataFrame, before: DataFrame | None) -> Section:
    if before is None:
        return Section("What has changed", "There are no flow records of the previous period.", "")
    rows = [
        (row["address"], row["before"], row["now"], row["change"])
        for row in overview.changes(flows, before, TOP).collect()
    ]
    text = "Addresses with more or fewer deliveries than in the previous period of the same length."
    body = format_rows(("address", "before", "now", "change"), rows)
    return Section("What has changed", text, body)
