"""Validate a configuration that was not read from a file, by the same rules as a file.

Programs make such a configuration by changing a valid one. The model ensures that each value is
valid by itself. This module checks how the values fit together, as the loader does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Final

import attrs

from router.config.checks import Check, find_contradictions, users_file_mistakes
from router.config.differences import key_of
from router.config.mistakes import Data, Finding, Mistake, Path, format_path
from router.config.model import ENTITIES, Configuration, Entity
from router.config.structure import value_at
from router.config.write import table_of

SOURCE: Final = "the configuration"


def find_mistakes(
    configuration: Configuration, extra_checks: Iterable[Check] = ()
) -> list[Mistake]:
    """Return every mistake in a configuration.

    `extra_checks` are checks that other parts of the router add.
    """
    data = {each.name: _written(each, configuration) for each in ENTITIES}
    found: dict[Path, Finding] = {}
    for check in (find_contradictions, *extra_checks):
        for finding in check(configuration, data):
            found.setdefault(finding.path, finding)
    mistakes = [_mistake(finding, configuration, data) for finding in found.values()]
    return list(chain(mistakes, users_file_mistakes(configuration)))


class _Tables:
    """Sequence of entities in the form of parsed TOML; each is converted when it is accessed."""

    def __init__(self, settings: Sequence[attrs.AttrsInstance]) -> None:
        self._settings = settings

    def __len__(self) -> int:
        return len(self._settings)

    def __getitem__(self, index: int) -> Data:
        return table_of(self._settings[index])


def _written(entity: Entity, configuration: Configuration) -> _Tables | Data:
    value = getattr(configuration, entity.attribute)
    return _Tables(value) if entity.repeated else table_of(value)


def _mistake(finding: Finding, configuration: Configuration, data: Data) -> Mistake:
    return Mistake(
        source=SOURCE,
        line=0,
        column=0,
        path=_place(finding.path, configuration),
        value=value_at(data, finding),
        problem=finding.problem,
        allowed=finding.allowed,
        nearest=finding.nearest,
    )


def _place(path: Path, configuration: Configuration) -> str:
    """Return a path as text for messages, followed by the key of its entity in parentheses."""
    place = format_path(path)
    for entity in ENTITIES:
        if entity.repeated and entity.name == path[0] and len(path) > 1:
            index = path[1]
            assert isinstance(index, int)
            return f"{place} ({key_of(getattr(configuration, entity.attribute)[index])})"
    return place
