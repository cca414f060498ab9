"""Compute the cheapest paths through the network, with the same result at each router.

The parent of a router in a root's tree is the neighbour on a cheapest path from the root or, if
there are several, the one with the smallest id. Costs are at least 1, so the parents form a tree
that depends only on the links of the network.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from typing import Final

import attrs

from router.control.network.steps import Steps, do_all
from router.core.routers.routing_state import Path

# Routers handled in one step.
_AT_ONCE: Final = 64


@attrs.frozen
class ShortestPaths:
    """Cheapest paths from the router `root` to all routers that can be reached.

    `order` has the ids of these routers by distance, beginning with the root. `cost` and `parent`
    have the cost of the path to each router, and the router before it on the path.
    """

    root: str
    order: list[str]
    cost: dict[str, int]
    parent: dict[str, str]

    def paths(self) -> dict[str, Path]:
        """Return the path from the root to each other router, as its next hop and cost."""
        return do_all(self.find_paths())

    def find_paths(self) -> Steps[dict[str, Path]]:
        """Compute the result of `paths` in steps."""
        via: dict[str, str] = {}
        found = {}
        for number, router in enumerate(islice(self.order, 1, None), 1):
            parent = self.parent[router]
            hop = via[router] = router if parent == self.root else via[parent]
            found[router] = Path(hop, self.cost[router])
            if number % _AT_ONCE == 0:
                yield _AT_ONCE // 4
        return found


class Graph:
    """Graph of the network; links that only one of the two routers advertises are ignored."""

    def __init__(self, links: Mapping[str, Mapping[str, int]]) -> None:
        self.edges: dict[str, list[tuple[str, int]]] = {
            router: list(_both_ways(router, neighbours, links))
            for router, neighbours in links.items()
        }

    def after(self, links: Mapping[str, Mapping[str, int]], changed: Collection[str]) -> Graph:
        """Return the graph of `links`, or this graph if nothing has changed.

        Only the routers in `changed` may have other links in `links` than in this graph.
        """
        return do_all(self.find_after(links, changed))

    def find_after(
        self, links: Mapping[str, Mapping[str, int]], changed: Collection[str]
    ) -> Steps[Graph]:
        """Compute the result of `after` in steps."""
        touched = set(changed)
        done = 0
        for router in changed:
            now_there = links.get(router, ())
            touched.update(now_there)
            touched.update(neighbour for neighbour, _ in self.edges.get(router, ()))
            done += 1 + len(now_there) // 4
            if done >= _AT_ONCE:
                yield done
                done = 0
        edges: dict[str, list[tuple[str, int]]] | None = None
        for router in touched:
            neighbours = links.get(router)
            done += 1 + len(neighbours or ())
            if done >= _AT_ONCE:
                yield done
                done = 0
            now = None if neighbours is None else list(_both_ways(router, neighbours, links))
            if now != self.edges.get(router):
                edges = dict(self.edges) if edges is None else edges
                if now is None:
                    del edges[router]
                else:
                    edges[router] = now
        if edges is None:
            return self
        graph = Graph({})
        graph.edges = edges
        return graph

    def shortest_paths_from(self, root: str) -> ShortestPaths:
        """Return the cheapest paths from a root, by Dijkstra's algorithm, in O(E log V)."""
        return do_all(self.find_shortest_paths(root))

    def find_shortest_paths(self, root: str) -> Steps[ShortestPaths]:
        """Compute the result of `shortest_paths_from` in steps."""
        cost: dict[str, int] = {root: 0}
        parent: dict[str, str] = {}
        order: list[str] = []
        heap: list[tuple[int, str]] = [(0, root)]
        done: set[str] = set()
        steps = 0
        while heap:
            so_far, router = heapq.heappop(heap)
            if router in done:
                continue
            if steps >= _AT_ONCE:
                yield steps
                steps = 0
            done.add(router)
            order.append(router)
            steps += 1 + len(self.edges.get(router, ())) // 4
            for neighbour, step in self.edges.get(router, ()):
                through = so_far + step
                known = cost.get(neighbour)
                if known is None or through < known:
                    cost[neighbour] = through
                    parent[neighbour] = router
                    heapq.heappush(heap, (through, neighbour))
                elif through == known and neighbour != root and router < parent[neighbour]:
                    parent[neighbour] = router
        return ShortestPaths(root, order, cost, parent)


def _both_ways(
    router: str, neighbours: Mapping[str, int], links: Mapping[str, Mapping[str, int]]
) -> Iterator[tuple[str, int]]:
    for neighbour, cost in neighbours.items():
        back = links.get(neighbour, {}).get(router)
        if back is not None and neighbour != router:
            yield neighbour, max(cost, back)
