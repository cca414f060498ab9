"""Multicast trees, each from its root, as this router sees them.

Each router in a tree has a digest: BLAKE2b, with 16 octets, over its id and the digests of its
children, in the order of their ids. If two routers have the same digest for the root of a branch,
they see the same branch, even if they see other parts of the tree differently.
"""

from __future__ import annotations

from hashlib import blake2b

from router.control.network.graph import Graph, ShortestPaths
from router.core.routers.routing_state import Branch, Tree

DIGEST_BYTES = 16


class Trees:
    """Cache of multicast trees for one state of the network, each computed when first needed."""

    def __init__(self, me: str, graph: Graph, ways: ShortestPaths) -> None:
        self._me = me
        self._graph = graph
        self._own = ways
        self._known: dict[str, Tree | None] = {}
        # by digest, since most trees have most branches in common, and each may be large
        self._branches: dict[bytes, Branch] = {}

    def tree_of(self, root: str) -> Tree | None:
        """Return this router's part of a root's tree; None if the root cannot be reached."""
        try:
            return self._known[root]
        except KeyError:
            tree = self._known[root] = self._make(root) if root in self._own.cost else None
            return tree

    def _make(self, root: str) -> Tree | None:
        me = self._me
        ways = self._own if root == me else self._graph.shortest_paths_from(root)
        children: dict[str, list[str]] = {router: [] for router in ways.order}
        for router, parent in ways.parent.items():
            children[parent].append(router)
        digests: dict[str, bytes] = {}
        for router in reversed(ways.order):
            children[router].sort()
            digests[router] = _digest(router, [digests[each] for each in children[router]])
        branches = tuple([self._branch(child, digests[child], children) for child in children[me]])
        return Tree(root, ways.parent.get(me), digests[me], branches)

    def _branch(self, child: str, digest: bytes, children: dict[str, list[str]]) -> Branch:
        branch = self._branches.get(digest)
        if branch is None:
            branch = self._branches[digest] = Branch(child, digest, _all_below(child, children))
        return branch


def _digest(router: str, below: list[bytes]) -> bytes:
    name = router.encode()
    octets = len(name).to_bytes(4, "big") + name + b"".join(below)
    return blake2b(octets, digest_size=DIGEST_BYTES).digest()


def _all_below(router: str, children: dict[str, list[str]]) -> frozenset[str]:
    found = [router]
    for each in found:
        found.extend(children[each])
    return frozenset(found)
