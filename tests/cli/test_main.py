"""`trioute`: its subcommands, its version, and what it says to a wrong command line."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from router import __version__, cli
from router.build import data_plane
from router.cli.main import COMMANDS, main

from support.commands import run


def test_every_command_is_there_and_helps() -> None:
    assert COMMANDS.keys() >= {"check", "receive", "run", "send", "user"}
    for name in COMMANDS:
        result = CliRunner().invoke(main, [name, "--help"])
        assert result.exit_code == 0
        assert f"Usage: main {name}" in result.output


def test_every_module_with_a_command_of_its_name_is_listed() -> None:
    folder = Path(cli.__file__).parent
    for path in folder.glob("*.py"):
        if path.stem != "main":
            module = import_module(f"router.cli.{path.stem}")
            is_command = isinstance(getattr(module, path.stem, None), click.Command)
            assert is_command is (path.stem in COMMANDS), path


def test_the_list_of_commands_is_not_cut() -> None:
    result = CliRunner().invoke(main, ["--help"], terminal_width=80)
    for name, text in COMMANDS.items():
        assert f"  {name}" in result.output
        assert text in result.output


def test_the_list_of_commands_imports_none_of_them() -> None:
    ended = subprocess.run(
        [
            sys.executable,
            "-P",
            "-X",
            "importtime",
            "-c",
            "from router.cli.main import main; main()",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    imported = [line.rpartition("|")[2].strip() for line in ended.stderr.splitlines()]
    assert "Commands:" in ended.stdout + ended.stderr
    assert "click" in imported
    assert not {f"router.cli.{name}" for name in COMMANDS} & set(imported)
    assert not {"trio", "attrs", "router.node"} & set(imported)


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
