"""Topic matching: find all binding keys of an exchange that match a message's subject.

With the `amqp` method, tokens are separated by a full stop, `*` matches any one token and `#` any
number of tokens, including none. With the `mqtt` method, tokens are separated by a slash, `+`
matches any one token, and `#`, which is allowed only at the end, matches all remaining tokens, or
none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Generic, TypeVar

from router.core.model.token_tree import MAX_TOKENS, Node

T = TypeVar("T")

AMQP: Final = "amqp"
MQTT: Final = "mqtt"


class TopicTree(Generic[T]):
    """Multimap with wildcard keys; a search for a subject finds the values of matching keys."""

    def __init__(self, method: str) -> None:
        self._separator = "/" if method == MQTT else "."
        self._one = "+" if method == MQTT else "*"
        self._root: Node[T] = Node()

    def add(self, key: str, value: T) -> None:
        """Add a value, to be found by all subjects that `key` matches."""
        self._root.grow(self._tokens(key), self._one).values.append(value)

    def remove(self, key: str, value: T) -> None:
        """Remove a value that was added for `key`.

        A search that has already begun may still find the value.
        """
        node = self._root
        # the nodes on the path, each with the token that leads to the next
        above: list[tuple[Node[T], str]] = []
        for token in self._tokens(key):
            above.append((node, token))
            following = node.following(token, self._one)
            if following is None:
                return
            node = following
        if value in node.values:
            node.values.remove(value)
        while above and node.is_empty():
            node, token = above.pop()
            node.drop(token, self._one)

    def matches(self, subject: str) -> list[T]:
        """Return the values of all keys that match a subject, without duplicates."""
        return [each for each in self.search(subject) if each is not None]

    def search(self, subject: str) -> Iterator[T | None]:
        """Yield the values of all keys that match a subject, and None for steps that find none."""
        names = self._tokens(subject)
        # Each node is tried once at each position, even if several `#` lead there: at most nodes x
        # tokens steps. The nodes are kept so that the id of a removed one is not reused.
        tried: dict[tuple[int, int], Node[T]] = {}
        pending = [(self._root, 0)]
        while pending:
            node, at = pending.pop()
            if (id(node), at) in tried:
                continue
            tried[id(node), at] = node
            if node.any is not None:
                pending.extend((node.any, after) for after in range(at, len(names) + 1))
            if at == len(names):
                yield from list(node.values)
                continue
            yield None
            if node.one is not None:
                pending.append((node.one, at + 1))
            exact = node.exact.get(names[at])
            if exact is not None:
                pending.append((exact, at + 1))

    def pieces(self) -> Iterator[object]:
        """Free a discarded tree in small steps, for `Deferred.forget`; yield after each step."""
        return self._root.pieces()

    def _tokens(self, text: str) -> list[str]:
        return text.split(self._separator, MAX_TOKENS) if text else []
