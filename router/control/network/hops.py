"""Path from this router to another, hop by hop, as far as this router knows the network.

Each router on the path chooses the next hop itself, so the real path may differ while their views
of the network differ. The path is for display only; no message is routed by it.
"""

from __future__ import annotations

from collections.abc import Mapping

from router.control.network.graph import Graph
from router.core.routers.routing_state import Path

# In larger networks the path is not computed: each hop takes a computation over all routers.
MOST_ROUTERS = 256


class Hops:
    """Cache of paths through the network, grouped by the router where they begin.

    `paths` has the paths that begin at `me`, which is this router.
    """

    def __init__(self, graph: Graph, me: str, paths: Mapping[str, Path]) -> None:
        self._graph = graph
        self._me = me
        self._paths: dict[str, Mapping[str, Path]] = {me: paths}

    def to(self, router: str) -> list[str]:
        """Return the routers on the path to `router`, this router first; empty if there is no path.

        In a large network only this router, the next hop and `router` are returned.
        """
        path = self._paths[self._me].get(router)
        if path is None:
            return []
        if len(self._graph.edges) > MOST_ROUTERS:
            return [self._me, *([] if path.via == router else [path.via]), router]
        way, at = [self._me], path.via
        # each hop is nearer than the one before, so the loop ends
        while at != router:
            way.append(at)
            if at not in self._paths:
                self._paths[at] = self._graph.shortest_paths_from(at).paths()
            at = self._paths[at][router].via
        return [*way, router]
