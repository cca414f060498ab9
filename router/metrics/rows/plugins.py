"""Metrics of plugins."""

from __future__ import annotations

from typing import Final

from router.metrics.metric import Metric

PLUGINS: Final = (
    Metric(
        "trioute_plugin_up",
        "gauge",
        "1 while a configured plugin runs, otherwise 0.",
        ("plugin",),
        lambda r: (((each.name,), float(each.is_running)) for each in r.plugins.states),
    ),
    Metric(
        "trioute_plugin_failures_total",
        "counter",
        "Times that a plugin was stopped because it failed, by the kind of failure: unusable, "
        "slow-start, crashed, hung or flooded.",
        ("plugin", "failure"),
        lambda r: (((name, kind), count) for name, kind, count in r.plugins.failures),
    ),
    Metric(
        "trioute_plugin_lost_events_total",
        "counter",
        "Events that a plugin subscribed to but did not take in time.",
        ("plugin",),
        lambda r: (((each.name,), each.lost_events) for each in r.plugins.states),
    ),
)
