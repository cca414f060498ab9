"""File with advice, which `trioute apply --advice` reads."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from router_spark.advising.observed import Direction, Line, Observed
from router_spark.advising.proposing import Proposal

VERSION: Final = 1


def as_data(
    observed: Observed, proposals: Sequence[Proposal], made: datetime, valid: timedelta
) -> dict[str, Any]:
    """Return advice, and the measurements that it is based on, as JSON data.

    `made`, the time of the advice, must have a time zone.
    """
    return {
        "version": VERSION,
        "made": made.isoformat(timespec="seconds"),
        "expires": (made + valid).isoformat(timespec="seconds"),
        "changes": [_change(each) for each in proposals],
        "lines": [_line(each) for each in observed.lines],
    }


def _change(proposal: Proposal) -> dict[str, Any]:
    return {
        "routers": list(proposal.line.pair),
        "cost": proposal.line.cost,
        "advised": proposal.cost,
        "target": proposal.target,
        "samples": proposal.samples,
        "reason": proposal.reason,
        "nowMilliseconds": round(proposal.now_ms, 3),
        "thenMilliseconds": round(proposal.then_ms, 3),
        "movedPerSecond": round(proposal.moved_per_s, 3),
        "isMeasured": proposal.is_measured,
    }


def _line(line: Line) -> dict[str, Any]:
    return {
        "routers": list(line.pair),
        "cost": line.cost,
        "there": _direction(line.there),
        "back": _direction(line.back),
        "idleMilliseconds": line.idle_ms,
    }


def _direction(direction: Direction | None) -> dict[str, Any] | None:
    if direction is None:
        return None
    return {
        "samples": direction.samples,
        "perSecond": round(direction.per_s, 3),
        "leastMilliseconds": round(direction.least_ms, 3),
        "meanMilliseconds": round(direction.mean_ms, 3),
        "isNow": direction.is_now,
    }
