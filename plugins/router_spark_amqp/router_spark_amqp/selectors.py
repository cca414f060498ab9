"""Convert Spark's filters to selectors, in the selector language of JMS, which brokers support.

A selector can refer only to the fields of header and properties that JMS has. Filters that a
selector cannot express are applied by Spark alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

# By column of format raw, which other formats have in the struct `_amqp`.
IDENTIFIERS: Final = {"subject": "JMSType", "priority": "JMSPriority"}
STRUCT: Final = "_amqp"
ESCAPE: Final = "\\"

_COMPARED: Final[dict[type[Filter], str]] = {
    EqualTo: "=",
    GreaterThan: ">",
    GreaterThanOrEqual: ">=",
    LessThan: "<",
    LessThanOrEqual: "<=",
}


def selector_of(filters: Iterable[Filter]) -> str | None:
    """Return a selector for those filters that it can express; None if there is no such filter.

    The selector selects every message that the filters would keep, and possibly more.
    """
    said = [text for text in map(_said, filters) if text is not None]
    return " AND ".join(said) or None


def combine(one: str | None, other: str | None) -> str | None:
    """Return the selector of messages that both selectors select; None stands for all messages."""
    if one is None or other is None:
        return one or other
    return f"({one}) AND ({other})"


def _said(given: Filter) -> str | None:
    match given:
        case Not():
            inner = _said(given.child)
            # a message for which the result is unknown is not kept, in SQL as in a selector
            return None if inner is None else f"NOT ({inner})"
        case IsNull() | IsNotNull():
            name = _identifier(given.attribute)
            # the default of a priority is 4, so a priority is never null
            if name != IDENTIFIERS["subject"]:
                return None
            return f"{name} IS NULL" if isinstance(given, IsNull) else f"{name} IS NOT NULL"
        case In():
            name, values = _identifier(given.attribute), [_literal(each) for each in given.value]
            known = [each for each in values if each is not None]
            if name is None or not known or len(known) < len(values):
                return None
            return "(" + " OR ".join(f"{name} = {each}" for each in known) + ")"
        case StringStartsWith():
            return _like(given.attribute, "", given.value, "%")
        case StringEndsWith():
            return _like(given.attribute, "%", given.value, "")
        case StringContains():
            return _like(given.attribute, "%", given.value, "%")
        case EqualTo() | GreaterThan() | GreaterThanOrEqual() | LessThan() | LessThanOrEqual():
            return _comparison(given.attribute, _COMPARED[type(given)], given.value)
    return None


def _comparison(attribute: tuple[str, ...], operator: str, value: object) -> str | None:
    name, literal = _identifier(attribute), _literal(value)
    if name is None or literal is None:
        return None
    if isinstance(value, str) and operator != "=":
        # strings are compared for equality alone
        return None
    return f"{name} {operator} {literal}"


def _identifier(attribute: tuple[str, ...]) -> str | None:
    path = attribute[1:] if attribute[:1] == (STRUCT,) else attribute
    return IDENTIFIERS.get(path[0]) if len(path) == 1 else None


def _literal(value: object) -> str | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return str(value)
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else None


def _like(attribute: tuple[str, ...], before: str, value: str, after: str) -> str | None:
    name = _identifier(attribute)
    if name is None:
        return None
    escaped = "".join(ESCAPE + each if each in "%_\\" else each for each in value)
    literal = _literal(before + escaped + after)
    return f"{name} LIKE {literal} ESCAPE '{ESCAPE}'"
