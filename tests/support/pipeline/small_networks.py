"""Small networks in the form that telemetry has."""

from __future__ import annotations

from router_spark.advising.observed import (
    CostChange,
    Demand,
    Direction,
    Line,
    Measured,
    Observed,
)


def line(
    pair: str,
    *costs: int,
    there: Direction | None = None,
    back: Direction | None = None,
    idle_ms: float | None = None,
) -> Line:
    """Return a line between two routers of one letter each, with its costs over time."""
    one, other = tuple(pair)
    history = tuple(CostChange(number, cost) for number, cost in enumerate(costs))
    return Line((one, other), history, there, back, idle_ms)


def measured(per_s: float, least_ms: float, mean_ms: float | None = None) -> Direction:
    """Return a direction that many messages have passed."""
    mean = least_ms if mean_ms is None else mean_ms
    return Direction(1000, float(per_s), float(least_ms), float(mean))


def demand(
    path: str, per_s: float, now_ms: float | None = None, before_ms: float | None = None
) -> Demand:
    """Messages from one router to another."""
    ingress, egress = tuple(path)
    now, before = (
        None if ms is None else Measured(1000, ms, 0.01 * ms) for ms in (now_ms, before_ms)
    )
    return Demand(ingress, egress, float(per_s), now, before)


def triangle(*costs: int, direct_ms: float = 60.0, changed: bool = False) -> Observed:
    """Messages from a to c by their own line, which has had these costs; the way by b takes 10."""
    return Observed(
        (
            line("ab", 1, idle_ms=4.0),
            line("ac", *costs, there=measured(50, direct_ms)),
            line("bc", 1, idle_ms=6.0),
        ),
        (demand("ac", 50, direct_ms, 10.0 if changed else None),),
        (("a", "c"),) if changed else (),
    )
