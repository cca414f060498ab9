"""`trioute simulate`: a report of what each failure costs, as text or as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import structlog

from router.cli.simulate import LINE_S, ProgressReporter
from router.simulation.ledger import Ledger
from router.simulation.running import Progress

from support.commands import invoke

TOPOLOGY = """
[simulation]
seconds = 3
[[router]]
name = "a"
[[receiver]]
at = "a"
address = "q"
[[sender]]
at = "a"
address = "q"
rate = 20
[[event]]
at = 1
action = "restart"
routers = ["a"]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a topology file."""
    written = tmp_path / "topology.toml"
    written.write_text(TOPOLOGY, encoding="utf-8")
    return written


def test_a_report_has_a_row_for_each_thing_that_happened(file: Path) -> None:
    ended = invoke("simulate", file)

    assert (ended.code, ended.errors) == (0, "")
    lines = ended.output.splitlines()
    assert lines[0] == "1 router, 0 links, seed 1"
    assert [line.split("  ")[0] for line in lines[3:7]] == [
        "start",
        "traffic begins",
        "restart a",
        "traffic ends",
    ]
    assert "messages   60 sent: 60 accepted" in lines
    assert lines[-1].startswith("ledger     every message had one outcome")


def test_json_is_the_same_each_time_and_another_for_another_seed(file: Path) -> None:
    first = invoke("simulate", file, "--json")
    again = invoke("simulate", file, "--json")
    other = invoke("simulate", file, "--json", "--seed", "7")

    assert first == again
    assert json.loads(first.output)["seed"] == 1
    assert json.loads(other.output)["seed"] == 7
    assert first.output != other.output


def test_mistakes_in_the_file_are_told_and_nothing_is_simulated(file: Path) -> None:
    file.write_text('[[router]]\nnam = "a"\n', encoding="utf-8")

    ended = invoke("simulate", file)

    assert ended.code == 1
    assert ended.output == ""
    assert "router[0].nam: is not a known attribute; did you mean name?" in ended.errors


def test_a_message_that_is_not_treated_as_is_promised_is_told_of_and_is_an_error(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Ledger, "delivered", lambda *_: None)

    ended = invoke("simulate", file)

    assert ended.code == 1
    assert "messages broke a guarantee:" in ended.output
    assert "message 0 of sender 0: accepted, but not delivered" in ended.output


def test_many_things_that_happen_are_added_up(file: Path) -> None:
    text = TOPOLOGY.replace("at = 1\n", "at = 0\ntimes = 50\nevery = 0.05\n")
    file.write_text(text, encoding="utf-8")

    ended = invoke("simulate", file)

    assert ended.code == 0
    assert "restart, 50 times" in ended.output


def test_it_says_how_far_it_is_where_it_takes_long(capsys: pytest.CaptureFixture[str]) -> None:
    progress = Progress(1.5, 20.0, "kill r7")
    teller = ProgressReporter(is_terminal=False, now=100.0)
    teller.report(progress, 100.0 + LINE_S / 2)
    teller.report(progress, 100.0 + LINE_S)
    teller.report(progress, 101.0 + LINE_S)
    teller.clear()
    assert capsys.readouterr().err == f"after {LINE_S:.0f} s: 1.50 of 20 s: kill r7\n"

    teller = ProgressReporter(is_terminal=True, now=100.0)
    teller.report(progress, 101.0)
    teller.clear()
    # what moves a terminal's cursor is left out where there is none
    assert capsys.readouterr().err == "\r1.50 of 20 s: kill r7\r"


def test_what_others_log_in_this_process_is_left_as_it_was(file: Path) -> None:
    before = structlog.get_config()
    assert invoke("simulate", file, "--quiet").code == 0
    assert structlog.get_config() == before
