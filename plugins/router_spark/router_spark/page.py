"""HTML page of the report, in one self-contained file."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import attrs

STYLE = """
body { margin: 0; background: #f5f7fa; color: #1f2933;
       font: 16px/1.5 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
main { max-width: 62rem; margin: 0 auto; padding: 2rem 1rem; }
h1 { margin: 0; font-size: 1.8rem; } h2 { margin: 0 0 .3rem; font-size: 1.2rem; }
section { background: white; border: 1px solid #e4e7eb; border-radius: 8px;
          padding: 1.2rem 1.5rem; margin: 1.2rem 0; overflow-x: auto; }
p { margin: 0 0 .8rem; color: #52606d; }
svg { display: block; max-width: 100%; height: auto; margin: 0 auto; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; }
th { text-align: left; color: #52606d; font-weight: 600; border-bottom: 2px solid #e4e7eb; }
th, td { padding: .3rem .8rem .3rem 0; } td { border-bottom: 1px solid #eef1f4; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
"""


@attrs.frozen
class Section:
    """Section of the page; `body` is HTML."""

    title: str
    text: str
    body: str


def format_page(title: str, subtitle: str, sections: Sequence[Section]) -> str:
    """Return the page as HTML."""
    parts = [
        f"<section><h2>{escape(each.title)}</h2><p>{escape(each.text)}</p>{each.body}</section>"
        for each in sections
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>\n"
        f"<body><main><h1>{escape(title)}</h1><p>{escape(subtitle)}</p>\n"
        + "\n".join(parts)
        + "\n</main></body></html>\n"
    )


def format_rows(names: Sequence[str], rows: Sequence[Sequence[str | int | float]]) -> str:
    """Return a table as HTML. Floats are shares, shown in per cent."""
    head = "".join(
        f"<th{_kind(rows[0][index]) if rows else ''}>{escape(name)}</th>"
        for index, name in enumerate(names)
    )
    body = "".join(
        "<tr>" + "".join(f"<td{_kind(cell)}>{_cell(cell)}</td>" for cell in row) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _kind(cell: str | float) -> str:
    return "" if isinstance(cell, str) else ' class="number"'


def _cell(cell: str | float) -> str:
    match cell:
        case str():
            return escape(cell)
        case int():
            return f"{cell:,}"
        case _:
            return f"{100 * cell:.1f} %"
