"""Output of `trioute explain` about other routers, branches of a tree, and uplinks."""

from __future__ import annotations

from typing import Any

from router.cli.explain_network import format_network

NOTHING: dict[str, Any] = {
    "routers": [],
    "routerCount": 0,
    "branches": [],
    "branchCount": 0,
    "uplinks": [],
}
LINK: dict[str, Any] = {
    "connection": "2",
    "attached": True,
    "credit": 1250,
    "unsettled": 0,
    "chosen": True,
    "reason": None,
    "text": None,
}
KEPT: dict[str, Any] = {
    **LINK,
    "credit": 0,
    "chosen": False,
    "reason": "no_credit",
    "text": "waits for credit from router c, via b",
}


def printed(width: int | None = None, **network: Any) -> str:
    return "".join(f"{line}\n" for line in format_network({**NOTHING, **network}, width))


def test_nothing_is_printed_where_there_is_nothing_to_tell() -> None:
    assert printed() == ""


def test_routers() -> None:
    routers = [
        {"router": "b", "cost": 1, "via": "b", **LINK},
        {"router": "c", "cost": 12, "via": "b", **KEPT},
        {"router": "d", "cost": 13, "via": "d", **KEPT, "attached": False, "text": "far"},
    ]
    assert printed(routers=routers, routerCount=4) == (
        "\n"
        "Other routers that receive, 3 of 4\n"
        "router  cost  next hop  conn  link      credit  next  held back by\n"
        "b          1  b         2     attached   1,250  yes   -\n"
        "c         12  b         2     attached       0        "
        "waits for credit from router c, via b\n"
        "d         13  d         2     none                    far\n"
    )
    narrow = printed(40, routers=routers[:2], routerCount=2).splitlines()
    assert all(len(line) <= 40 for line in narrow)


def test_branches() -> None:
    branches = [
        {"router": "b", "routers": ["b", "c"], "routerCount": 2, "agreed": True, **LINK},
        {"router": "d", "routers": ["e"], "routerCount": 3, "agreed": False, **KEPT},
    ]
    assert printed(branches=branches, branchCount=2) == (
        "\n"
        "Branches of its tree\n"
        "to  received at   conn  link    credit  next  held back by\n"
        "b   b, c          2     agreed   1,250  yes   -\n"
        "d   e and 2 more  2     waits        0        "
        "waits for credit from router c, via b\n"
    )


def test_uplinks() -> None:
    uplinks = [{"connection": "3", "router": "a", "used": False, "text": "stands by\x1b[2J"}]
    assert printed(uplinks=uplinks) == (
        "\nUplinks\nto  conn  used  why\na   3     no    stands by\\x1b[2J\n"
    )
