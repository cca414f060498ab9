"""Values in Dispatch files: read them as Dispatch does, and convert them to this router's form."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Final

from router.config.kinds import Kind, ValueNotAllowed
from router.config.qdrouterd.facts import Kind as DispatchKind

_FLAGS: Final = {"yes": True, "true": True, "on": True, "no": False, "false": False, "off": False}
_MOST_DIGITS: Final = 20


def read_value(kind: DispatchKind, value: object) -> object:
    """Return a value as Dispatch reads it: text, a number, True or False, or a table.

    Raises `router.config.kinds.ValueNotAllowed`, which says what is allowed, for any other value.
    """
    match kind:
        case "integer":
            return _integer(value)
        case "boolean":
            return _flag(value)
        case "table":
            return _table(value)
        case tuple():
            return _choice(kind, value)
    return _text(value)


def to_file_value(kind: Kind, value: object) -> object:
    """Convert a Dispatch value to the form of this router's file, for an attribute of `kind`.

    Raises `router.config.kinds.ValueNotAllowed` if there is no such form.
    """
    refused: ValueNotAllowed | None = None
    for form in _forms(value):
        try:
            kind.read(form)
        except ValueNotAllowed as found:
            refused = refused or found
        else:
            return form
    raise refused or ValueNotAllowed(kind.words)


def _forms(value: object) -> Iterator[object]:
    """Yield a value unchanged, and then converted to other types that may be meant."""
    yield value
    if isinstance(value, str):
        for read in (_integer, _float, _flag, _table):
            try:
                yield read(value)
            except ValueNotAllowed:
                continue
        listed = [part.strip() for part in value.split(",")]
        yield [part for part in listed if part]
    elif isinstance(value, int) and not isinstance(value, bool):
        yield str(value)


def _integer(value: object) -> int:
    if isinstance(value, str):
        text = value.strip()
        digits = text[1:] if text[:1] in ("+", "-") else text
        if digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS:
            return int(text)
    elif isinstance(value, (int, float)) and not isinstance(value, bool) and value == value // 1:
        return int(value)
    raise ValueNotAllowed("a whole number")


def _float(value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise ValueNotAllowed("a number") from None


def _flag(value: object) -> bool:
    found = value if isinstance(value, bool) else _FLAGS.get(str(value).strip().lower())
    if found is None or not isinstance(value, (bool, str)):
        raise ValueNotAllowed("yes, true, on, no, false or off")
    return found


def _table(value: object) -> Mapping[str, object]:
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            pass
    if not isinstance(value, dict):
        raise ValueNotAllowed("a table, in JSON")
    return value


def _choice(words: tuple[str, ...], value: object) -> str:
    if isinstance(value, str) and value in words:
        return value
    # Dispatch also accepts the index of a choice
    try:
        number = _integer(value)
    except ValueNotAllowed:
        number = -1
    if not 0 <= number < len(words):
        raise ValueNotAllowed(f"one of {', '.join(words)}")
    return words[number]


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)
    raise ValueNotAllowed("text")
