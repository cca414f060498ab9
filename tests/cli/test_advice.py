"""Files with advice are read whole or not at all, and no change goes beyond the bounds."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from router.cli.advice import BadAdvice, Bounds, CostChange, read_advice

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
CHANGE: dict[str, Any] = {
    "routers": ["a", "b"],
    "cost": 4,
    "advised": 8,
    "target": 20,
    "samples": 500,
    "reason": "slower than other paths",
    "nowMilliseconds": 40.5,
    "thenMilliseconds": 12,
    "movedPerSecond": 7.5,
    "isMeasured": True,
}


def written(change: dict[str, Any] | None = None, **fields: Any) -> str:
    """Return the text of a file with one change, made an hour ago."""
    data = {
        "version": 1,
        "made": (NOW - timedelta(hours=1)).isoformat(),
        "expires": (NOW + timedelta(hours=1)).isoformat(),
        "changes": [CHANGE | (change or {})],
        "lines": [],
    }
    return json.dumps(data | fields)


def test_advice_is_read() -> None:
    (change,) = read_advice(written(), NOW).changes
    assert change == CostChange(
        ("a", "b"), 4, 8, 20, 500, "slower than other paths", 40.5, 12.0, 7.5
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[router]", "is not JSON"),
        ("[]", "is not a file with advice"),
        ('{"changes": []}', "has version None; this release reads version 1"),
        (written(version=2), "has version 2"),
        (written(expires=NOW.isoformat()), "expired on 2026-03-01 at 12:00 UTC"),
        (written(expires="2999-01-01T00:00:00"), "a time without a time zone"),
        (written(expires="soon"), "advice.expires"),
        (written({"advised": "8"}), "advice.changes[0].advised"),
        (written({"advised": True}), "advice.changes[0].advised"),
        (written({"routers": ["a"]}), "advice.changes[0].routers"),
        (written(changes=[{"cost": 1}]), "required field missing @ advice.changes[0].routers"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(text: str, words: str) -> None:
    with pytest.raises(BadAdvice, match=words.replace("[", r"\[").replace(".", r"\.")):
        read_advice(text, NOW)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, ""),
        ({"advised": 2}, ""),
        ({"advised": 9}, "at most a factor of 2 is applied at once (--step)"),
        ({"advised": 1}, "at most a factor of 2"),
        ({"cost": 1, "advised": 2}, ""),
        ({"cost": 3, "advised": 1}, "at most a factor of 2"),
        ({"cost": 2, "advised": 1}, ""),
        ({"advised": 0}, "a cost is from 1 to 1000000"),
        ({"cost": 900_000, "advised": 1_000_001}, "a cost is from 1 to 1000000"),
        ({"samples": 99}, "it has 99 samples, fewer than 100 (--least-samples)"),
    ],
)
def test_bounds(change: dict[str, Any], words: str) -> None:
    (read,) = read_advice(written(change), NOW).changes
    assert Bounds(2.0, 100).objection(read).startswith(words)
    assert bool(Bounds(2.0, 100).objection(read)) == bool(words)


def test_a_step_of_one_still_moves_by_one() -> None:
    (read,) = read_advice(written({"advised": 5}), NOW).changes
    assert Bounds(1.0, 1).objection(read) == ""
