"""Metrics of the router as a whole."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from typing import Final

from router import __version__
from router.build import data_plane
from router.metrics.metric import Metric, Sample, unlabelled
from router.metrics.reading import Reading

_DATA_PLANE: Final = data_plane()


def _build_info(_: Reading) -> Iterable[Sample]:
    yield (__version__, _DATA_PLANE, platform.python_version()), 1


ROUTER: Final = (
    Metric(
        "trioute_build_info",
        "gauge",
        "Always 1: which version runs, with the data plane compiled or interpreted.",
        ("version", "data_plane", "python_version"),
        _build_info,
    ),
    Metric(
        "trioute_ready",
        "gauge",
        "1 while the router should be sent new connections, as `/readyz` says, and otherwise 0.",
        (),
        unlabelled(lambda r: r.is_ready),
    ),
    Metric(
        "trioute_log_lines_total",
        "counter",
        "Lines of the log by level, whether they are written or not.",
        ("level",),
        lambda r: (((level,), count) for level, count in r.log_lines.items()),
    ),
    Metric(
        "trioute_uptime_seconds",
        "gauge",
        "How long the router has been running.",
        (),
        unlabelled(lambda r: r.uptime_s),
    ),
)
