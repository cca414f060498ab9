"""Helpers for attributes that many entity types have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

from router.management.names import PREFIX
from router.management.schema import Attribute

E = TypeVar("E")


def constant(value: object) -> Callable[[object], object]:
    """Return a reader that returns the same value for every entity."""
    return lambda _: value


class AttributesOf(Generic[E]):
    """Factory of attributes whose values are read from objects of the class `E`.

    For example, `AttributesOf[LinkView]` makes attributes that are read from a `LinkView`.
    """

    @staticmethod
    def identified(
        name: Callable[[E], object], identity: Callable[[E], object], of: str
    ) -> Iterator[Attribute[E]]:
        """Yield the three attributes that every entity has: name, identity and type.

        `of` is the name of the entity type.
        """
        yield Attribute("name", "string", "Its name.", name)
        yield Attribute("identity", "string", "Its identity, unique within its type.", identity)
        yield Attribute("type", "string", "Its type.", constant(PREFIX + of))

    @staticmethod
    def integers(
        counts: Iterable[tuple[str, str, Callable[[E], object]]],
    ) -> Iterator[Attribute[E]]:
        """Yield an integer attribute for each tuple of name, meaning and reader in `counts`."""
        for name, meaning, read in counts:
            yield Attribute(name, "integer", meaning, read)
