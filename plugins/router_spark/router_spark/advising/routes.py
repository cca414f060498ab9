"""Routes through a network for given costs of its lines, chosen as its routers choose them."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from typing import TypeAlias

import attrs

Pair: TypeAlias = tuple[str, str]
"""Routers at the ends of a line, in alphabetical order; or of one direction, sender first."""


def line_between(one: str, other: str) -> Pair:
    """Return the line between two routers, as their names in alphabetical order."""
    return (one, other) if one < other else (other, one)


@attrs.frozen
class Tree:
    """Shortest paths from one router: their costs and next hops, by destination."""

    cost: dict[str, int]
    via: dict[str, str]


class Routes:
    """Routes through a network for given costs of its lines."""

    def __init__(self, costs: Mapping[Pair, int]) -> None:
        self.costs = costs
        self._neighbours: dict[str, list[tuple[str, int]]] = {}
        for (one, other), cost in costs.items():
            self._neighbours.setdefault(one, []).append((other, cost))
            self._neighbours.setdefault(other, []).append((one, cost))
        self._trees: dict[str, Tree] = {}

    def tree(self, root: str) -> Tree:
        """Return the shortest paths from a router: Dijkstra's algorithm, in O(E log V).

        If a router can be reached at the same cost through several neighbours, the one with the
        smallest id is chosen, as in the routers themselves.
        """
        found = self._trees.get(root)
        if found is None:
            found = self._trees[root] = self._grow(root)
        return found

    def _grow(self, root: str) -> Tree:
        cost, parent, via = {root: 0}, dict[str, str](), dict[str, str]()
        heap, done = [(0, root)], set[str]()
        while heap:
            so_far, router = heapq.heappop(heap)
            if router in done:
                continue
            done.add(router)
            if router != root:
                before = parent[router]
                via[router] = router if before == root else via[before]
            for neighbour, step in self._neighbours.get(router, ()):
                through = so_far + step
                known = cost.get(neighbour)
                if known is None or through < known:
                    cost[neighbour], parent[neighbour] = through, router
                    heapq.heappush(heap, (through, neighbour))
                elif through == known and neighbour != root and router < parent[neighbour]:
                    parent[neighbour] = router
        return Tree(cost, via)

    def path(self, start: str, end: str) -> list[Pair] | None:
        """Return the hops (sender, receiver) from `start` to `end`, or None if there is no path."""
        hops: list[Pair] = []
        here = start
        while here != end:
            following = self.tree(here).via.get(end)
            if following is None:
                return None
            hops.append((here, following))
            here = following
        return hops
