"""Trees are the same at all routers, and so are the digests of their branches."""

from __future__ import annotations

import random

from hypothesis import given, settings, strategies as st

from router.control.network.graph import Graph
from router.control.network.trees import Trees
from router.core.routers.routing_state import Tree

from support.routing import random_links


def trees_of(me: str, known: dict[str, dict[str, int]]) -> Trees:
    """Return the trees as router `me` sees them."""
    graph = Graph(known)
    return Trees(me, graph, graph.shortest_paths_from(me))


@given(st.integers(0, 2**32), st.integers(2, 12), st.integers(0, 30))
@settings(deadline=None, max_examples=50)
def test_what_a_child_is_known_by_is_what_it_knows_itself_by(
    seed: int, routers: int, links: int
) -> None:
    known = random_links(random.Random(seed), routers, links)
    seen = {me: trees_of(me, known) for me in known}
    for root in known:
        reached: list[str] = []
        begun = [root]
        for me in begun:
            tree = seen[me].tree_of(root)
            assert tree is not None
            reached.append(me)
            for branch in tree.branches:
                below = seen[branch.child].tree_of(root)
                assert below is not None
                assert (below.parent, below.digest) == (me, branch.digest)
                assert branch.routers == {branch.child}.union(*(b.routers for b in below.branches))
                begun.append(branch.child)
        assert sorted(reached) == sorted(Graph(known).shortest_paths_from(root).order)


def test_another_branch_has_another_digest() -> None:
    one = {"A": {"B": 1}, "B": {"A": 1, "C": 1}, "C": {"B": 1}}
    other = {"A": {"B": 1, "C": 1}, "B": {"A": 1}, "C": {"A": 1}}
    first, second = (trees_of("A", known).tree_of("A") for known in (one, other))
    assert first is not None
    assert second is not None
    assert first.digest != second.digest
    assert first.branches[0].digest != second.branches[0].digest


def test_from_where_nothing_comes_there_is_no_tree() -> None:
    known: dict[str, dict[str, int]] = {"A": {}, "B": {}}
    assert trees_of("A", known).tree_of("B") is None
    own = trees_of("A", known).tree_of("A")
    assert own == Tree("A", None, own.digest if own else b"", ())


def test_trees_share_their_branches() -> None:
    known = {"A": {"M": 1}, "B": {"M": 1}, "C": {"M": 1}, "M": {"A": 1, "B": 1, "C": 1}}
    trees = trees_of("M", known)
    from_a, from_b = trees.tree_of("A"), trees.tree_of("B")
    assert from_a is not None
    assert from_b is not None
    to_c = [branch for branch in from_a.branches if branch.child == "C"]
    assert [branch for branch in from_b.branches if branch is to_c[0]]
