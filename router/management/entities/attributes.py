"""Helpers for the attributes of many entity types."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from router.management.schema import PREFIX, Attribute


def constant(value: Any) -> Callable[[Any], Any]:
    """Return a reader that returns the same value for every entity."""
    return lambda _: value


def identified(
    name: Callable[[Any], Any], identity: Callable[[Any], Any], of: str
) -> Iterator[Attribute]:
    """Yield the three attributes that every entity has: name, identity and type."""
    yield Attribute("name", "string", "Its name.", name)
    yield Attribute("identity", "string", "Its identity, unique within its type.", identity)
    yield Attribute("type", "string", "Its type.", constant(PREFIX + of))


def integers(counts: Iterable[tuple[str, str, Callable[[Any], Any]]]) -> Iterator[Attribute]:
    """Yield integer attributes, each from its name, its meaning and its reader."""
    for name, meaning, read in counts:
        yield Attribute(name, "integer", meaning, read)
