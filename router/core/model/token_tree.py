"""Tree of patterns, or of the binding keys of exchanges, with a node for each token."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, Generic, TypeVar

import attrs

from router.core.model.split_table import MANY, SplitTable

T = TypeVar("T")

# Tokens beyond these count as one, which bounds the cost of looking up a name.
MAX_TOKENS: Final = 64
ANY: Final = "#"


@attrs.define
class Node(Generic[T]):
    """Node of the tree, with the values of the patterns that end at this node.

    `exact` holds the next nodes by token, `one` is the next node for a single arbitrary token, and
    `any` the next node for any number of tokens.
    """

    # a SplitTable if there are very many
    exact: dict[str, Node[T]] | SplitTable[str, Node[T]] = attrs.Factory(dict)
    one: Node[T] | None = None
    any: Node[T] | None = None
    values: list[T] = attrs.Factory(list)

    def grow(self, tokens: Iterable[str], one: str) -> Node[T]:
        """Return the node at the end of these tokens, and make the nodes that are missing.

        `one` is the wildcard for a single token.
        """
        node = self
        for token in tokens:
            if token == one:
                node.one = node.one or Node()
                node = node.one
            elif token == ANY:
                node.any = node.any or Node()
                node = node.any
            else:
                node = node.exact.get(token) or node._append(token)
        return node

    def _append(self, token: str) -> Node[T]:
        following: Node[T] = Node()
        exact = self.exact
        exact[token] = following
        if isinstance(exact, dict) and len(exact) == MANY:
            self.exact = SplitTable.of(exact)
        return following

    def following(self, token: str, one: str) -> Node[T] | None:
        """Return the next node for a token, or None; `one` is the wildcard for a single token."""
        if token == one:
            return self.one
        return self.any if token == ANY else self.exact.get(token)

    def drop(self, token: str, one: str) -> None:
        """Remove the next node for a token; `one` is the wildcard for a single token."""
        if token == one:
            self.one = None
        elif token == ANY:
            self.any = None
        else:
            self.exact.pop(token, None)

    def is_empty(self) -> bool:
        """Return whether no pattern ends at this node or continues below it."""
        return not (self.exact or self.one or self.any or self.values)

    def pieces(self) -> Iterator[object]:
        """Take the tree apart and yield its pieces, so that `Deferred.forget` can free them."""
        pending = [self]
        while pending:
            node = pending.pop()
            yield node
            pending += [each for each in (node.one, node.any) if each is not None]
            node.one = node.any = None
            while node.values:
                yield node.values.pop()
            while node.exact:
                _, following = node.exact.popitem()
                yield following
                if following.exact or following.one or following.any or following.values:
                    pending.append(following)
