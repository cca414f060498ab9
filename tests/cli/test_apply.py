"""`trioute apply` against a router that runs."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from pathlib import Path

import pytest

from support.commands import Ended, run
from support.launcher import trioute
from support.routers import RouterProcess, StartRouter

CONFIGURATION = """\
[[listener]]
host = "127.0.0.1"
port = 0
name = "l"

[[address]]
prefix = "old"
"""
WANTED = """\
[[listener]]
host = "127.0.0.1"
port = 0
name = "l"
linkCapacity = 50

[[address]]
prefix = "new"
distribution = "multicast"
"""
SHOWN = [
    "+ address router.config.address/new",
    '      prefix = "new"',
    '      distribution = "multicast"',
    "~ listener l",
    "      linkCapacity = 1000 -> 50",
    "- address router.config.address/old",
]


@pytest.fixture
def router(start_router: StartRouter) -> RouterProcess:
    return start_router(CONFIGURATION)


@pytest.fixture
def wanted(tmp_path: Path) -> Path:
    file = tmp_path / "wanted.toml"
    file.write_text(WANTED, encoding="utf-8")
    return file


def apply(router: RouterProcess, *arguments: str | Path, stdin: bytes | None = None) -> Ended:
    return run("apply", "--bus", router.url(), *arguments, stdin=stdin)


def test_it_shows_applies_remembers_and_goes_back(router: RouterProcess, wanted: Path) -> None:
    looked = apply(router, "--dry-run", wanted)
    assert (looked.code, looked.lines) == (0, [*SHOWN, "nothing was changed"])
    done = apply(router, "--yes", wanted)
    assert done.lines == [*SHOWN, "revision 2 runs; it is lost when the router stops"]
    again = apply(router, wanted, "--yes")
    assert (again.code, again.lines) == (
        0,
        ["nothing to do: the router runs this configuration already"],
    )
    back = apply(router, "--rollback", "--yes")
    assert back.code == 0
    assert "~ listener l" in back.lines
    assert back.lines[-1].startswith("revision 3 runs")
    there = apply(router, "--rollback", "2", "--yes")
    assert there.lines[:-1] == SHOWN
    history = [line for line in apply(router, "--history").lines if not line.startswith(" ")]
    assert [line.partition(", by ")[0].split("  ")[0::2] for line in history] == [
        ["4", "ROLLBACK to revision 2"],
        ["3", "ROLLBACK to revision 1"],
        ["2", f"APPLY {wanted}"],
        ["1", "start"],
    ]
    assert history[0].endswith("(runs)")
    assert router.stop() == 0
    assert "changes are lost" in router.log_text()


def test_what_runs_can_be_taken_into_a_file_and_applied(
    router: RouterProcess, tmp_path: Path
) -> None:
    for way in ("--show", "--export"):
        shown = apply(router, way)
        assert shown.code == 0
        file = tmp_path / "shown.toml"
        file.write_text(shown.output, encoding="utf-8")
        assert run("check", file).code == 0
        assert apply(router, "--yes", file).lines == [
            "nothing to do: the router runs this configuration already"
        ]


def test_it_reads_standard_input_and_prints_json(router: RouterProcess) -> None:
    done = apply(router, "--yes", "--json", "-", stdin=WANTED.encode())
    told = json.loads(done.output)
    assert (told["revision"], told["count"], told["dryRun"]) == (2, 3, False)
    assert told["differences"][1] == {
        "entity": "listener",
        "key": "l",
        "what": "changed",
        "fields": {"linkCapacity": [1000, 50]},
    }
    assert [
        each["revision"] for each in json.loads(apply(router, "--history", "--json").output)
    ] == [
        2,
        1,
    ]
    assert json.loads(apply(router, "--show", "--json").output)["revision"] == 2


def test_what_the_router_refuses_is_told_by_the_file_s_name(
    router: RouterProcess, wanted: Path
) -> None:
    wanted.write_text('[[listener]]\nport = "x"\n', encoding="utf-8")
    refused = apply(router, "--yes", wanted)
    assert (refused.code, refused.output) == (1, "")
    assert refused.errors.startswith(f"trioute: 400 {wanted}:2: listener[0].port: ")
    assert apply(router, "--rollback", "9", "--yes").code == 1


@pytest.mark.parametrize(
    "arguments",
    [(), ("--history", "--show"), ("--rollback", "one", "--yes"), ("-", "--json"), ("-",)],
)
def test_what_makes_no_sense_is_a_wrong_command_line(
    router: RouterProcess, arguments: tuple[str, ...]
) -> None:
    assert apply(router, *arguments, stdin=b"").code == 2


def test_a_file_of_dispatch_is_to_be_converted_first(router: RouterProcess) -> None:
    ended = apply(router, "-", "--yes", stdin=b"router {\n    id: A\n}\n")
    assert ended.code == 2
    assert "`trioute convert`" in ended.errors


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 1), ("", 1)])
def test_on_a_terminal_it_asks_and_shows_colours(
    router: RouterProcess, wanted: Path, answer: str, code: int
) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        trioute("apply", "--bus", router.url(), wanted),
        stdin=theirs,
        stdout=theirs,
        stderr=subprocess.PIPE,
    ) as process:
        os.write(ours, f"{answer}\n".encode())
        assert process.stderr is not None
        asked = process.stderr.read().decode()
    shown = os.read(ours, 65536).decode()
    os.close(ours)
    os.close(theirs)
    assert process.returncode == code
    assert asked.startswith("Apply these 3 changes? [y/N]: ")
    assert ("nothing was changed" in asked) == (code == 1)
    assert ("revision 2 runs" in shown) == (code == 0)
    assert f"\x1b[32m{SHOWN[0]}" in shown


def test_without_a_router_it_says_so(wanted: Path) -> None:
    ended = run("apply", "--bus", "amqp://127.0.0.1:1", "--yes", wanted)
    assert ended.code == 3
    assert "Traceback" not in ended.errors
