"""Check successive configurations that differ in a few entities each time."""

from __future__ import annotations

from collections.abc import Sequence

from router.config.checks import Check
from router.config.conflict_index import INDEXED, ConflictIndex
from router.config.edits import Edits
from router.config.mistakes import Mistake
from router.config.model import Configuration
from router.config.validate import find_mistakes


class IncrementalChecks:
    """Checker of the successive configurations of one router.

    `extra_checks` are checks that other parts of the router add.
    """

    def __init__(self, extra_checks: Sequence[Check] = ()) -> None:
        self._extra_checks = extra_checks
        self._neighbours: ConflictIndex | None = None

    def find_mistakes(
        self, old: Configuration, wanted: Configuration, edits: Edits | None
    ) -> list[Mistake]:
        """Return every mistake in `wanted`, as `validate.find_mistakes` does.

        `edits` lead from `old` to `wanted`. If they are given, the search is limited, where
        possible, to the entities that the edits concern.
        """
        neighbours = self._neighbours
        is_known = neighbours is not None and neighbours.holds(old)
        # changes to other entities may affect any entity in the index
        is_among_them = edits is not None and all(each.entity.name in INDEXED for each in edits)
        if edits is not None and neighbours is not None and is_among_them and is_known:
            if neighbours.change(wanted, edits, self._is_right):
                return []
        mistakes = find_mistakes(wanted, self._extra_checks)
        if not is_known:
            self._forget()
        if is_among_them and not mistakes:
            self._forget()
            self._neighbours = ConflictIndex(wanted)
        return mistakes

    def _is_right(self, configuration: Configuration) -> bool:
        return not find_mistakes(configuration, self._extra_checks)

    def _forget(self) -> None:
        """Free the index entry by entry, so that other threads can run meanwhile."""
        neighbours, self._neighbours = self._neighbours, None
        if neighbours is not None:
            for _ in neighbours.pieces():
                pass
