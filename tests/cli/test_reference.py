"""The reference page says what the commands say, and the one in the tree is current."""

from __future__ import annotations

import runpy
from pathlib import Path

import click
import pytest

from router.cli.main import COMMANDS, command
from router.cli.reference import format_reference

from support.commands import run

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/command-line.md"


def test_the_page_in_the_tree_is_current() -> None:
    # without a diff of two long texts
    is_current = PAGE.read_text(encoding="utf-8") == format_reference()
    assert is_current, f"{PAGE} is stale: run `make docs`"


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_option_is_there_and_means_something(name: str) -> None:
    section = format_reference().split(f"## trioute {name}\n")[1].split("\n## ")[0]
    for parameter in command(name).params:
        if isinstance(parameter, click.Option):
            for spelling in parameter.opts:
                assert f"`{spelling}" in section
            assert parameter.help, f"{name} {parameter.opts} has no help"


def test_rows_are_whole() -> None:
    for line in format_reference().splitlines():
        if line.startswith("|"):
            assert line.replace("\\|", "").count("|") == 3


def test_it_runs_as_a_program(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(Path(format_reference.__code__.co_filename)), run_name="__main__")
    assert capsys.readouterr().out == format_reference()


def test_the_shell_can_complete_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_TRIOUTE_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "trioute st")
    monkeypatch.setenv("COMP_CWORD", "1")
    assert run().output == "plain,stat\n"
