"""`trioute`: its subcommands, its version, and what it says to a wrong command line."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from router import __version__
from router.build import data_plane
from router.cli.main import main

from support.commands import run


def test_every_command_is_there_and_helps() -> None:
    assert main.commands.keys() >= {"check", "passwd", "receive", "run", "send"}
    for command in main.commands:
        result = CliRunner().invoke(main, [command, "--help"])
        assert result.exit_code == 0
        assert f"Usage: main {command}" in result.output


def test_help_has_a_short_name() -> None:
    # click remembers a command's names for help, so this needs a process of its own
    for arguments in (["-h"], ["send", "-h"]):
        ended = run(*arguments)
        assert ended.code == 0
        assert ended.output.startswith(" ".join(["Usage: trioute", *arguments[:-1]]))


def test_the_version_says_which_build_it_is() -> None:
    result = CliRunner().invoke(main, ["--version"])
    assert result.output == f"trioute {__version__} ({data_plane()} data plane)\n"


@pytest.mark.parametrize("arguments", [["fly"], ["--what"], ["send"], ["receive"]])
def test_a_wrong_command_line(arguments: list[str]) -> None:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2
    assert "Usage:" in result.output


def test_it_runs_as_a_program() -> None:
    ended = run("--version")
    assert ended.code == 0
    assert ended.output.startswith("trioute ")
    assert ended.errors == ""
