"""Compare two configurations, and find the changes that a running router cannot apply.

This module does not change any router. Differences use the names of the configuration file and
never contain a secret. They are shown to people, sent to programs, and applied.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Literal

import attrs

from router.config.edits import Edits, removed_and_added
from router.config.model import ENTITIES, Configuration, Entity
from router.config.redirects import RedirectSettings
from router.config.setting import file_name, setting_of
from router.config.write import file_value
from router.errors import ConfigurationError

What = Literal["added", "removed", "changed"]

SECRET: Final = "(a secret)"

# Attributes that only a restart can change, by entity and attribute, and why.
RESTART_ONLY: Final = {
    ("router", "id"): "peers know the router by its id, and its addresses contain it",
    ("router", "mode"): "the mode of a router is fixed when it starts",
}


class NotApplied(ConfigurationError):
    """Refusal of a running router to apply a configuration; nothing has changed.

    `reasons` are one or more sentences.
    """

    def __init__(self, reasons: Iterable[str]) -> None:
        self.reasons = tuple(reasons)
        super().__init__("\n".join(self.reasons))


class StaleConfiguration(NotApplied):
    """Refusal to apply a change, because the configuration has changed meanwhile.

    The caller may repeat the change with the new configuration.
    """

    def __init__(self) -> None:
        super().__init__(["the configuration was changed meanwhile: read it and try again"])


@attrs.frozen
class FieldChange:
    """Change of one attribute; `name` is the attribute's name in the file.

    `old` and `new` are values as in the file: text, numbers, lists and tables. None stands for no
    value, and `SECRET` for a secret.
    """

    name: str
    old: object
    new: object


@attrs.frozen
class Difference:
    """Entity that was added, removed or changed between two configurations.

    `key` is the entity's name or other key; it is empty for a kind that has only one entity.
    `fields` are the attributes that differ; for an added or removed entity, those that are not at
    their defaults.
    """

    entity: str
    key: str
    what: What
    fields: tuple[FieldChange, ...] = ()

    @property
    def place(self) -> str:
        """Return the kind and the key of the entity, for people."""
        return f"{self.entity} {self.key}" if self.key else self.entity


@attrs.frozen
class Applied:
    """Result of applying a configuration; `differences` is empty if nothing changed.

    `revision` is the number of the configuration that runs now. `saved` is the file that keeps this
    configuration for the next start; if it is None, the change is lost when the router stops.
    """

    differences: tuple[Difference, ...]
    revision: int = 0
    saved: str | None = None


def find_differences(
    old: Configuration, new: Configuration, edits: Edits | None = None
) -> tuple[Difference, ...]:
    """Return the differences that turn `old` into `new`: additions, then changes, then removals.

    If `edits` are given, only their entities are compared.
    """
    found = [
        each
        for entity in ENTITIES
        for each in _between(entity, *(_entities(entity, old, new, edits)))
    ]
    order = ("added", "changed", "removed")
    return tuple(sorted(found, key=lambda each: order.index(each.what)))


def find_restart_only(differences: Iterable[Difference]) -> list[str]:
    """Return why a running router cannot apply the differences, in one sentence for each reason.

    The list is empty if the router can apply them.
    """
    return [
        f"{difference.entity}.{field.name} cannot be changed while the router runs: {reason}"
        for difference in differences
        for field in difference.fields
        for (entity, name), reason in RESTART_ONLY.items()
        if (entity, file_name(name)) == (difference.entity, field.name)
    ]


def key_of(settings: object) -> str:
    """Return the key of a repeated entity: its name or, for a redirect, what it applies to."""
    if not isinstance(settings, RedirectSettings):
        return str(getattr(settings, "name", ""))
    kinds = ("prefix", "pattern", "hostname")
    kind, value = next(
        ((kind, value) for kind in kinds if (value := getattr(settings, kind)) is not None),
        ("to", settings.to_network_host),
    )
    direction = "" if settings.direction == "both" else f" {settings.direction}"
    return f"{kind} {value}{direction}"


def _entities(
    entity: Entity, old: Configuration, new: Configuration, edits: Edits | None
) -> tuple[Mapping[str, object], Mapping[str, object]]:
    """Return, by key, the entities of a kind in `old`, and those in `new`, that may differ."""
    if edits is None:
        return _by_key(entity, old, new), _by_key(entity, new, old)
    gone, come = removed_and_added(edits, entity.name)
    if not entity.repeated:
        return ({"": gone[0]}, {"": come[0]}) if gone else ({}, {})
    return {key_of(each): each for each in gone}, {key_of(each): each for each in come}


def _between(
    entity: Entity, before: Mapping[str, object], after: Mapping[str, object]
) -> Iterator[Difference]:
    for key, settings in after.items():
        if key not in before:
            fields = _fields(entity, default_of(entity, settings), settings)
            yield Difference(entity.name, key, "added", fields)
        elif settings != before[key]:
            fields = _fields(entity, before[key], settings)
            yield Difference(entity.name, key, "changed", fields)
    for key, settings in before.items():
        if key not in after:
            fields = _fields(entity, settings, default_of(entity, settings))
            yield Difference(entity.name, key, "removed", fields)


def _by_key(entity: Entity, of: Configuration, other: Configuration) -> Mapping[str, object]:
    """Return the entities of a kind in `of`, by key, without objects that are also in `other`."""
    value, theirs = getattr(of, entity.attribute), getattr(other, entity.attribute)
    if not entity.repeated:
        return {"": value}
    same = set(map(id, theirs))
    return {key_of(each): each for each in value if id(each) not in same}


def default_of(entity: Entity, settings: object) -> object:
    """Return an entity with the name of `settings`, and all other attributes at their defaults."""
    if "name" in attrs.fields_dict(entity.settings):
        # the class has a name, as its fields show, but its static type does not
        return entity.settings(name=getattr(settings, "name", None))  # type: ignore[call-arg]
    return entity.settings()


def _fields(entity: Entity, old: object, new: object) -> tuple[FieldChange, ...]:
    changes = []
    for field in attrs.fields(entity.settings):
        before, after = getattr(old, field.name), getattr(new, field.name)
        if before != after:
            values = [file_value(value) for value in (before, after)]
            if setting_of(field).kind.secret:
                values = [None if value is None else SECRET for value in values]
            changes.append(FieldChange(file_name(field.name), *values))
    return tuple(changes)
