"""Which of the keys of an exchange match a message's subject: all of them that do count.

By the `amqp` method tokens are separated by a full stop, `*` is any one token and `#` any number of
them, none included. By the `mqtt` method they are separated by a slash, `+` is any one token, and
`#`, which stands at the end alone, whatever follows, or nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Generic, TypeVar

from router.core.token_tree import MAX_TOKENS, Node

T = TypeVar("T")

AMQP: Final = "amqp"
MQTT: Final = "mqtt"


class TopicTree(Generic[T]):
    """Values by keys, of which each that matches is found."""

    def __init__(self, method: str) -> None:
        self._separator = "/" if method == MQTT else "."
        self._one = "+" if method == MQTT else "*"
        self._root: Node[T] = Node()

    def add(self, key: str, value: T) -> None:
        """Have `value` found for the subjects that `key` matches."""
        self._root.grow(self._tokens(key), self._one).values.append(value)

    def remove(self, key: str, value: T) -> None:
        """Have `value` not be found for `key` any more, which it was added for; a search that is
        under way may find it still.
        """
        node = self._root
        # the nodes on the way that lead on to the next
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
        """The values of all keys that match, each once."""
        return [each for each in self.search(subject) if each is not None]

    def search(self, subject: str) -> Iterator[T | None]:
        """Yield the values of all keys that match, each once; and None for each other step."""
        names = self._tokens(subject)
        # several `#` do not try the same place again: nodes x tokens steps at most
        # with the nodes, which are kept so that no other takes the place of one that is removed
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
        """Take it apart, and yield it piece by piece (`router.engine.deferred`)."""
        return self._root.pieces()

    def _tokens(self, text: str) -> list[str]:
        return text.split(self._separator, MAX_TOKENS) if text else []
