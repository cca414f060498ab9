"""Report new and lost neighbours, changed costs, and changes of the reachable routers."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping

from router.core.routers.news import (
    NeighbourCostChanged,
    NeighbourFound,
    NeighbourLost,
    News,
    RoutersChanged,
)
from router.core.routers.routing_state import Path

Neighbours = Mapping[str, tuple[int, int]]
"""Connection in use to each neighbour: its number and its cost."""


class PathNews:
    """Comparison of each set of paths with the previous one."""

    def __init__(self) -> None:
        self._neighbours: Neighbours = {}
        self._routers: Mapping[str, Path] = {}

    def compare(self, neighbours: Neighbours, paths: Mapping[str, Path]) -> Iterator[News]:
        """Yield the changes since the last call; do not modify the arguments afterwards."""
        before, self._neighbours = self._neighbours, neighbours
        known, self._routers = self._routers, paths
        yield from (NeighbourLost(router) for router in before if router not in neighbours)
        for router, (number, cost) in neighbours.items():
            old = before.get(router)
            if old is None or old[0] != number:
                yield NeighbourFound(router, number, cost)
            elif old[1] != cost:
                yield NeighbourCostChanged(router, number, cost, old[1])
        came, went = _missing(paths, known), _missing(known, paths)
        if came or went:
            yield RoutersChanged(came, went, len(paths))


def _missing(routers: Mapping[str, Path], others: Container[str]) -> tuple[str, ...]:
    return tuple(router for router in routers if router not in others)
