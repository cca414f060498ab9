"""A histogram's buckets are cumulated and end with everything."""

from __future__ import annotations

import pytest

from router.metrics.metric import HistogramValue, Metric, unlabelled

from support.readings import idle_hub, reading_of


def test_buckets_are_cumulated() -> None:
    spread = HistogramValue((0.001, 0.5, 10.0), (3, 0, 2, 1), 7.5)
    assert spread.buckets() == [("0.001", 3), ("0.5", 3), ("10", 5), ("+Inf", 6)]


def test_each_bound_needs_its_count() -> None:
    with pytest.raises(ValueError, match="zip"):
        HistogramValue((1.0,), (1,), 1.0).buckets()


def test_what_a_metric_is_by() -> None:
    for labels, by in {("address",): (True, False), ("connection", "user"): (False, True)}.items():
        metric = Metric("trioute_x", "gauge", "x.", labels, lambda _: [])
        assert (metric.is_by_address, metric.is_by_connection) == by


def test_one_has_no_labels() -> None:
    assert unlabelled(lambda r: r.uptime_s)(reading_of(idle_hub())) == [((), 1.5)]
