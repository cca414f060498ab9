"""Format differences between configurations for people: a line per entity and per attribute.

+ listener edge
      port = 5673
~ address router.config.address/orders
      distribution = "closest" -> "multicast"
- connector broker
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from router.config.differences import SECRET, Difference, FieldChange
from router.config.mistakes import format_value

SIGNS: Final = {"added": "+", "changed": "~", "removed": "-"}
_INDENT: Final = "      "


def format_differences(differences: Iterable[Difference]) -> str:
    """Return all differences as one text, without a line end after the last line."""
    return "\n".join(line for difference in differences for line in format_difference(difference))


def format_difference(difference: Difference) -> Iterator[str]:
    """Yield the lines of one difference; a removed entity is only named."""
    yield f"{SIGNS[difference.what]} {difference.place}"
    if difference.what != "removed":
        for field in difference.fields:
            yield f"{_INDENT}{_field(field, is_new=difference.what == 'added')}"


def _field(field: FieldChange, *, is_new: bool) -> str:
    new = _value(field.new)
    return f"{field.name} = {new if is_new else f'{_value(field.old)} -> {new}'}"


def _value(value: object) -> str:
    if value is None:
        return "none"
    return SECRET if value == SECRET else format_value(value)
