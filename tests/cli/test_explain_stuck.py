"""Output of `trioute explain` about stuck and dropped receivers."""

from __future__ import annotations

from typing import Any

from router.cli.explain_stuck import format_stuck

STUCK: dict[str, Any] = {
    "connection": "3",
    "link": "3.0.1",
    "linkName": "news",
    "container": "store",
    "stuckSeconds": 12.4,
    "droppedInSeconds": 17.6,
    "text": "it accepts no transfers: it gives no credit",
}
LAST: dict[str, Any] = {
    "connection": "4",
    "container": "shop",
    "linkName": "news",
    "secondsAgo": 65.0,
    "stuckSeconds": 30.2,
    "text": "it settles none of its deliveries",
}


def test_a_router_that_knows_nothing_of_it_tells_nothing() -> None:
    assert list(format_stuck(None)) == []
    assert list(format_stuck({"stuck": [], "dropped": 0, "lastDropped": None})) == []


def test_who_is_dropped_when_and_who_was() -> None:
    waited = {**STUCK, "droppedInSeconds": None}
    told = {"stuck": [STUCK, waited], "dropped": 2, "lastDropped": LAST}
    why = "it accepts no transfers: it gives no credit"
    assert list(format_stuck(told)) == [
        ("stuck", f"store (link 3.0.1) for 12 s: {why}; dropped in 18 s"),
        ("stuck", f"store (link 3.0.1) for 12 s: {why}; waited for"),
        (
            "dropped",
            f"2 so far, the last one 65 s ago: shop (connection 4), stuck for 30 s: {LAST['text']}",
        ),
    ]
