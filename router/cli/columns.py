"""Building blocks for the tables of `trioute stat`: views and their columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypedDict, Unpack

import attrs

from router.cli import value_formats
from router.cli.rates import Entity
from router.cli.tables import Head

SortKey = tuple[int | str, ...]


class Options(TypedDict, total=False):
    """Optional arguments for creating a `Column`."""

    compute: Callable[[Entity], object]
    detail: bool
    alarming: Callable[[object], bool]


@attrs.frozen
class Column:
    """Column of a view: its header, the attribute that it shows, and how values are formatted.

    `compute`, if given, computes the value from several attributes of an entity. A column with
    `detail` is shown only in verbose output. `alarming` returns whether a value deserves attention.
    """

    head: Head
    attribute: str
    form: Callable[[object], str] = value_formats.text
    compute: Callable[[Entity], object] | None = None
    detail: bool = False
    alarming: Callable[[object], bool] | None = None

    def value(self, entity: Entity) -> object:
        """Return the value of an entity that this column shows."""
        return entity.get(self.attribute) if self.compute is None else self.compute(entity)


@attrs.frozen
class View:
    """Table of entities of one type: its columns, which entities it shows, and in which order.

    `counters` are pairs of a header and an attribute; while watching, further columns show the
    rates of these attributes. `empty_text` is shown instead of the table if there are no entities.
    With `is_sheet`, the view shows only one entity, with one attribute per line.
    """

    name: str
    title: str
    kind: str
    columns: tuple[Column, ...]
    empty_text: str
    order: Callable[[Entity], SortKey] = lambda entity: text_order(entity.get("name"))
    keep: Callable[[Entity], bool] = lambda _: True
    counters: tuple[tuple[str, str], ...] = ()
    is_sheet: bool = False
    counted_by_links: bool = False


def text_order(value: object) -> SortKey:
    """Return a sort key for a value, so that 9 precedes 10, and numbers precede other text."""
    parts = str(value or "").split(".")
    if all(part.isdigit() for part in parts):
        return (0, *map(int, parts))
    return (1, str(value))


def text(header: str, attribute: str, rank: int = 1, **options: Unpack[Options]) -> Column:
    """Return a column of text, which is shortened if there is not enough room."""
    return Column(Head(header, cut=True, rank=rank), attribute, **options)


def word(header: str, attribute: str, rank: int = 1, **options: Unpack[Options]) -> Column:
    """Return a column of words, which are never shortened."""
    return Column(Head(header, rank=rank), attribute, **options)


def count(header: str, attribute: str, rank: int = 1, **options: Unpack[Options]) -> Column:
    """Return a column of counts."""
    return Column(Head(header, right=True, rank=rank), attribute, value_formats.number, **options)


def time(header: str, attribute: str, rank: int = 1, **options: Unpack[Options]) -> Column:
    """Return a column of durations."""
    return Column(Head(header, right=True, rank=rank), attribute, value_formats.duration, **options)


def octets(header: str, attribute: str, rank: int = 1, **options: Unpack[Options]) -> Column:
    """Return a column of memory sizes."""
    return Column(Head(header, right=True, rank=rank), attribute, value_formats.octets, **options)


def is_positive(value: object) -> bool:
    """Return whether a value is a number above 0."""
    return isinstance(value, int) and value > 0


def is_zero(value: object) -> bool:
    """Return whether a value is the number 0."""
    return value == 0 and not isinstance(value, bool)
