"""Propose a different cost for one line at a time, so that repeated advice comes to an end.

Three rules keep a loop of measuring and advising from oscillating:

- Advice requires a minimum predicted gain, and changes a cost by a bounded factor.
- A change that has made messages slower is undone: the measured time decides, not the prediction.
- A cost that was tried and then undone is not proposed again for this line.

Each cost of a line is tried only a few times, so the loop ends.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

import attrs

from router_spark.advising.observed import Line, Measured, Observed
from router_spark.advising.prediction import Model, time_by_line
from router_spark.advising.routes import Pair
from router_spark.advising.thresholds import HIGHEST_COST, costs_to_try

MOST_LINES: Final = 16
"""Maximum number of lines to consider for a higher cost, and for a lower one."""

LOSS: Final = 0.25
"""A change is undone if its loss exceeds this share of the gain that a change requires."""

CERTAIN: Final = 3.0
"""Number of standard errors above which a difference is significant."""


@attrs.frozen
class Bounds:
    """Limits for advice.

    A cost is multiplied or divided by at most `step`. A change must be based on at least
    `least_samples` sampled messages, and must save at least the share `gain` of the mean time of
    messages. With `only_measured`, no message is routed over a line without measurements.
    """

    step: float = 2.0
    least_samples: int = 100
    gain: float = 0.1
    only_measured: bool = False


@attrs.frozen
class Proposal:
    """Proposed cost for a line.

    `cost` is the next step towards `target`. `now_ms` is the present mean time of a message on
    lines. `then_ms` is the mean time predicted for `target` or, if the proposal undoes a change,
    the mean time measured before that change. `samples` is the number of samples on which the
    proposal rests. `moved_per_s` is the rate of messages that would take a different path.
    `is_measured` is whether sampled messages have passed all lines of the new routes.
    """

    line: Line
    cost: int
    target: int
    reason: str
    now_ms: float
    then_ms: float
    samples: int
    moved_per_s: float = 0.0
    is_measured: bool = True


def propose(observed: Observed, bounds: Bounds) -> list[Proposal]:
    """Return proposals to undo the last changes if these did harm, otherwise the best new proposal.

    The list is empty if no change is worthwhile.
    """
    undone = _undo(observed, bounds)
    if undone:
        return undone
    best = _best(observed, bounds)
    return [] if best is None else [best]


# Undoing.


def compared(observed: Observed) -> tuple[Measured, Measured] | None:
    """Return the mean times on lines before and after the last change of costs.

    Only demands that were measured both before and after count, weighted by their present rates.
    Return None if there are no such demands.
    """
    common = [
        (each.per_s, each.before, each.now)
        for each in observed.demands
        if each.before is not None and each.now is not None and each.per_s > 0
    ]
    total = sum(per_s for per_s, _, _ in common)
    if not total:
        return None
    before = _weighted([(per_s / total, measured) for per_s, measured, _ in common])
    now = _weighted([(per_s / total, measured) for per_s, _, measured in common])
    return before, now


def _weighted(parts: list[tuple[float, Measured]]) -> Measured:
    return Measured(
        sum(each.samples for _, each in parts),
        sum(weight * each.mean_ms for weight, each in parts),
        math.sqrt(sum((weight * each.error_ms) ** 2 for weight, each in parts)),
    )


def _undo(observed: Observed, bounds: Bounds) -> list[Proposal]:
    """Return proposals to undo the last change of costs, if messages have become slower."""
    measured = compared(observed)
    if measured is None:
        return []
    before, now = measured
    if min(before.samples, now.samples) < bounds.least_samples:
        return []
    loss_ms = now.mean_ms - before.mean_ms
    error_ms = math.hypot(before.error_ms, now.error_ms)
    if loss_ms <= LOSS * bounds.gain * before.mean_ms or loss_ms <= CERTAIN * error_ms:
        return []
    model = Model(observed)
    found = []
    for line in (model.lines[pair] for pair in observed.changed):
        if len(line.costs) < 2 or _was_undone(line):
            continue
        target = line.costs[-2].cost
        moved = model.moved(model.with_cost(line.pair, target))
        found.append(
            Proposal(
                line,
                bounded(line.cost, target, bounds.step),
                target,
                f"messages have been slower since its cost became {line.cost}",
                now.mean_ms,
                before.mean_ms,
                now.samples,
                sum((each.per_s for each in moved), 0.0),
            )
        )
    return found


def _was_undone(line: Line) -> bool:
    """Return whether the last change of the line's cost undid the change before."""
    costs = [each.cost for each in line.costs]
    return len(costs) > 2 and costs[-1] == costs[-3]


def _left_again(line: Line) -> set[int]:
    """Return the costs of the line that were tried and then undone."""
    costs = [each.cost for each in line.costs]
    return {
        middle
        for first, middle, last in zip(costs, costs[1:], costs[2:], strict=False)
        if first == last
    }


# Improving.


def _best(observed: Observed, bounds: Bounds) -> Proposal | None:
    model = Model(observed, only_measured=bounds.only_measured)
    if not model.now_ms or not math.isfinite(model.now_ms):
        return None
    found = [
        proposal for line in _considered(model) for proposal in _proposals(model, line, bounds)
    ]
    worth = [each for each in found if each.now_ms - each.then_ms >= bounds.gain * each.now_ms]
    return min(worth, key=_order, default=None)


def _order(proposal: Proposal) -> tuple[float, float, bool, Pair]:
    """Return a sort key: the least predicted time, then the smallest change, then lower costs."""
    line, target = proposal.line, proposal.target
    return proposal.then_ms, abs(math.log(target / line.cost)), target > line.cost, line.pair


def _considered(model: Model) -> list[Line]:
    """Return the lines on which messages spend the most and the least time, or all if few."""
    times = time_by_line(model)
    lines = sorted(model.lines.values(), key=lambda line: (times[line.pair], line.pair))
    return lines if len(lines) <= 2 * MOST_LINES else [*lines[:MOST_LINES], *lines[-MOST_LINES:]]


def _proposals(model: Model, line: Line, bounds: Bounds) -> Iterator[Proposal]:
    avoided = _left_again(line)
    for target in costs_to_try(model, line.pair):
        cost = bounded(line.cost, target, bounds.step)
        if cost in avoided or target in avoided:
            continue
        routes = model.with_cost(line.pair, target)
        then_ms = model.mean_ms(routes)
        if cost != target:
            # the first step towards the target must not make messages much slower
            between_ms = model.mean_ms(model.with_cost(line.pair, cost))
            if between_ms > model.now_ms * (1 + bounds.gain / 2):
                continue
        moved = model.moved(routes)
        samples = sum(each.now.samples for each in moved if each.now is not None)
        if samples < bounds.least_samples:
            continue
        yield Proposal(
            line,
            cost,
            target,
            "slower than other paths" if target > line.cost else "faster than other paths",
            model.now_ms,
            then_ms,
            samples,
            sum((each.per_s for each in moved), 0.0),
            model.is_measured(routes),
        )


def bounded(cost: int, target: int, step: float) -> int:
    """Return the cost closest to `target` that is at most `step` times higher or lower than `cost`.

    A small cost changes by 1, even if that is more than `step` allows.
    """
    if target > cost:
        return min(target, max(cost + 1, int(cost * step)), HIGHEST_COST)
    return max(target, min(cost - 1, math.ceil(cost / step)), 1)
