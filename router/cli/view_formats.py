"""Format the views of `trioute stat`: for people, as CSV, or as JSON."""

from __future__ import annotations

import csv
import functools
import io
import json
from collections.abc import Iterator, Sequence
from typing import Final

import click

from router.cli import value_formats
from router.cli.columns import Column
from router.cli.rates import Entity
from router.cli.render import JsonMap, as_json
from router.cli.tables import Cell, Head, Style, lay_out, plain
from router.cli.view_queries import ViewData

_BOLD: Final[Style] = functools.partial(click.style, bold=True)
_DIM: Final[Style] = functools.partial(click.style, dim=True)
_ALARM: Final[Style] = functools.partial(click.style, fg="yellow")
_SHEET: Final = (Head("", rank=0), Head("", right=True, cut=True, rank=0))


def format_view(
    seen: ViewData, width: int | None, *, detail: bool = False, colours: bool = False
) -> Iterator[str]:
    """Yield a view's lines for people: a title and a table, or a text if there are no entities."""
    if not seen.entities:
        yield seen.view.empty_text
        return
    yield (_BOLD if colours else plain)(seen.view.title)
    columns = [
        column
        for column in seen.view.columns
        if column.attribute in seen.names and (detail or not column.detail)
    ]
    # a column is omitted if no entity has a value in it
    columns = [
        column
        for column in columns
        if any(column.value(entity) is not None for entity in seen.entities)
    ]
    header_style = _DIM if colours else plain
    if seen.view.is_sheet:
        heads, rows = _sheet(columns, seen, colours=colours)
        # attributes and values need no headers
        yield from list(lay_out(heads, rows, width))[1:]
    else:
        heads, rows = _table(columns, seen, colours=colours)
        yield from lay_out(heads, rows, width, header_style=header_style)


def _sheet(
    columns: Sequence[Column], seen: ViewData, *, colours: bool
) -> tuple[Sequence[Head], list[list[Cell]]]:
    entity = seen.entities[0]
    rates = seen.rates_of(entity)
    rows = []
    for column in columns:
        row = [Cell(column.head.header), _cell(column, entity, colours=colours)]
        if seen.rates is not None:
            per_s = rates.get(column.attribute)
            row.append(Cell("" if per_s is None else f"{value_formats.rate(per_s)}/s"))
        rows.append(row)
    heads = list(_SHEET)
    if seen.rates is not None:
        heads.append(Head("", right=True, rank=0))
    return heads, rows


def _table(
    columns: Sequence[Column], seen: ViewData, *, colours: bool
) -> tuple[Sequence[Head], list[list[Cell]]]:
    heads = [column.head for column in columns]
    rows = [
        [_cell(column, entity, colours=colours) for column in columns] for entity in seen.entities
    ]
    if seen.rates is not None:
        for header, attribute in seen.view.counters:
            heads.append(Head(header, right=True))
            for row, entity in zip(rows, seen.entities, strict=True):
                row.append(Cell(value_formats.rate(seen.rates_of(entity).get(attribute))))
    return heads, rows


def _cell(column: Column, entity: Entity, *, colours: bool) -> Cell:
    value = column.value(entity)
    alarming = colours and column.alarming is not None and column.alarming(value)
    return Cell(column.form(value), _ALARM if alarming else None)


def format_csv(
    seen: ViewData, *, header: bool = True, time_text: str | None = None
) -> Iterator[str]:
    """Yield a view's CSV lines: a header with the attribute names, and a row for each entity.

    If `time_text` is given, it is the first column. Rates are the last columns, with headers such
    as `deliveryCount/s`.
    """
    rated = [] if seen.rates is None else [attribute for _, attribute in seen.view.counters]
    if header:
        first = [] if time_text is None else ["time"]
        yield _csv_line([*first, *seen.names, *(f"{name}/s" for name in rated)])
    for entity in seen.entities:
        first = [] if time_text is None else [time_text]
        rates = seen.rates_of(entity)
        values = [_csv_value(entity.get(name)) for name in seen.names]
        yield _csv_line([*first, *values, *(_csv_value(rates.get(name)) for name in rated)])


def _csv_value(value: object) -> str:
    match value:
        case None:
            return ""
        case str():
            return value
        case float():
            return f"{value:.3f}"
    return json.dumps(as_json(value), ensure_ascii=False)


def _csv_line(values: Sequence[str]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(values)
    return line.getvalue()


def entities_as_json(seen: ViewData) -> list[JsonMap]:
    """Return a map for each entity: the attributes that have a value and, if known, `rates`."""
    shown = []
    for entity in seen.entities:
        told = {name: as_json(value) for name, value in entity.items() if value is not None}
        if seen.rates is not None:
            told["rates"] = {name: round(value, 3) for name, value in seen.rates_of(entity).items()}
        shown.append(told)
    return shown
