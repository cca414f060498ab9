"""Readers of option texts: each returns a value, or raises OptionError with the allowed values."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

Read = Callable[[str, str], object]
"""Function that returns an option's value from its name and text."""

_Word = TypeVar("_Word", bound=StrEnum)


class OptionError(ValueError):
    """Error about an invalid option; the text says which option, why, and what is allowed."""


def read_text(name: str, text: str) -> str:
    """Read a non-empty string."""
    if not text:
        raise OptionError(f"option {name} is empty: leave it out, or give it a value")
    return text


def read_path(name: str, text: str) -> Path:
    """Read an absolute path; the meaning of a relative path would depend on the process."""
    path = Path(read_text(name, text))
    if not path.is_absolute():
        raise OptionError(f"option {name} is {text!r}: it must be an absolute path")
    return path


def read_flag(name: str, text: str) -> bool:
    """Read `true` or `false`, ignoring case."""
    if text.lower() not in ("true", "false"):
        raise OptionError(f"option {name} is {text!r}: it must be true or false")
    return text.lower() == "true"


def read_seconds(name: str, text: str) -> float:
    """Read a number of seconds, above 0 and at most a day."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 86_400:
        raise OptionError(f"option {name} is {text!r}: it must be above 0 and at most 86400 s")
    return value


def whole(lowest: int, highest: int) -> Callable[[str, str], int]:
    """Return a reader of whole numbers from `lowest` to `highest`, both included."""

    def read(name: str, text: str) -> int:
        digits = text.strip()
        if not digits.isascii() or not digits.isdigit() or not lowest <= int(digits) <= highest:
            raise OptionError(
                f"option {name} is {text!r}: it must be a whole number from {lowest} to {highest}"
            )
        return int(digits)

    return read


def one_of(kind: type[_Word]) -> Callable[[str, str], _Word]:
    """Return a reader for the values of an enumeration, which ignores case."""

    def read(name: str, text: str) -> _Word:
        try:
            return kind(text.lower())
        except ValueError:
            allowed = ", ".join(kind)
            raise OptionError(f"option {name} is {text!r}: it must be one of {allowed}") from None

    return read
