"""Tables: aligned, narrowed before anything is left out, and never wider than they may be."""

from __future__ import annotations

from hypothesis import given, strategies as st

from router.cli.tables import Cell, Head, lay_out
from router.cli.value_formats import cells

HEADS = (
    Head("id", rank=0),
    Head("address", cut=True),
    Head("in", right=True, rank=2),
    Head("out", right=True, rank=2),
)
ROWS = (
    ("1", "orders/of/this/year", "1,000", "7"),
    ("12", "x", "5", "12,345,678"),
)


def laid(width: int | None = None) -> list[str]:
    """Return the lines of a table."""
    return list(lay_out(HEADS, [[Cell(text) for text in row] for row in ROWS], width))


def test_columns_are_as_wide_as_what_they_hold() -> None:
    assert laid() == [
        "id  address                 in         out",
        "1   orders/of/this/year  1,000           7",
        "12  x                        5  12,345,678",
    ]
    assert laid(42) == laid()


def test_texts_lose_their_middle_first() -> None:
    assert laid(39) == [
        "id  address              in         out",
        "1   orders/…his/year  1,000           7",
        "12  x                     5  12,345,678",
    ]


def test_columns_of_the_highest_rank_go_then() -> None:
    assert laid(28) == [
        "id  address               in",
        "1   orders/o…his/year  1,000",
        "12  x                      5",
        "(no room for out)",
    ]
    assert laid(20) == [
        "id  address",
        "1   orders/…his/year",
        "12  x",
        "(no room …r in, out)",
    ]


def test_what_identifies_a_row_never_goes() -> None:
    assert laid(3) == ["id", "1", "12", "(…)"]


def test_colours_take_no_room() -> None:
    rows = [[Cell("5", lambda text: f"<{text}>"), Cell("x")]]
    heads = (Head("count", right=True), Head("word"))
    assert list(lay_out(heads, rows, header_style=str.upper)) == ["COUNT  WORD", "<    5>  x"]


def test_no_rows() -> None:
    assert list(lay_out(HEADS, [])) == ["id  address  in  out"]


@given(
    rows=st.lists(st.tuples(*[st.text(st.characters(categories=["L"]), max_size=40)] * 4)),
    width=st.integers(20, 200),
)
def test_no_line_is_wider_than_it_may_be(rows: list[tuple[str, str, str, str]], width: int) -> None:
    heads = (Head("a", cut=True, rank=0), Head("b"), Head("c", right=True), Head("d", cut=True))
    lines = list(lay_out(heads, [[Cell(text) for text in row] for row in rows], width))
    assert max(map(cells, lines)) <= width
