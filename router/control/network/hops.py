"""The whole way from this router to another, hop by hop, as far as this router knows the network.

Each router on the way decides for itself, by what it knows; this is what it decides if it knows
the same. For those who ask where messages go; nothing goes by it.
"""

from __future__ import annotations

from collections.abc import Mapping

from router.control.network.graph import Graph
from router.core.routers.routing_state import Path

# In larger networks it is not worked out: each hop looks at all routers.
MOST_ROUTERS = 256


class Hops:
    """Ways through one network, each router's found once; `paths` are those of router `me`."""

    def __init__(self, graph: Graph, me: str, paths: Mapping[str, Path]) -> None:
        self._graph = graph
        self._me = me
        self._paths: dict[str, Mapping[str, Path]] = {me: paths}

    def to(self, router: str) -> list[str]:
        """All routers on the way, this one first; of a large network only the next one and the last
        one. Nothing where no way is known.
        """
        path = self._paths[self._me].get(router)
        if path is None:
            return []
        if len(self._graph.edges) > MOST_ROUTERS:
            return [self._me, *([] if path.via == router else [path.via]), router]
        way, at = [self._me], path.via
        # each hop is nearer than the one before it, so that this comes to an end
        while at != router:
            way.append(at)
            if at not in self._paths:
                self._paths[at] = self._graph.ways_from(at).paths()
            at = self._paths[at][router].via
        return [*way, router]
