"""Declaration of configuration attributes: metadata, name in the file, and value check.

`attrs.field(default=..., metadata=setting(kind, description))` declares an attribute. With
`checked`, the constructor of the class checks every value against its kind.
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypeAlias

import attrs

from router.config.kinds import Kind, ValueNotAllowed

Field: TypeAlias = "attrs.Attribute[Any]"
"""Field of a class of settings, with a value of any type."""


@attrs.frozen
class Setting:
    """Metadata of a configuration attribute.

    `default` describes a default that is not a plain value. A `required` attribute has no default;
    the checks of the whole configuration report it if it is missing.
    """

    kind: Kind
    description: str
    default: str = ""
    required: bool = False


def setting(
    kind: Kind, description: str, *, default: str = "", required: bool = False
) -> dict[str, Setting]:
    """Return the metadata of one configuration attribute."""
    return {"setting": Setting(kind, description, default, required)}


def setting_of(field: Field) -> Setting:
    """Return the setting that `field` was declared with."""
    found: Setting = field.metadata["setting"]
    return found


def default_of(field: Field, settings: object) -> object:
    """Return the default of an attribute, given the other attributes of `settings`."""
    default: object = field.default
    factory = getattr(default, "factory", None)
    if factory is None:
        return default
    return factory(settings) if getattr(default, "takes_self", False) else factory()


@cache
def file_name(name: str) -> str:
    """Return the name of an attribute in the file: `max_frame_size` is maxFrameSize."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _check(_: object, field: Field, value: object) -> None:
    """Raise ValueError if a program passes a value that the loader would not produce."""
    if value is None and field.default is None:
        return
    kind = setting_of(field).kind
    try:
        same = kind.read(value) == value
    except ValueNotAllowed as refused:
        raise ValueError(f"{field.name}: {value!r} is not allowed; {refused}") from None
    if not same:
        raise ValueError(f"{field.name}: {value!r} is not allowed; give {kind.words}")


def checked(_: type, fields: list[Field]) -> list[Field]:
    """Make each field check its values against its kind; this is a `field_transformer` of attrs."""
    return [field.evolve(validator=_check) for field in fields]
