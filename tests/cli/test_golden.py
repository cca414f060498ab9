"""Exact output of every command that looks at a router, at two widths and in each form.

The router, its clients and what they did are the same each time; see `support/golden.py` for what
is not, and for how the files are written anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from proton import Message

from router.cli.main import main

from support import golden
from support.proton_peers import ProtonPeers
from support.routers import RouterProcess, running_router

FOLDER = Path(__file__).parent / "golden"
NARROW, WIDE = "80", "160"

ROUTER = """\
[router]
id = "solo"

[[listener]]
name = "front"
host = "127.0.0.1"
port = 0
idleTimeoutSeconds = 0

[[address]]
name = "news"
prefix = "news"
distribution = "multicast"

[[address]]
name = "closed"
pattern = "closed/*"
distribution = "unavailable"

[[redirect]]
prefix = "moved"
toNetworkHost = "10.0.0.2"
"""

WANTED = ROUTER.replace('"multicast"', '"closest"').replace('"closed/*"', '"closed/#"')
BROKEN = ROUTER.replace("distribution", "distributoin").replace("10.0.0.2", "no host")

_LOOKS = ("connections", "links", "addresses")
_NOTHING = ("nodes", "edges", "auto-links", "link-routes", "exchanges", "vhosts", "vhoststats")
SCENES: dict[str, list[list[str]]] = {
    "stat-general": [["stat"], ["stat", "-g", "-v", "--width", NARROW]],
    **{
        f"stat-{view}": [
            ["stat", view, "--width", NARROW],
            ["stat", view, "--width", WIDE],
            ["stat", view, "-v", "--width", WIDE],
            ["stat", view, "--csv"],
            ["stat", view, "--json"],
        ]
        for view in _LOOKS
    },
    "stat-nothing": [["stat", view] for view in _NOTHING],
    "stat-memory-and-policy": [["stat", "-m"], ["stat", "-p"]],
    "stat-part": [["stat", "-a", "--offset", "1", "--limit", "1", "--width", NARROW]],
    "stat-wrong": [["stat", "--csv", "-l", "-c"], ["stat", "--logs", "--watch", "1"]],
    "explain-flows": [
        ["explain", "anonymous@front", "send", "orders", "--width", NARROW],
        ["explain", "anonymous@front", "send", "orders", "--width", WIDE],
        ["explain", "anonymous@front", "receive", "orders", "--width", NARROW],
    ],
    "explain-nothing-flows": [
        ["explain", "anonymous", "send", "nobody/here", "--width", NARROW],
        ["explain", "anonymous", "send", "dry", "--width", NARROW],
        ["explain", "anonymous", "send", "dry", "--width", WIDE],
        ["explain", "anonymous", "receive", "dry", "--width", NARROW],
        ["explain", "anonymous", "send", "news/today", "--width", WIDE],
    ],
    "explain-refused": [
        ["explain", "ann@front", "send", "orders", "--width", NARROW],
        ["explain", "anonymous", "send", "closed/x", "--width", NARROW],
        ["explain", "anonymous", "send", "moved/x", "--width", NARROW],
        ["explain", "anonymous", "receive", "$cbs", "--width", NARROW],
        ["explain", "anonymous", "fly", "orders"],
    ],
    "explain-json": [["explain", "anonymous", "send", "dry", "--json"]],
    "manage-query": [
        ["manage", "query", "--type", "address", "name", "prefix", "pattern", "distribution"],
        ["manage", "query", "--type", "router", "id", "mode", "--indent=-1"],
        ["manage", "query", "--type", "nosuch"],
        ["manage", "query", "--type", "router", "nosuch"],
    ],
    "manage-read": [
        ["manage", "read", "--type", "address", "--name", "news"],
        ["manage", "read", "--name", "nosuch"],
        ["manage", "read"],
    ],
    "manage-types": [
        ["manage", "get-types", "link"],
        ["manage", "get-operations", "management"],
        ["manage", "get-annotations", "link"],
        ["manage", "get-mgmt-nodes"],
    ],
    "apply": [
        ["check", "wanted.toml"],
        ["apply", "wanted.toml", "--dry-run"],
        ["apply", "wanted.toml", "--dry-run", "--json"],
        ["apply", "wanted.toml", "--yes"],
        ["apply", "wanted.toml", "--yes"],
        ["apply", "--rollback", "--yes"],
        ["check", "broken.toml"],
        ["apply", "broken.toml", "--yes"],
        ["apply", "nosuch.toml", "--yes"],
    ],
    "manage-change": [
        ["manage", "create", "--type", "address", "--name", "new", "prefix=new"],
        ["manage", "update", "--type", "address", "--name", "new", "distribution=closest"],
        ["manage", "delete", "--type", "address", "--name", "new"],
        ["manage", "delete", "--type", "address", "--name", "new"],
        ["manage", "create", "--type", "address", "prefix=a", "pattern=b"],
        ["manage", "create", "=x"],
        ["manage", "fly"],
    ],
    "send-and-receive": [
        ["send", "ROUTER/orders", "--count", "3", "--settle", "presettled", "--timeout", "9"],
        ["send", "ROUTER/nobody/here", "--timeout", "0.2"],
        ["send", "ROUTER/closed/x", "--timeout", "9"],
        ["send", "ROUTER/moved/x", "--timeout", "9"],
        ["receive", "ROUTER/closed/x", "--timeout", "9"],
        ["receive", "ROUTER/news/today", "--timeout", "0.2"],
        ["receive", "ROUTER/orders", "--count", "none"],
    ],
}
"""The golden files, by name, and the commands of each; they run in this order."""


def settle(peers: ProtonPeers, sender: Any, count: int) -> None:
    """Send so many messages, and wait for their outcomes."""
    for _ in range(count):
        sender.send(Message(body="x"))
    peers.until(sender.all_settled, "all is settled")


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RouterProcess]:
    """Start a router and its clients."""
    peers = ProtonPeers()
    with running_router(tmp_path_factory.mktemp("golden"), ROUTER) as router:
        try:
            # numbers of connections and counts of requests have as many digits from now on
            for _ in range(9):
                peers.connect(router.url()).close()
            shop = peers.connect(router.url(), container_id="shop")
            store = peers.connect(router.url(), container_id="store")
            store.receiver("orders", 1500)
            settle(peers, shop.sender("orders"), 987)
            store.receiver("dry")
            shop.sender("dry")
            store.receiver("news/today", 9)
            shop.receiver("news/today")
            for _ in range(150):
                run(router, ["manage", "get-mgmt-nodes"])
            yield router
        finally:
            peers.close()


def run(router: RouterProcess, arguments: list[str]) -> tuple[str, int]:
    """Run a command in this process; return its output and its exit code."""
    environment = {"TRIOUTE_BUS": f"127.0.0.1:{router.port}"}
    given = [each.replace("ROUTER/", f"{router.url()}/") for each in arguments]
    result = CliRunner().invoke(main, given, prog_name="trioute", env=environment)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.output, result.exit_code


def tidied(router: RouterProcess, arguments: list[str], output: str) -> str:
    """Mask the volatile parts of the output."""
    if "--csv" in arguments and output.startswith("name,"):
        return golden.masked_csv(output)
    if "--json" in arguments and output.startswith(("{", "[")):
        return golden.masked_json(output)
    return golden.masked(output, own_number(router))


def own_number(router: RouterProcess) -> str:
    """Return the number of the latest connection, as the router's log has it."""
    opened = [line for line in router.log_text().splitlines() if "connection opened" in line]
    return next(word for word in opened[-1].split() if word.startswith("connection="))[11:]


@pytest.fixture(scope="module")
def runs(
    scene: RouterProcess,
    monkeypatch_module: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, list[tuple[list[str], str, int]]]:
    """All commands, run in their order, so that what one of them tells is the same each time."""
    monkeypatch_module.setattr("secrets.token_hex", lambda _count: "0123456789ab")
    folder = tmp_path_factory.mktemp("files")
    monkeypatch_module.chdir(folder)
    (folder / "wanted.toml").write_text(WANTED, encoding="utf-8")
    (folder / "broken.toml").write_text(BROKEN, encoding="utf-8")
    found: dict[str, list[tuple[list[str], str, int]]] = {}
    for name, commands in SCENES.items():
        found[name] = []
        for arguments in commands:
            output, code = run(scene, arguments)
            found[name].append((arguments, tidied(scene, arguments, output), code))
    return found


@pytest.fixture(scope="module")
def monkeypatch_module() -> Iterator[pytest.MonkeyPatch]:
    """Patches that last as long as the module's tests."""
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.mark.parametrize("name", SCENES)
def test_output(
    name: str,
    runs: dict[str, list[tuple[list[str], str, int]]],
    request: pytest.FixtureRequest,
) -> None:
    update = request.config.getoption("--update-golden")
    golden.check(FOLDER / f"{name}.txt", golden.transcript(runs[name]), update=update)


def test_every_file_belongs_to_a_scene() -> None:
    assert {file.stem for file in FOLDER.glob("*.txt")} == set(SCENES)
