"""Metrics of the router: its build, its uptime, and its log lines by level."""

from __future__ import annotations

import platform

from router import __version__
from router.build import data_plane
from router.config.log_levels import LEVELS

from support.readings import idle_hub, reading_of, samples
from support.scraping import running_node


def test_which_build_runs() -> None:
    found = samples(reading_of(idle_hub()), "trioute_build_info")
    assert found == {(__version__, data_plane(), platform.python_version()): 1}


def test_for_how_long() -> None:
    assert samples(reading_of(idle_hub()), "trioute_uptime_seconds") == {(): 1.5}


async def test_lines_of_the_log_by_level() -> None:
    async with running_node() as running:
        before = (await running.scrape()).by("level", "trioute_log_lines_total")
        assert set(before) == set(LEVELS)
        running.node.journal.modules["ROUTER"].counts["error"] += 2
        running.node.journal.modules["SERVER"].counts["error"] += 1
        after = (await running.scrape()).by("level", "trioute_log_lines_total")
    assert {level: after[level] - before[level] for level in LEVELS if level == "error"} == {
        "error": 3
    }
