"""`trioute apply --advice` in a network of routers that run."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from support.commands import Ended, run
from support.management_tool import Tool
from support.router_networks import Line, RouterNetwork
from support.routers import StartRouter


@pytest.fixture
def network(start_router: StartRouter) -> Iterator[RouterNetwork]:
    """Three routers: `a` and `c` have a connection of their own, of cost 4, and one by way of b."""
    network = RouterNetwork(start_router, [Line("a", "b", 2), Line("b", "c"), Line("a", "c", 4)])
    network.start()
    yield network
    network.close()


def change(*routers: str, cost: int, advised: int, samples: int = 500) -> dict[str, Any]:
    """One change."""
    return {
        "routers": routers,
        "cost": cost,
        "advised": advised,
        "target": advised,
        "samples": samples,
        "reason": "faster than other paths",
        "nowMilliseconds": 40,
        "thenMilliseconds": 12.5,
        "movedPerSecond": 7.5,
    }


def written(folder: Path, *changes: dict[str, Any]) -> Path:
    """Write a file with advice that was made now."""
    now = datetime.now(UTC)
    file = folder / "advice.json"
    times = {"made": now.isoformat(), "expires": (now + timedelta(hours=1)).isoformat()}
    file.write_text(json.dumps({"version": 1, **times, "changes": changes, "lines": []}))
    return file


def apply(network: RouterNetwork, at: str, *arguments: str | Path) -> Ended:
    return run("apply", "--bus", network.url(at), "--advice", *arguments)


def connections(network: RouterNetwork, at: str) -> set[str]:
    """Return the identities of a router's connections to other routers."""
    tool = Tool(network[at])
    try:
        table = tool.query("connection", "identity", "role")
    finally:
        tool.close()
    return {each["identity"] for each in table if each["role"] == "inter-router"}


def until_reached(network: RouterNetwork, at: str, costs: dict[str, int]) -> None:
    """Wait until a router knows these costs."""
    deadline = time.monotonic() + 30
    while (found := network.reached(at)) != costs:
        assert time.monotonic() < deadline, found


def test_costs_change_wherever_the_connectors_are_and_connections_stay(
    network: RouterNetwork, tmp_path: Path
) -> None:
    before = {name: connections(network, name) for name in "abc"}
    until_reached(network, "c", {"a": 3, "b": 1})
    advice = written(
        tmp_path,
        change("a", "c", cost=4, advised=2),
        change("b", "c", cost=1, advised=2),
        change("a", "b", cost=2, advised=3, samples=7),
        change("b", "a", cost=9, advised=10),
        change("a", "x", cost=9, advised=10),
    )
    why = (
        "      faster than other paths: 7.5 messages a second take another path, 40 -> 12.5 ms "
        "(500 samples)"
    )
    silent = "router x cannot be asked: _topo/0/x/$management did not answer within 2 s"
    told = [
        "~ a - c  cost 4 -> 2  connector to-c of a",
        why,
        "~ b - c  cost 1 -> 2  connector to-c of b",
        why,
        "  a - b  cost 2 -> 3  left out: it has 7 samples, fewer than 100 (--least-samples)",
        "  b - a  cost 9 -> 10  left out: its cost is 2 now",
        f"  a - x  cost 9 -> 10  left out: {silent}",
    ]
    looked = apply(network, "c", advice, "--dry-run", "--timeout", "2")
    assert (looked.code, looked.lines) == (0, [*told, "nothing was changed"])
    assert network.reached("c") == {"a": 3, "b": 1}

    done = apply(network, "c", advice, "--yes", "--timeout", "2")
    assert done.lines == [*told, "changed: 2 costs; connections stay"]
    assert (done.code, done.errors) == (1, "trioute: left out: 3 changes\n")
    until_reached(network, "c", {"a": 2, "b": 2})
    until_reached(network, "a", {"c": 2, "b": 2})
    assert {name: connections(network, name) for name in "abc"} == before

    again = apply(network, "a", advice, "--yes", "--json", "--timeout", "2")
    assert again.code == 1
    reasons = [each["leftOut"] for each in json.loads("\n".join(again.lines))]
    assert reasons[:2] == ["its cost is 2 now", "its cost is 2 now"]


def test_a_cost_of_the_listener_stands_in_the_way(
    start_router: StartRouter, tmp_path: Path
) -> None:
    network = RouterNetwork(start_router, [Line("a", "b", 8)])
    network.start()
    try:
        raised = run(
            "manage",
            "--bus",
            network.url("b"),
            *("update", "--type", "listener", "--name", "inter-routers", "cost=5"),
        )
        assert raised.code == 0, raised.errors
        advice = written(tmp_path, change("a", "b", cost=8, advised=4))
        looked = apply(network, "a", advice, "--dry-run")
        words = "left out: all listeners of b for routers have a cost of 5 or more"
        assert looked.lines == [f"  a - b  cost 8 -> 4  {words}", "nothing to do within the bounds"]
    finally:
        network.close()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--yes", "--rollback"], "give one of FILE, --rollback, --advice"),
        ([], "cannot ask for confirmation without a terminal: give --yes or --dry-run"),
    ],
)
def test_wrong_command_lines(tmp_path: Path, arguments: list[str], words: str) -> None:
    ended = run("apply", "--advice", written(tmp_path), *arguments)
    assert ended.code == 2
    assert words in ended.errors


def test_a_file_that_is_none(tmp_path: Path) -> None:
    file = tmp_path / "wrong.json"
    file.write_text("[]")
    ended = run("apply", "--advice", file, "--yes")
    assert ended.code == 2
    assert f"{file} is not a file with advice: `trioute-spark advise --advice FILE` writes one" in (
        ended.errors
    )
