"""Lay out tables with headers, as wide as needed or as narrow as necessary.

If there is too little room, texts lose their middle first. Then columns are dropped: those of the
highest rank first, and among columns of the same rank the rightmost. Dropped columns are named
under the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import attrs

from router.cli.value_formats import cells, padded, shortened

GAP: Final = "  "
# Minimum width of a text that loses its middle.
LEAST_CELLS: Final = 16

Style = Callable[[str], str]


@attrs.frozen
class Head:
    """Header and layout of a column.

    With `right`, texts are aligned to the right; with `cut`, they may be shortened. The column with
    the highest `rank` is dropped first; rank 0 is never dropped.
    """

    header: str
    right: bool = False
    cut: bool = False
    rank: int = 1


@attrs.frozen
class Cell:
    """Text of one cell of a table, with an optional style."""

    text: str
    style: Style | None = None


def plain(shown: str) -> str:
    """Return the text unchanged; this is the style for text that needs none."""
    return shown


def lay_out(
    heads: Sequence[Head],
    rows: Sequence[Sequence[Cell]],
    width: int | None = None,
    *,
    header_style: Style = plain,
) -> Iterator[str]:
    """Yield the lines of a table, at most `width` terminal cells wide; None is no limit."""
    columns = list(range(len(heads)))
    widths = [
        max([cells(head.header), *(cells(row[index].text) for row in rows)])
        for index, head in enumerate(heads)
    ]
    gone: list[int] = []
    if width is not None:
        gone = _fit(heads, columns, widths, width)
    yield header_style(
        _line([Cell(heads[index].header) for index in columns], heads, columns, widths)
    )
    for row in rows:
        yield _line([row[index] for index in columns], heads, columns, widths)
    if gone:
        names = ", ".join(heads[index].header for index in sorted(gone))
        yield from _wrapped(f"(no room for {names})", width)


def _line(
    row: Sequence[Cell], heads: Sequence[Head], columns: Sequence[int], widths: Sequence[int]
) -> str:
    shown = []
    for cell, index in zip(row, columns, strict=True):
        last = index == columns[-1] and not heads[index].right
        text = shortened(cell.text, widths[index])
        text = text if last else padded(text, widths[index], right=heads[index].right)
        shown.append(text if cell.style is None else cell.style(text))
    return GAP.join(shown)


def _fit(heads: Sequence[Head], columns: list[int], widths: list[int], width: int) -> list[int]:
    """Fit the table into `width`; return the indices of the columns that were dropped.

    `columns` and `widths` are changed in place.
    """
    gone: list[int] = []
    natural = list(widths)
    while True:
        _narrow(heads, columns, widths, width)
        optional = [index for index in columns if heads[index].rank]
        if _total(columns, widths) <= width or not optional:
            break
        leaving = max(optional, key=lambda index: (heads[index].rank, index))
        columns.remove(leaving)
        gone.append(leaving)
        # the remaining columns get their natural widths again
        widths[:] = natural
    return gone


def _narrow(heads: Sequence[Head], columns: Sequence[int], widths: list[int], width: int) -> None:
    """Narrow the columns that may be shortened, the widest first, until the table fits."""
    least = {
        index: max(cells(heads[index].header), LEAST_CELLS) for index in columns if heads[index].cut
    }
    for _ in range(max(0, _total(columns, widths) - width)):
        able = [index for index, floor in least.items() if widths[index] > floor]
        if not able:
            return
        widths[max(able, key=lambda index: (widths[index], index))] -= 1


def _total(columns: Sequence[int], widths: Sequence[int]) -> int:
    return sum(widths[index] for index in columns) + len(GAP) * (len(columns) - 1)


def _wrapped(line: str, width: int | None) -> Iterator[str]:
    yield line if width is None else shortened(line, width)
