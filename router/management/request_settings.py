"""Make settings from the attributes of a request: check names, convert and check values.

As in Dispatch, "5" is accepted for 5, "yes" for true, 5 for "5", and null for a missing value. The
kinds of settings (`router.config.kinds`) define the allowed values.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

import attrs

from router.config.kinds import ValueNotAllowed as NotAllowed
from router.config.mistakes import format_value
from router.config.secret import Secret
from router.config.setting import default_of, file_name, setting_of
from router.config.vhosts import VhostGroupSettings
from router.management.names import long_name
from router.management.requests import BAD_REQUEST, Refused
from router.management.schema import AnyAttribute, AnyEntityType, SettingField, wire_kind

Given: TypeAlias = Mapping[str, object]
"""Attributes in a request, by name."""

_FLAGS: Final = {"yes": True, "true": True, "on": True, "no": False, "false": False, "off": False}
# As in Dispatch, a number is not accepted as an address.
_TEXT_ALONE: Final = ("prefix", "pattern")
# Former names of attributes, which Dispatch also accepts.
_OLD_NAMES: Final = {"addr": "address", "dir": "direction", "externalAddr": "externalAddress"}
_HAD_OLD_NAMES: Final = ("router.config.autoLink", "router.config.linkRoute")
# No allowed number has more digits.
_LONGEST_NUMBER: Final = 20


def new_settings(entity_type: AnyEntityType, given: Given) -> object:
    """Return the settings of a new entity. Raise Refused if they are invalid."""
    if "identity" in given:
        raise Refused(
            BAD_REQUEST, "identity cannot be set: it is derived from the other attributes"
        )
    if entity_type.name == "vhost":
        given = _with_hostname(given)
    values: dict[str, object] = {}
    for name, value in given.items():
        # qdmanage turns two spaces in a row into an attribute with an empty name and the value null
        if name == "type" or (name, value) == ("", None):
            continue
        attribute = known_attribute(entity_type, name)
        if attribute.setting is None:
            raise Refused(BAD_REQUEST, f"{name} cannot be set: it is read-only")
        if value is not None:
            values[attribute.setting.field.name] = setting_value(attribute, value)
    assert entity_type.entity is not None
    return entity_type.entity.settings(**values)


def _with_hostname(given: Given) -> Given:
    """Return the attributes of a new vhost with its hostname, for which `id` or `name` may stand.

    Dispatch's tools send these names; `hostname` takes precedence.
    """
    names = (given.get("hostname"), given.get("id"), given.get("name"))
    hostname = next((each for each in names if each is not None), None)
    others = {key: value for key, value in given.items() if key not in ("id", "name")}
    if isinstance(hostname, str):
        hostname = hostname.removeprefix("vhost/")
    return others if hostname is None else {**others, "hostname": hostname}


def changed_settings(entity_type: AnyEntityType, settings: Any, given: Given) -> object:
    """Return an entity's settings, changed as a request asks; null stands for the default.

    Raise Refused if a value is not allowed, or if it would change a fixed or read-only attribute.
    """
    values: dict[str, object] = {}
    for name, value in given.items():
        attribute = known_attribute(entity_type, name)
        if attribute.setting is None:
            raise Refused(BAD_REQUEST, f"{name} cannot be changed: it is read-only")
        field = attribute.setting.field
        new = default_of(field, settings) if value is None else setting_value(attribute, value)
        if new == getattr(settings, field.name):
            continue
        if attribute.setting.why_fixed:
            raise Refused(BAD_REQUEST, f"{name} cannot be changed: {attribute.setting.why_fixed}")
        values[field.name] = new
    return attrs.evolve(settings, **values)


def known_attribute(entity_type: AnyEntityType, name: str) -> AnyAttribute:
    """Return the attribute with this name. Raise Refused if there is none."""
    attribute = entity_type.attribute(name)
    if attribute is None and entity_type.name in _HAD_OLD_NAMES:
        attribute = entity_type.attribute(_OLD_NAMES.get(name, name))
    if attribute is not None:
        return attribute
    if name in entity_type.unsupported:
        reason = f"this router does not support Dispatch's attribute {name}"
    else:
        known = ", ".join(each.name for each in entity_type.attributes if each.can_be_created_with)
        reason = f"{entity_type.name} has no attribute {name[:100]!r}"
        reason += f"; its attributes are {known}" if known else ""
    raise Refused(BAD_REQUEST, reason)


def is_type_name(kind: object, entity_type: AnyEntityType) -> bool:
    """Return whether `kind`, the type in a request, names this entity type."""
    return isinstance(kind, str) and long_name(kind) == entity_type.long_name


def setting_value(attribute: AnyAttribute, value: object) -> object:
    """Return a value of a request as a setting. Raise Refused if the value is not allowed."""
    assert attribute.setting is not None
    field = attribute.setting.field
    plain = _plain(value)
    kind = setting_of(field).kind
    try:
        read = kind.read(_converted(field, plain))
    except NotAllowed as refused:
        shown = "a secret" if kind.secret else format_value(plain)
        reason = f"{attribute.name}: {shown} is not allowed; give {refused.allowed}"
        raise Refused(BAD_REQUEST, reason) from None
    path = read if isinstance(read, Path) else None
    if isinstance(read, Secret) and read.kind == "file":
        path = Path(read.reference)
    if path is not None and not path.is_absolute():
        # the requester does not know which folder a relative path would start from
        raise Refused(
            BAD_REQUEST, f"{attribute.name} must be an absolute path, which begins with /"
        )
    return read


def _plain(value: object) -> object:
    """Return a value with AMQP-only types replaced by plain Python ones."""
    if isinstance(value, bool) or value is None:
        return value
    for plain in (int, float, str):
        if isinstance(value, plain):
            return plain(value)
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {_plain(key): _plain(each) for key, each in value.items()}
    return value


def _converted(field: SettingField, value: object) -> object:
    """Return a value in the form of the configuration file, or unchanged if it has no such form."""
    kind = wire_kind(field)
    if kind == "boolean":
        return read_flag(value)
    if kind == "integer" or field.name == "port":
        if isinstance(value, float) and value.is_integer():
            return int(value)
        return _number(value) if isinstance(value, str) else value
    if field.name == "groups" and isinstance(value, dict):
        return {key: _converted_table(each) for key, each in value.items()}
    if kind == "string":
        if field.name == "aliases":
            return value
        if "tuple" in str(field.type):
            return value.replace(",", " ").split() if isinstance(value, str) else value
        if field.name in _TEXT_ALONE:
            return value
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return str(value) if abs(value) < 10**_LONGEST_NUMBER else value
    return value


def _converted_table(value: object) -> object:
    """Return a group of a vhost in the form of the configuration file; anything else unchanged."""
    if not isinstance(value, dict):
        return value
    fields = {file_name(field.name): field for field in attrs.fields(VhostGroupSettings)}
    # in the file as well, lists in a group may be texts with commas
    return {
        key: _converted(fields[key], each)
        if key in fields and "tuple" not in str(fields[key].type)
        else each
        for key, each in value.items()
        if each is not None
    }


def read_flag(value: object) -> object:
    """Return the boolean that a value stands for in Dispatch; return any other value unchanged."""
    if isinstance(value, str):
        return _FLAGS.get(value.lower(), value)
    return bool(value) if isinstance(value, int) and value in (0, 1) else value


def _number(text: str) -> float | str:
    """Return the number in a text, or the text itself if it is not a number."""
    if len(text) > _LONGEST_NUMBER or not text.isascii():
        return text
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text
