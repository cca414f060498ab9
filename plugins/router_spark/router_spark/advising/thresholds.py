"""Find the costs of a line at which routes change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from router_spark.advising.prediction import Model
from router_spark.advising.routes import Pair, Routes

HIGHEST_COST: Final = 1_000_000
MOST_COSTS: Final = 8
"""Maximum number of higher, and of lower, costs that are tried for one line."""


def costs_to_try(model: Model, line: Pair) -> list[int]:
    """Return costs of a line at which messages leave it, or at which more messages use it.

    There are at most `MOST_COSTS` of each.
    """
    cost = model.costs[line]
    higher = sorted(each for each in set(_leaving(model, line)) if cost < each <= HIGHEST_COST)
    lower = sorted(each for each in set(_coming(model, line)) if 1 <= each < cost)
    return _some(higher) + _some(lower)


def _some(costs: list[int]) -> list[int]:
    """Return at most `MOST_COSTS` of the costs, evenly spaced, with the first and the last."""
    if len(costs) <= MOST_COSTS:
        return costs
    last = len(costs) - 1
    return [costs[round(number * last / (MOST_COSTS - 1))] for number in range(MOST_COSTS)]


def _leaving(model: Model, line: Pair) -> Iterator[int]:
    """Yield, for each demand on the line, the line's least cost that makes another path cheaper."""
    without = Routes({pair: cost for pair, cost in model.costs.items() if pair != line})
    for demand in model.demands:
        path = model.now.path(demand.ingress, demand.egress) or ()
        if line in path or line[::-1] in path:
            other = without.tree(demand.ingress).cost.get(demand.egress)
            if other is not None:
                rest = model.now.tree(demand.ingress).cost[demand.egress] - model.costs[line]
                yield other - rest + 1


def _coming(model: Model, line: Pair) -> Iterator[int]:
    """Yield, for each demand not on the line, the highest cost at which the line attracts it."""
    first, second = (model.now.tree(end).cost for end in line)
    for demand in model.demands:
        now = model.now.tree(demand.ingress).cost.get(demand.egress)
        path = model.now.path(demand.ingress, demand.egress) or ()
        if now is None or line in path or line[::-1] in path:
            continue
        rests = [
            one[demand.ingress] + other[demand.egress]
            for one, other in ((first, second), (second, first))
            if demand.ingress in one and demand.egress in other
        ]
        if rests:
            yield now - min(rests) - 1
