"""Compute the routes when links have changed, in steps if the network is large.

The old routes are used until the new ones are computed. In a network of few routers, the same turn
computes them (docs/decisions/0082).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from router.control.network.graph import Graph, ShortestPaths
from router.control.network.link_states import LinkStates
from router.control.network.links import RouterLinks
from router.control.network.steps import Steps, do_some
from router.control.network.trees import Trees
from router.core.routers.routing_state import Path, Tree

# In networks with more routers than this, there is a pause between two computations, of this many
# seconds for each router: some twenty times as long as a computation takes.
_MANY: Final = 64
_PAUSE_S: Final = 0.000_1
# How much work is done in the turn that begins a computation (`steps`), and in each later one.
AT_FIRST: Final = 128
MOST_AT_ONCE: Final = 192


class Routes:
    """Computation of the routes from this router, `me`, to all other routers."""

    def __init__(self, me: str, links: RouterLinks, states: LinkStates, now: float) -> None:
        self._me = me
        self._links = links
        self._states = states
        self.ways = ShortestPaths(me, [me], {me: 0}, {})
        self.paths: Mapping[str, Path] = self.ways.paths()
        # the links of all routers as of the last computation, and the routers with newer ones
        self._known: dict[str, Mapping[str, int]] = {me: {}}
        self._changed: set[str] = set()
        self.graph = Graph(self._known)
        self.tree_of: Callable[[str], Tree | None] = Trees(me, self.graph, self.ways).tree_of
        # whether routes are to be computed, and if so without a pause; and when they were computed
        # last, in seconds
        self._is_dirty = False
        self._is_urgent = False
        self._computed_at = now - 3600
        self.changed_at: float | None = None
        # the computation under way, and whether it has found anything new
        self._work: Steps[None] | None = None
        self._is_new = False

    def links_changed(self, router: str, *, is_urgent: bool = False) -> None:
        """Note that a router's links have changed; if `is_urgent`, compute new routes at once."""
        self._changed.add(router)
        self._is_dirty = True
        self._is_urgent |= is_urgent

    @property
    def is_behind(self) -> bool:
        """Return whether a computation is under way."""
        return self._work is not None

    def due_at(self) -> float:
        """Return when the next computation is due, in seconds; infinity if none is."""
        return self._computable_at() if self._is_dirty else float("inf")

    def _computable_at(self) -> float:
        routers = len(self._states.records)
        return self._computed_at + (_PAUSE_S * routers if routers > _MANY else 0.0)

    def tick(self, now: float) -> bool:
        """Begin a computation if one is due; return whether it has already changed the routes."""
        if self._work is None and self._is_dirty:
            if self._is_urgent or now >= self._computable_at():
                self._work = self._compute(now)
                return self.work(AT_FIRST)
        return False

    def work(self, most: int = MOST_AT_ONCE) -> bool:
        """Continue a computation; return whether it is done and has changed the routes."""
        if self._work is None or not do_some(self._work, most):
            return False
        self._work = None
        return self._is_new

    def _compute(self, now: float) -> Steps[None]:
        """Find the cheapest routes, and with them the routers that can be reached."""
        self._is_dirty = self._is_urgent = self._is_new = False
        known, changed = self._known, {*self._changed, self._me}
        self._changed.clear()
        for number, router in enumerate(changed, 1):
            if number % MOST_AT_ONCE == 0:
                yield MOST_AT_ONCE // 4
            record = self._states.records.get(router)
            if record is not None:
                known[router] = record.state.links
            else:
                known.pop(router, None)
        known[self._me] = self._links.costs()
        graph = yield from self.graph.find_after(known, changed)
        if graph is self.graph:
            return
        self._computed_at = self.changed_at = now
        ways = yield from graph.find_shortest_paths(self._me)
        paths = yield from ways.find_paths()
        self.graph, self.ways, self.paths = graph, ways, paths
        self.tree_of = Trees(self._me, graph, ways).tree_of
        self._is_new = True
