"""GET-LOG: the last lines in Dispatch's shape."""

from __future__ import annotations

from typing import Any

import pytest

from router.logs.recent_lines import Line
from router.management.get_log import get_log
from router.management.requests import Refused, Request

from support.entities import view_of
from support.loopback import running_node


async def lines(limit: Any) -> list[list[Any]]:
    """Return the answer of a router that has written three lines."""
    async with running_node() as running:
        for number in range(3):
            running.node.journal.recent.add(Line("AGENT", "info", f"line {number}", 1000 + number))
        return get_log(view_of(running), Request({"limit": limit}, {}))


@pytest.mark.parametrize(
    ("limit", "count"), [(None, 3), (0, 3), (1, 1), (2, 2), ("2", 2), (99, 3), (2**60, 3)]
)
async def test_the_last_lines_are_told_oldest_first(limit: Any, count: int) -> None:
    told = await lines(limit)
    assert told == [
        ["AGENT", "info", f"line {number}", None, None, 1000 + number]
        for number in range(3 - count, 3)
    ]


@pytest.mark.parametrize("limit", [-1, True, "many", "9" * 5000, 1.5, [], ""])
async def test_other_limits_are_refused(limit: Any) -> None:
    async with running_node() as running:
        with pytest.raises(Refused, match="limit must be an integer of at least 0"):
            get_log(view_of(running), Request({"limit": limit}, {}))
