"""How an attribute of the configuration is declared: its metadata, name in the file, and check.

`attrs.field(default=..., metadata=setting(kind, description))` declares one; `checked` makes the
constructor of the class hold every value to its kind.
"""

from __future__ import annotations

from typing import Any

import attrs

from router.config.kinds import Kind, Refused


@attrs.frozen
class Setting:
    """What a field's metadata says. `default` is in words, where it is no plain value; `required`
    ones have none, and the checks of the whole configuration miss them.
    """

    kind: Kind
    description: str
    default: str = ""
    required: bool = False


def setting(
    kind: Kind, description: str, *, default: str = "", required: bool = False
) -> dict[str, Setting]:
    """The metadata of one attribute of the configuration."""
    return {"setting": Setting(kind, description, default, required)}


def setting_of(field: attrs.Attribute[Any]) -> Setting:
    """The setting that `field` was declared with."""
    found: Setting = field.metadata["setting"]
    return found


def default_of(field: attrs.Attribute[Any], settings: Any) -> Any:
    """What an attribute of `settings` is where nothing is said of it, all else being as it is."""
    default: Any = field.default
    factory = getattr(default, "factory", None)
    if factory is None:
        return default
    return factory(settings) if default.takes_self else factory()


def file_name(name: str) -> str:
    """The name in the file of an attribute: `max_frame_size` is maxFrameSize."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _check(_: object, field: attrs.Attribute[Any], value: object) -> None:
    """What a program passes must be what the loader would have made of it."""
    if value is None and field.default is None:
        return
    kind = setting_of(field).kind
    try:
        same = kind.read(value) == value
    except Refused as refused:
        raise ValueError(f"{field.name}: {value!r} is not allowed; {refused}") from None
    if not same:
        raise ValueError(f"{field.name}: {value!r} is not allowed; give {kind.words}")


def checked(_: type, fields: list[attrs.Attribute[Any]]) -> list[attrs.Attribute[Any]]:
    """An entity's field_transformer: holds what a program passes to the rules of the file."""
    return [field.evolve(validator=_check) for field in fields]
