"""Metrics of auto-links, which the router itself attaches to containers."""

from __future__ import annotations

from typing import Final

from router.metrics.metric import Metric, unlabelled

AUTO_LINKS: Final = (
    Metric(
        "trioute_auto_links",
        "gauge",
        "Auto-links by status: inactive while their container is not connected; with several "
        "connections, the best status counts. Those that are being removed are quiescing, and "
        "then idle.",
        ("status",),
        lambda r: (((status,), count) for status, count in r.auto_links.by_status.items()),
    ),
    Metric(
        "trioute_auto_link_attempts_total",
        "counter",
        "Attempts to attach auto-links.",
        (),
        unlabelled(lambda r: r.auto_links.attempts),
    ),
    Metric(
        "trioute_auto_link_failures_total",
        "counter",
        "Auto-links that were refused, detached, or not answered; not those that ended with "
        "their connection.",
        (),
        unlabelled(lambda r: r.auto_links.failures),
    ),
)
