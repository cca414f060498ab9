"""Part of `trioute explain` about the network: other routers with receivers, and paths to them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from router.cli.render import JsonMap
from router.cli.tables import Cell, Head, lay_out
from router.cli.value_formats import number, text


def format_network(network: JsonMap, width: int | None) -> Iterator[str]:
    """Yield the tables about the network, line by line; empty tables are omitted."""
    yield from _table(
        _title("Other routers that receive", network["routers"], network["routerCount"]),
        [
            Head("router", cut=True, rank=0),
            Head("cost", right=True, rank=3),
            Head("next hop", cut=True, rank=2),
            Head("conn", rank=4),
            Head("link", rank=1),
            Head("credit", right=True, rank=3),
            Head("next", rank=1),
            Head("held back by", cut=True, rank=0),
        ],
        [
            [
                Cell(text(each["router"])),
                Cell(number(each["cost"])),
                Cell(text(_between(each))),
                Cell(text(each["connection"])),
                *_link(each),
            ]
            for each in network["routers"]
        ],
        width,
    )
    yield from _table(
        _title("Branches of its tree", network["branches"], network["branchCount"]),
        [
            Head("to", cut=True, rank=0),
            Head("received at", cut=True, rank=1),
            Head("conn", rank=4),
            Head("link", rank=1),
            Head("credit", right=True, rank=3),
            Head("next", rank=1),
            Head("held back by", cut=True, rank=0),
        ],
        [
            [
                Cell(text(each["router"])),
                Cell(_receivers(each)),
                Cell(text(each["connection"])),
                *_link(each, attached="agreed" if each["agreed"] else "waits"),
            ]
            for each in network["branches"]
        ],
        width,
    )
    yield from _table(
        "Uplinks",
        [
            Head("to", cut=True, rank=0),
            Head("conn", rank=2),
            Head("used", rank=1),
            Head("why", cut=True, rank=1),
        ],
        [
            [
                Cell(text(each["router"])),
                Cell(text(each["connection"])),
                Cell("yes" if each["used"] else "no"),
                Cell(text(each["text"])),
            ]
            for each in network["uplinks"]
        ],
        width,
    )


def _title(title: str, shown: Sequence[object], total: int) -> str:
    return title if len(shown) == total else f"{title}, {len(shown)} of {total}"


def _receivers(branch: JsonMap) -> str:
    names = ", ".join(map(text, branch["routers"]))
    more = branch["routerCount"] - len(branch["routers"])
    return f"{names} and {more} more" if more > 0 else names


def _link(each: JsonMap, attached: str = "attached") -> list[Cell]:
    """Return the cells that show a link's state; `attached` is the word for an attached link."""
    return [
        Cell(attached if each["attached"] else "none"),
        Cell(number(each["credit"]) if each["attached"] else ""),
        Cell("yes" if each["chosen"] else ""),
        Cell(text(each["text"])),
    ]


def _table(
    title: str, heads: list[Head], rows: list[list[Cell]], width: int | None
) -> Iterator[str]:
    if rows:
        yield ""
        yield title
        yield from lay_out(heads, rows, width)


def _between(router: JsonMap) -> str:
    """Return the path to a router as text, or only the next hop if the path is unknown."""
    way = router.get("way") or []
    return " ".join(map(str, way[1:-1] or way[1:])) if len(way) > 1 else str(router["via"])
