"""Collection of keys ordered by age, in which each operation takes constant time."""

from __future__ import annotations

from router.core.model.split_table import SplitTable


class _Node:
    """List node: a key, when the key was last added, and the next older and younger nodes."""

    __slots__ = ("key", "older", "since", "younger")

    def __init__(self, key: str) -> None:
        self.key = key
        self.since = 0.0
        self.older = self
        self.younger = self


class KeysByAge:
    """Set of keys with the time, in seconds, when each key was last added."""

    def __init__(self) -> None:
        self._nodes: SplitTable[str, _Node] = SplitTable()
        # a ring: the oldest node comes after this one, and the youngest before it
        self._ends = _Node("")

    def __len__(self) -> int:
        return len(self._nodes)

    def __contains__(self, key: str) -> bool:
        return key in self._nodes

    def add(self, key: str, now: float) -> None:
        """Add a key as the youngest; a known key becomes the youngest again."""
        node = self._nodes.get(key)
        if node is None:
            node = self._nodes[key] = _Node(key)
        else:
            self._unlink(node)
        youngest = self._ends.older
        node.since = now
        node.older, node.younger = youngest, self._ends
        youngest.younger = self._ends.older = node

    def discard(self, key: str) -> bool:
        """Remove a key; return whether it was known."""
        node = self._nodes.pop(key)
        if node is None:
            return False
        self._unlink(node)
        return True

    def oldest(self) -> tuple[str, float] | None:
        """Return the oldest key and the time when it was last added; None if there are no keys."""
        node = self._ends.younger
        return None if node is self._ends else (node.key, node.since)

    def _unlink(self, node: _Node) -> None:
        node.older.younger = node.younger
        node.younger.older = node.older
