"""The tree that patterns and keys share."""

from __future__ import annotations

from router.core.model.split_table import MANY, SplitTable
from router.core.model.token_tree import Node


def test_what_begins_alike_shares_nodes() -> None:
    root: Node[int] = Node()
    root.grow(["a", "*"], "*").values.append(1)
    root.grow(["a", "*", "#"], "*").values.append(2)
    assert root.exact["a"].one is not None
    assert root.exact["a"].one.values == [1]
    assert root.exact["a"].one.any is not None
    assert root.exact["a"].one.any.values == [2]
    # by another method the same token stands for itself
    assert root.grow(["a", "*"], "+") is root.exact["a"].exact["*"]


def test_nothing_of_a_tree_is_left() -> None:
    root: Node[int] = Node()
    root.grow(["a", "b"], "*").values += range(100)
    root.grow(["#"], "*").values += range(100)
    for _ in root.pieces():
        pass
    assert root == Node()


def test_very_many_after_one_token_are_split() -> None:
    root: Node[int] = Node()
    for number in range(MANY + 1):
        root.grow([str(number), "b"], "*").values.append(number)
    assert isinstance(root.exact, SplitTable)
    for number in range(MANY + 1):
        following = root.following(str(number), "*")
        assert following is root.grow([str(number)], "*")
        assert following.exact["b"].values == [number]
    root.drop("7", "*")
    assert root.following("7", "*") is None
    assert sum(isinstance(piece, int) for piece in root.pieces()) == MANY
    assert root.is_empty()


def test_the_values_at_an_end_are_pieces_of_their_own() -> None:
    root: Node[int] = Node()
    root.grow(["a", "b"], "*").values += range(100)
    assert sum(isinstance(piece, int) for piece in root.pieces()) == 100
