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
        "Always 1: the version that runs, and whether its data plane is compiled or interpreted.",
        ("version", "data_plane", "python_version"),
        _build_info,
    ),
    Metric(
        "trioute_ready",
        "gauge",
        "1 while the router should receive new connections, as reported by `/readyz`, otherwise 0.",
        (),
        unlabelled(lambda r: r.is_ready),
    ),
    Metric(
        "trioute_log_lines_total",
        "counter",
        "Log lines by level, whether written or not.",
        ("level",),
        lambda r: (((level,), count) for level, count in r.log_lines.items()),
    ),
    Metric(
        "trioute_uptime_seconds",
        "gauge",
        "Seconds since the router started.",
        (),
        unlabelled(lambda r: r.uptime_s),
    ),
)
