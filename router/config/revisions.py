"""The configurations that a router has run, the last of them, so that it can go back."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, Final

import attrs

from router.config.model import ENTITIES, Configuration
from router.config.reload import Difference, key_of

# How many are remembered, with the one that runs.
MOST: Final = 20


@attrs.frozen
class Revision:
    """One configuration: since when it was run, in seconds since 1970, what for, and what was other
    in the one before.
    """

    number: int
    at_s: float
    cause: str
    differences: tuple[Difference, ...]
    configuration: Configuration


class History:
    """Those of one router, in memory; the first is what it began with."""

    def __init__(self, configuration: Configuration, at_s: float, number: int = 1) -> None:
        first = Revision(number, at_s, "start", (), configuration)
        self._revisions: deque[Revision] = deque([first], MOST)

    @property
    def current(self) -> Revision:
        """The one that runs."""
        return self._revisions[-1]

    def __iter__(self) -> Iterator[Revision]:
        """The newest first."""
        return reversed(self._revisions)

    def find(self, number: int) -> Revision | None:
        """The one of this number, if it is remembered."""
        return next((each for each in self._revisions if each.number == number), None)

    def add(
        self,
        configuration: Configuration,
        differences: tuple[Difference, ...],
        cause: str,
        at_s: float,
    ) -> tuple[Revision, Revision | None]:
        """Another one runs; see `share`. Also returns the one that is not remembered any more, if
        there were as many as there may be.
        """
        number = self.current.number + 1
        revision = Revision(number, at_s, cause, differences, configuration)
        oldest = self._revisions.popleft() if len(self._revisions) == MOST else None
        self._revisions.append(revision)
        return revision, oldest


def share(old: Configuration, new: Configuration) -> Configuration:
    """`new`, of the entities of `old` wherever they are the same, which are so kept once."""
    fields = {}
    for entity in ENTITIES:
        before, after = getattr(old, entity.attribute), getattr(new, entity.attribute)
        if entity.repeated:
            after = _shared(before, after)
        fields[entity.attribute] = before if before == after else after
    return Configuration(**fields)


def _shared(old: tuple[Any, ...], new: tuple[Any, ...]) -> tuple[Any, ...]:
    """There may be very many, of which few are others: those alone are looked at."""
    same = set(map(id, old))
    others = {at: each for at, each in enumerate(new) if id(each) not in same}
    if not others:
        return new
    keys = set(map(key_of, others.values()))
    known = {key: each for each in old if (key := key_of(each)) in keys}
    found = list(new)
    for at, each in others.items():
        kept = known.get(key_of(each))
        found[at] = kept if kept == each else each
    return tuple(found)
