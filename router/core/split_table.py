"""A table whose growth never takes long.

A dict that is full is copied at once into one of twice the size. At some hundred thousand entries
that takes longer than a turn may (docs/costs.md), so a table of very many is split into dicts that
are full at different times.
"""

from __future__ import annotations

from typing import Final, Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

# A power of two. Each dict has some four thousand of a quarter of a million entries.
PARTS: Final = 64
_MASK: Final = PARTS - 1


class SplitTable(Generic[K, V]):
    """A mapping in no order, split into several dicts by the hashes of its keys.

    Keys are texts, or have texts: the hash of an object that is its place in memory would fill few
    of the dicts.
    """

    __slots__ = ("_parts",)

    def __init__(self) -> None:
        self._parts: tuple[dict[K, V], ...] = tuple({} for _ in range(PARTS))

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def __setitem__(self, key: K, value: V) -> None:
        self._parts[hash(key) & _MASK][key] = value

    def get(self, key: K) -> V | None:
        """Return the value of a key, or None."""
        return self._parts[hash(key) & _MASK].get(key)

    def pop(self, key: K) -> V | None:
        """Remove a key and return its value, or None if it is not there."""
        return self._parts[hash(key) & _MASK].pop(key, None)

    def clear(self) -> None:
        """Remove all keys."""
        for part in self._parts:
            part.clear()
