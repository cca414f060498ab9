"""Format values for a terminal: counts, octets, durations, rates, and text from peers."""

from __future__ import annotations

import math
import unicodedata
from typing import Final

NONE: Final = "-"
_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")
_DAY_S: Final = 86400


def text(value: object) -> str:
    """Return a value as one line of text.

    Text from peers may contain anything, so unprintable characters are escaped.
    """
    match value:
        case None | "":
            return NONE
        case bool():
            return "yes" if value else "no"
        case str():
            return "".join(map(_visible, value))
        case dict():
            return ", ".join(f"{text(key)}={text(item)}" for key, item in value.items()) or NONE
        case list() | tuple():
            return " ".join(map(text, value)) or NONE
    return "".join(map(_visible, str(value)))


def _visible(character: str) -> str:
    if character.isprintable():
        return character
    return character.encode("unicode_escape").decode("ascii")


def number(value: object) -> str:
    """Return a count with separators for thousands: 1,234,567."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return text(value)
    return f"{value:,}"


def octets(value: object) -> str:
    """Return a size in octets as text: 512 B, 1.5 MiB."""
    if isinstance(value, bool) or not isinstance(value, int):
        return text(value)
    size, unit = float(value), 0
    while abs(size) >= 1024 and unit + 1 < len(_UNITS):
        size /= 1024
        unit += 1
    return f"{size:.1f} {_UNITS[unit]}" if unit else f"{int(size)} {_UNITS[0]}"


def duration(value: object) -> str:
    """Return a number of seconds as a duration: 0:05, 1:02:03, 3d 04:05:06, -1:30."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return text(value)
    if value <= -1:
        return f"-{duration(-value)}"
    minutes, seconds = divmod(int(value), 60)
    hours, minutes = divmod(minutes, 60)
    if value >= _DAY_S:
        days, hours = divmod(hours, 24)
        return f"{days}d {hours:02}:{minutes:02}:{seconds:02}"
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def rate(value: object) -> str:
    """Return a rate per second as text: 0, 0.25, 12.5, 1,234."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return text(value)
    if value == 0 or value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def cells(shown: str) -> int:
    """Return how many terminal cells a text occupies."""
    if shown.isascii():
        return len(shown)
    return sum(map(_cells, shown))


def _cells(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def shortened(shown: str, width: int) -> str:
    """Return a text of at most `width` terminal cells; a longer text loses its middle."""
    if cells(shown) <= width:
        return shown
    if width < 1:
        return ""
    # the end of an address tells more than its beginning
    tail_cells = width // 2
    head_cells = width - 1 - tail_cells
    head = _taken(shown, head_cells)
    tail = _taken(shown[::-1], tail_cells)[::-1]
    return f"{head}…{tail}"


def _taken(shown: str, width: int) -> str:
    taken = 0
    for index, character in enumerate(shown):
        taken += _cells(character)
        if taken > width:
            return shown[:index]
    return shown


def padded(shown: str, width: int, *, right: bool = False) -> str:
    """Return a text padded with spaces to `width` terminal cells."""
    spaces = " " * max(0, width - cells(shown))
    return spaces + shown if right else shown + spaces
