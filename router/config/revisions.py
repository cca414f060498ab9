"""History of the latest configurations of a router, so that it can return to one of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final

import attrs

from router.config.differences import Difference, key_of
from router.config.model import ENTITIES, Configuration

# How many revisions are kept, including the one that runs.
MAX_REVISIONS: Final = 20


@attrs.frozen
class Revision:
    """Configuration that the router runs or has run.

    `at_s` is the time at which it became current, in seconds since 1970. `cause` is the reason, and
    `differences` are those from the previous revision.
    """

    number: int
    at_s: float
    cause: str
    differences: tuple[Difference, ...]
    configuration: Configuration


class History:
    """History of the latest revisions of one router, which is kept in memory only."""

    def __init__(self, configuration: Configuration, at_s: float, number: int = 1) -> None:
        first = Revision(number, at_s, "start", (), configuration)
        self._revisions: deque[Revision] = deque([first], MAX_REVISIONS)

    @property
    def current(self) -> Revision:
        """Return the current revision."""
        return self._revisions[-1]

    def __iter__(self) -> Iterator[Revision]:
        """Iterate over the revisions, newest first."""
        return reversed(self._revisions)

    def find(self, number: int) -> Revision | None:
        """Return the revision with this number, or None if it is not kept."""
        return next((each for each in self._revisions if each.number == number), None)

    def add(
        self,
        configuration: Configuration,
        differences: tuple[Difference, ...],
        cause: str,
        at_s: float,
    ) -> tuple[Revision, Revision | None]:
        """Add the configuration that runs now.

        Return its revision, and the oldest revision if that was dropped to make room, or else None.
        """
        number = self.current.number + 1
        revision = Revision(number, at_s, cause, differences, configuration)
        oldest = self._revisions.popleft() if len(self._revisions) == MAX_REVISIONS else None
        self._revisions.append(revision)
        return revision, oldest


def share(old: Configuration, new: Configuration) -> Configuration:
    """Return `new` with the objects of `old` in place of equal ones, so that each exists once."""
    fields = {}
    for entity in ENTITIES:
        before, after = getattr(old, entity.attribute), getattr(new, entity.attribute)
        if entity.repeated:
            after = _shared(before, after)
        fields[entity.attribute] = before if before == after else after
    return Configuration(**fields)


def _shared(old: tuple[object, ...], new: tuple[object, ...]) -> tuple[object, ...]:
    """Return the entities of `new`, with the objects of `old` in place of equal ones.

    Most entities are the same objects in both, so only the others are compared.
    """
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
