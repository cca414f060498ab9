"""Build the model from parsed TOML with cattrs: rename keys, read values, collect findings.

cattrs continues after a mistake and raises a tree of errors (detailed validation); `_findings`
converts that tree to findings with paths in the data.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, Generic, TypeVar

import attrs
from cattrs import ClassValidationError, Converter, ForbiddenExtraKeysError
from cattrs.errors import IterableValidationError
from cattrs.gen import make_dict_structure_fn, override

from router.config.kinds import Kind, ValueNotAllowed
from router.config.mistakes import Data, Finding, Path, format_value
from router.config.model import ENTITIES, Configuration, Entity
from router.config.policy_kinds import NotAllowedWithin
from router.config.setting import file_name, setting_of

T = TypeVar("T", bound=attrs.AttrsInstance)
# A function that cattrs calls with a value and its type, to read the value.
Hook = Callable[[object, type], object]

_SECRETS: Final = frozenset(
    (entity.name, file_name(field.name))
    for entity in ENTITIES
    for field in attrs.fields(entity.settings)
    if setting_of(field).kind.secret
)


@attrs.frozen
class Structured:
    """Result of `structure`; if there are findings, `configuration` contains only defaults."""

    configuration: Configuration
    findings: tuple[Finding, ...]


class FileFormat(Generic[T]):
    """Format of one kind of file: the class of its contents, and the entities that it may have.

    `model` is the class of the contents. Its constructor needs no arguments, because no entity is
    required.
    """

    def __init__(self, model: type[T], entities: Iterable[Entity]) -> None:
        self.model = model
        self.entities = tuple(entities)
        self._converter = _build_converter(self)

    def read(self, data: Mapping[str, object]) -> tuple[T, tuple[Finding, ...]]:
        """Build the model from parsed TOML; return the model and the findings.

        If there are findings, the model contains only defaults.
        """
        try:
            return self._converter.structure(data, self.model), ()
        except ClassValidationError as error:
            return self.model(), tuple(_findings(error, self, self.model, ()))


def structure(data: Mapping[str, object]) -> Structured:
    """Build the model from parsed TOML, or find everything that is wrong with the data."""
    return Structured(*_CONFIGURATION.read(data))


def is_secret(path: Path) -> bool:
    """Return whether `path` leads to a value that must not be shown."""
    return tuple(part for part in path if isinstance(part, str)) in _SECRETS


def _build_converter(file_format: FileFormat[T]) -> Converter:
    converter = Converter(detailed_validation=True, forbid_extra_keys=True)
    tables: dict[str, Any] = {}
    for entity in file_format.entities:
        attributes: dict[str, Any] = {
            field.name: override(
                rename=file_name(field.name), struct_hook=_value_hook(setting_of(field).kind)
            )
            for field in attrs.fields(entity.settings)
        }
        reader = make_dict_structure_fn(entity.settings, converter, **attributes)
        converter.register_structure_hook(entity.settings, _table_hook(entity, reader))
        hook = _list_hook(entity, converter) if entity.repeated else None
        tables[entity.attribute] = override(rename=entity.name, struct_hook=hook)
    converter.register_structure_hook(
        file_format.model, make_dict_structure_fn(file_format.model, converter, **tables)
    )
    return converter


def _value_hook(kind: Kind) -> Hook:
    return lambda value, _: kind.read(value)


def _table_hook(entity: Entity, reader: Callable[[Mapping[str, object], type], object]) -> Hook:
    def read_table(value: object, target: type) -> object:
        if not isinstance(value, Mapping):
            raise ValueNotAllowed(f"a table, {_header(entity)}")
        return reader(value, target)

    return read_table


def _list_hook(entity: Entity, converter: Converter) -> Hook:
    def read_list(value: object, target: type) -> object:
        if isinstance(value, Mapping):
            raise ValueNotAllowed(f"a list of tables: write {_header(entity)}, in two brackets")
        if not isinstance(value, list):
            raise ValueNotAllowed(f"a list of tables, {_header(entity)}")
        return converter.structure(value, target)

    return read_list


def _header(entity: Entity) -> str:
    return f"[[{entity.name}]]" if entity.repeated else f"[{entity.name}]"


def _findings(
    error: Exception, file_format: FileFormat[T], model: type[attrs.AttrsInstance], path: Path
) -> Iterator[Finding]:
    match error:
        case ClassValidationError():
            noted, others = error.group_exceptions()
            for inner, note in noted:
                name, inner_model = _step(file_format, model, note.name)
                yield from _findings(inner, file_format, inner_model, (*path, name))
            for inner in others:
                yield from _findings(inner, file_format, model, path)
        case IterableValidationError():
            indexed, others = error.group_exceptions()
            for inner, index_note in indexed:
                yield from _findings(inner, file_format, model, (*path, int(index_note.index)))
            for inner in others:
                yield from _findings(inner, file_format, model, path)
        case ForbiddenExtraKeysError():
            for key in sorted(error.extra_fields):
                yield _unknown(key, file_format, model, path)
        case NotAllowedWithin():
            for part in error.parts:
                problem = "is not a known attribute" if part.is_unknown else "is not allowed"
                allowed = part.allowed if part.is_unknown else f"give {part.allowed}"
                yield Finding(
                    (*path, *part.path), problem, allowed, part.nearest, shown=not part.is_unknown
                )
        case ValueNotAllowed():
            yield Finding(path, "is not allowed", f"give {error.allowed}", shown=True)
        case _:
            # The hooks above raise nothing else; if they did, it would be a bug in this module.
            raise error


def _step(
    file_format: FileFormat[T], model: type[attrs.AttrsInstance], attribute: str
) -> tuple[str, type[attrs.AttrsInstance]]:
    """Return a field's name in the file, and the class of the entities that the field contains.

    The field is `attribute` of `model`. If it contains no entities, the class is `model`.
    """
    if model is file_format.model:
        for entity in file_format.entities:
            if entity.attribute == attribute:
                return entity.name, entity.settings
    return file_name(attribute), model


def _unknown(
    key: str, file_format: FileFormat[T], model: type[attrs.AttrsInstance], path: Path
) -> Finding:
    known = [_step(file_format, model, field.name)[0] for field in attrs.fields(model)]
    what = "entity" if model is file_format.model else "attribute"
    nearest = _nearest(key, known)
    here = "" if nearest else f"known here: {', '.join(known)}"
    return Finding((*path, key), f"is not a known {what}", here, nearest)


def _nearest(key: str, known: Iterable[str]) -> str:
    """Return the known name that `key` was probably meant to be, or an empty text.

    Case, underscores and hyphens do not count.
    """
    plain = {name.lower(): name for name in known}
    found = difflib.get_close_matches(key.lower().replace("_", "").replace("-", ""), plain, n=1)
    return plain[found[0]] if found else ""


_CONFIGURATION: Final = FileFormat(Configuration, ENTITIES)


def value_at(data: Data, finding: Finding) -> str:
    """Return the value that a finding is about, as text for people.

    The text is empty if there is no value or the finding does not show it; a secret is never shown.
    """
    if not finding.shown:
        return ""
    if is_secret(finding.path):
        return "(a secret)"
    value: Any = data
    for part in finding.path:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            return ""
    return format_value(value)
