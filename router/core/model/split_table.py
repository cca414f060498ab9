"""Tables whose growth never takes long.

When a dict is full, all its entries are copied into a dict of twice the size. With a few hundred
thousand entries that takes longer than a turn may (docs/costs.md), so a table of very many entries
is split into dicts that become full at different times.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, MutableMapping, ValuesView
from typing import Final, Generic, TypeVar, overload

K = TypeVar("K")
V = TypeVar("V")
D = TypeVar("D")

# A power of two. Of a quarter of a million entries, each dict has about four thousand.
PARTS: Final = 64
_MASK: Final = PARTS - 1
# A table of fewer entries is a single dict.
MANY: Final = 2048


class SplitTable(Generic[K, V]):
    """Unordered mapping; with very many entries it is split by the hashes of their keys."""

    __slots__ = ("_parts",)

    def __init__(self) -> None:
        self._parts: list[dict[K, V]] = [{}]

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def __contains__(self, key: object) -> bool:
        return key in self._part_of(key)

    def __getitem__(self, key: K) -> V:
        return self._part_of(key)[key]

    def __setitem__(self, key: K, value: V) -> None:
        parts = self._parts
        if len(parts) > 1:
            parts[_part(hash(key))][key] = value
            return
        parts[0][key] = value
        if len(parts[0]) == MANY:
            self._split()

    @overload
    def get(self, key: K) -> V | None: ...
    @overload
    def get(self, key: K, default: D) -> V | D: ...
    def get(self, key: K, default: D | None = None) -> V | D | None:
        """Return the value of a key, or the default if the key is missing."""
        # `_part_of` without a call: most accesses come here
        parts = self._parts
        return parts[_part(hash(key)) if len(parts) > 1 else 0].get(key, default)

    @overload
    def pop(self, key: K) -> V | None: ...
    @overload
    def pop(self, key: K, default: D) -> V | D: ...
    def pop(self, key: K, default: D | None = None) -> V | D | None:
        """Remove a key and return its value, or the default if the key is missing."""
        return self._part_of(key).pop(key, default)

    def popitem(self) -> tuple[K, V]:
        """Remove and return any key and its value; raise KeyError if there is none."""
        part = next(filter(None, self._parts), None)
        if part is None:
            raise KeyError("the table is empty")
        return part.popitem()

    def clear(self) -> None:
        """Remove all keys."""
        self._parts = [{}]

    def _part_of(self, key: object) -> dict[K, V]:
        parts = self._parts
        return parts[0 if len(parts) == 1 else _part(hash(key))]

    @classmethod
    def of(cls, whole: dict[K, V]) -> SplitTable[K, V]:
        """Return a table of a dict's items, in time proportional to their number."""
        table = cls()
        table._parts = [whole]
        if len(whole) >= MANY:
            table._split()
        return table

    def _split(self) -> None:
        whole = self._parts[0]
        self._parts = [{} for _ in range(PARTS)]
        for key, value in whole.items():
            self._part_of(key)[key] = value


class ListedTable(MutableMapping[K, V]):
    """Mapping like a dict, with an order of its own.

    Keys are in the order of insertion, except that the last key takes the place of a removed one.
    """

    __slots__ = ("_keys", "_places", "_values")

    def __init__(self) -> None:
        self._places: SplitTable[K, int] = SplitTable()
        self._keys: list[K] = []
        self._values: list[V] = []

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[K]:
        return iter(self._keys)

    def __contains__(self, key: object) -> bool:
        return key in self._places

    def __getitem__(self, key: K) -> V:
        place = self._places.get(key)
        if place is None:
            raise KeyError(key)
        return self._values[place]

    def __setitem__(self, key: K, value: V) -> None:
        place = self._places.get(key)
        if place is None:
            self._places[key] = len(self._keys)
            self._keys.append(key)
            self._values.append(value)
        else:
            self._values[place] = value

    def __delitem__(self, key: K) -> None:
        place = self._places.pop(key)
        if place is None:
            raise KeyError(key)
        last, value = self._keys.pop(), self._values.pop()
        if place < len(self._keys):
            self._keys[place] = last
            self._values[place] = value
            self._places[last] = place

    @overload
    def get(self, key: K) -> V | None: ...
    @overload
    def get(self, key: K, default: V | D) -> V | D: ...
    def get(self, key: K, default: D | None = None) -> V | D | None:
        """Return the value of a key, or the default if the key is missing."""
        place = self._places.get(key)
        return default if place is None else self._values[place]

    def values(self) -> ValuesView[V]:
        """Return a view of the values, in the order of the keys."""
        return _Values(self, self._values)

    def items(self) -> ItemsView[K, V]:
        """Return a view of the keys and values; no key may be added or removed during iteration."""
        return _Items(self, self._keys, self._values)

    def snapshot(self) -> Iterator[tuple[K, V]]:
        """Return an iterator over the items as they are now; keys may be added and removed."""
        return zip(list(self._keys), list(self._values), strict=True)

    def each(self) -> Iterator[V]:
        """Yield each value, from the last to the first, while keys may be added and removed.

        A value that is in the table all the time is yielded at least once, and perhaps twice.
        """
        # a removed value is replaced by the last one
        place = len(self._values)
        while place > 0:
            place = min(place, len(self._values)) - 1
            if place >= 0:
                yield self._values[place]

    def popitem(self) -> tuple[K, V]:
        """Remove and return the last key and its value; raise KeyError if there is none."""
        if not self._keys:
            raise KeyError("the table is empty")
        key = self._keys[-1]
        value = self._values[-1]
        del self[key]
        return key, value


class _Items(ItemsView[K, V]):
    """View of a table's items that iterates without looking up each key."""

    def __init__(self, table: ListedTable[K, V], keys: list[K], values: list[V]) -> None:
        super().__init__(table)
        self._keys = keys
        self._values = values

    def __iter__(self) -> Iterator[tuple[K, V]]:
        return zip(self._keys, self._values, strict=True)


class _Values(ValuesView[V]):
    """View of a table's values that iterates without looking up each key."""

    def __init__(self, table: ListedTable[K, V], values: list[V]) -> None:
        super().__init__(table)
        self._values = values

    def __iter__(self) -> Iterator[V]:
        return iter(self._values)


def _part(hashed: int) -> int:
    """Return the index of the dict for keys with this hash.

    The higher bits of the hash are mixed with the last bits, in which the hashes of objects differ
    little.
    """
    return (hashed ^ hashed >> 6 ^ hashed >> 12) & _MASK
