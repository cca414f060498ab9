"""Write a configuration as TOML that the loader reads as the same configuration.

Values at their defaults are omitted, except those that identify an entity. Paths are absolute,
since the text may be read from another folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import attrs
import tomli_w

from router.config.mistakes import Data
from router.config.model import ENTITIES, Configuration
from router.config.secret import Secret
from router.config.setting import default_of, file_name

# Attributes written even at their defaults, so that a reader need not know the defaults.
_ALWAYS: Final = ("host", "port", "distribution")


def format_configuration(configuration: Configuration) -> str:
    """Return the configuration as TOML; the text is confidential, because it contains passwords."""
    repeated = {entity.name: entity.repeated for entity in ENTITIES}
    parts: list[str] = []
    for name, value in data_of(configuration).items():
        if repeated[name]:
            # each table under its own heading, as people write it
            parts.extend(
                f"[{tomli_w.dumps({name: table}).replace(']', ']]', 1)}" for table in value
            )
        else:
            parts.append(tomli_w.dumps({name: value}))
    return "\n".join(parts)


def data_of(configuration: Configuration) -> Data:
    """Return the configuration in the form of parsed TOML.

    An entity that may occur only once is omitted if it is at its defaults.
    """
    data: dict[str, object] = {}
    for entity in ENTITIES:
        value = getattr(configuration, entity.attribute)
        if entity.repeated:
            if value:
                data[entity.name] = [table_of(each) for each in value]
        elif table := table_of(value):
            data[entity.name] = table
    return data


def file_value(value: Any) -> object:
    """Return a value of the model in the form that parsed TOML has."""
    if isinstance(value, Secret):
        form = "literal" if value.kind == "literal" else value.kind
        reference = value.reference
        if value.kind == "file":
            reference = str(Path(reference).absolute())
        return f"{form}:{reference}"
    if isinstance(value, Path):
        return str(value.absolute())
    if isinstance(value, (list, tuple)):
        return [file_value(each) for each in value]
    if attrs.has(type(value)):
        return table_of(value)
    if isinstance(value, Mapping):
        return {key: file_value(each) for key, each in value.items()}
    return value


def table_of(settings: attrs.AttrsInstance) -> Data:
    """Return one entity in the form of parsed TOML, without values at their defaults."""
    table = {}
    for field in attrs.fields(type(settings)):
        value = getattr(settings, field.name)
        if value is None or (field.name not in _ALWAYS and value == default_of(field, settings)):
            continue
        table[file_name(field.name)] = file_value(value)
    return table
