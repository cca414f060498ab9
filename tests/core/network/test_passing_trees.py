"""Trees of other routers are found by what their links say, by address and by number."""

from __future__ import annotations

from router.core.model.address import MULTICAST, Address
from router.core.network.branch_links import MulticastTree
from router.core.network.passing_trees import PassingTrees
from router.core.routers.routing_state import Tree


def made(address: Address, root: str, number: int) -> MulticastTree:
    return MulticastTree(address, "M0q", Tree(root, "a", b"digest", ()), number)


def test_each_is_found_until_it_is_no_more() -> None:
    address = Address("q", MULTICAST)
    trees = PassingTrees()
    one, other = made(address, "a", 1), made(address, "b", 2)
    trees.add(one)
    trees.add(other)
    assert trees.find(address, "a", b"digest") is one
    assert trees.find(address, "a", b"another") is None
    assert list(trees) == list(trees.at(address)) == [one, other]
    assert trees.numbered(2) is other
    trees.remove(one)
    trees.remove(other)
    assert not trees
    assert list(trees.at(address)) == []
    assert trees.numbered(2) is None


def test_one_that_is_closed_makes_room_for_another_one_like_it() -> None:
    address = Address("q", MULTICAST)
    trees = PassingTrees()
    closed, fresh = made(address, "a", 1), made(address, "a", 2)
    trees.add(closed)
    trees.close(closed)
    assert closed not in trees
    assert trees.numbered(1) is closed
    trees.add(fresh)
    trees.remove(closed)
    assert fresh in trees
    assert trees.find(address, "a", b"digest") is fresh
    assert len(trees) == 1
