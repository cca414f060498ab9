"""Patterns of names, and a tree that finds the most specific pattern for a name.

Names and patterns are split into tokens at `/` and `.`. `*` stands for exactly one token, `#` for
any number of tokens, including none; a prefix `p` is the pattern `p/#`. Reading from the left, an
exact token is more specific than `*`, and `*` is more specific than `#`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from router.core.model.token_tree import MAX_TOKENS, Node

T = TypeVar("T")

_SEPARATORS = re.compile(r"[./]")


class PatternTree(Generic[T]):
    """Map from patterns to values that is searched by name."""

    def __init__(self) -> None:
        self._root: Node[T] = Node()

    def add(self, pattern: str, value: T) -> None:
        """Set the value of a pattern, in place of the value of an equal pattern."""
        # a node has at most one value
        self._root.grow(tokens(pattern), "*").values[:] = [value]

    def add_prefix(self, prefix: str, value: T) -> None:
        """Set the value for `prefix` itself and names that begin with its tokens."""
        self.add(pattern_of(prefix), value)

    def remove(self, pattern: str) -> None:
        """Remove the value of exactly this pattern, which was added before."""
        _remove(self._root, tokens(pattern), 0)

    def match(self, name: str, counts: Callable[[T], bool] | None = None) -> T | None:
        """Return the value of the most specific pattern that matches a name, or None.

        Values for which `counts` returns False are ignored.
        """
        return _search(self._root, tokens(name), 0, set(), counts)

    def pieces(self) -> Iterator[object]:
        """Take the tree apart and yield its pieces, so that `Deferred.forget` can free them."""
        return self._root.pieces()


def pattern_of(prefix: str) -> str:
    """Return the pattern that matches the same names as a prefix."""
    return f"{prefix.rstrip('/.')}/#"


def _remove(node: Node[T], names: list[str], at: int) -> bool:
    """Remove the value at the end of the path `names[at:]`; return whether `node` is empty then."""
    if at == len(names):
        node.values.clear()
    else:
        token = names[at]
        following = {"*": node.one, "#": node.any}.get(token, node.exact.get(token))
        if following is not None and _remove(following, names, at + 1):
            if token == "*":
                node.one = None
            elif token == "#":
                node.any = None
            else:
                node.exact.pop(token, None)
    return not (node.exact or node.one or node.any or node.values)


def _search(
    node: Node[T],
    names: list[str],
    at: int,
    tried: set[tuple[int, int]],
    counts: Callable[[T], bool] | None,
) -> T | None:
    # `tried` keeps several `#` from trying the same position again: nodes x tokens steps at most.
    if (id(node), at) in tried:
        return None
    tried.add((id(node), at))
    if at == len(names):
        if node.values and (counts is None or counts(node.values[0])):
            return node.values[0]
        return None if node.any is None else _search(node.any, names, at, tried, counts)
    exact = node.exact.get(names[at])
    found = None if exact is None else _search(exact, names, at + 1, tried, counts)
    if found is None and node.one is not None:
        found = _search(node.one, names, at + 1, tried, counts)
    if found is None and node.any is not None:
        for following in range(at, len(names) + 1):
            found = _search(node.any, names, following, tried, counts)
            if found is not None:
                break
    return found


def tokens(name: str) -> list[str]:
    """Return the tokens of a name or pattern."""
    return _SEPARATORS.split(name.strip("/."), maxsplit=MAX_TOKENS)
