"""Mistakes in a configuration: all of them at once, each with its place and with what is allowed.

A `Finding`, from a reader or from `router.config.checks`, has the path of the mistake in the data.
A `Mistake` has the file, the line and the value, for people. `InvalidConfiguration` carries all
mistakes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import date, datetime, time
from typing import Any, Final

import attrs

from router.errors import ConfigurationError

# The data of a file, as parsers return it: tables by the names of entities, and lists of tables for
# those that may occur more than once. The model decides whether the values are right.
Data = Mapping[str, Any]
# The path to a value from the top of the data: names of tables and keys, and indices of lists.
Path = tuple[str | int, ...]

LONGEST_VALUE: Final = 60
# Values that begin so are secrets, which may have been put into the wrong attribute.
_PASSWORD_FORMS: Final = ("literal:", "pass:")


@attrs.frozen
class Finding:
    """Mistake at a `path` in the data; with `shown`, the message shows the value at that path.

    `concerns` lists other paths that the finding depends on. If the value at one of them is itself
    wrong, the finding is dropped.
    """

    path: Path
    problem: str
    allowed: str = ""
    nearest: str = ""
    shown: bool = False
    concerns: tuple[Path, ...] = ()


@attrs.frozen
class Mistake:
    """Mistake in the form that people read.

    `line` and `column` count from 1, and are 0 if they are not known. `path` may be empty.
    """

    source: str
    line: int
    column: int
    path: str
    value: str
    problem: str
    allowed: str = ""
    nearest: str = ""

    def __str__(self) -> str:
        place = self.source
        if self.line:
            place += f":{self.line}"
        if self.column:
            place += f":{self.column}"
        subject = f"{self.path}: " if self.path else ""
        value = f"{self.value} " if self.value else ""
        text = f"{place}: {subject}{value}{self.problem}"
        if self.nearest:
            text += f"; did you mean {self.nearest}?"
        if self.allowed:
            text += f"; {self.allowed}"
        return text


class InvalidConfiguration(ConfigurationError):
    """Refusal of a configuration that has mistakes.

    `mistakes` lists all of them, in the order of the file; there is at least one.
    """

    def __init__(self, mistakes: Iterable[Mistake]) -> None:
        self.mistakes = tuple(mistakes)
        super().__init__("\n".join(map(str, self.mistakes)))


def format_path(path: Path) -> str:
    """Return `("listener", 1, "port")` as `listener[1].port`; unusual keys are quoted."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
            continue
        plain = part.isascii() and part.replace("-", "").replace("_", "").isalnum()
        text += ("." if text else "") + (part if plain else _quoted(part))
    return text


def format_value(value: object) -> str:
    """Return a value as a file would contain it, shortened if it is long."""
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            # Python refuses to print integers of thousands of digits, which TOML can hold as 0x...
            return str(value) if value.bit_length() <= 128 else "a number with many digits"
        case float():
            return str(value)
        case str() if value.startswith(_PASSWORD_FORMS):
            return "(a secret)"
        case str():
            return _quoted(value)
        case datetime() | date() | time():
            return value.isoformat()
        case list() if not any(isinstance(item, (list, dict)) for item in value):
            text = f"[{', '.join(map(format_value, value))}]"
            return text if len(text) <= LONGEST_VALUE else "a list"
        case list():
            return "a list"
        case dict():
            return "a table"
    return f"a value of type {type(value).__name__}"


def _quoted(text: str) -> str:
    if len(text) > LONGEST_VALUE:
        text = text[: LONGEST_VALUE - 3] + "..."
    return json.dumps(text, ensure_ascii=not text.isprintable())
