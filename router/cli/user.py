"""`trioute user`: add, remove and list the users in a users file."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import click

from router.cli.tables import Cell, Head, lay_out
from router.config.mistakes import InvalidConfiguration
from router.config.replacing import replace_file
from router.config.scram import MECHANISMS as SCRAM
from router.config.users import check_name, credentials_of, load_users

MECHANISMS: Final = ("PLAIN", *SCRAM)
_FILE: Final = click.Path(dir_okay=False, path_type=Path)


@click.group()
def user() -> None:
    """Add, remove and list users in a users FILE, which listeners with PLAIN or SCRAM read.

    The file holds hashes, not passwords, and only its owner can read it after a change. A router
    that reads it meanwhile sees either the old content or the new one. After a change, reload the
    router: `trioute apply`, or SIGHUP.
    """


@user.command()
@click.argument("file", type=_FILE)
@click.argument("name")
@click.option(
    "--stdin", is_flag=True, help="Read the password from the first line of standard input."
)
@click.option(
    "--mechanism",
    "mechanisms",
    multiple=True,
    type=click.Choice(MECHANISMS),
    default=MECHANISMS,
    show_default=True,
    help="A mechanism that the user can log in by; may be repeated.",
)
def add(file: Path, name: str, stdin: bool, mechanisms: tuple[str, ...]) -> None:
    """Add the user NAME to FILE, or change the user's password.

    The command asks for the password twice. It creates FILE if it does not exist, and does not
    change its other lines. Whoever steals FILE can try passwords; a hash for PLAIN alone makes that
    the slowest.
    """
    try:
        check_name(name)
    except ValueError as error:
        raise click.BadParameter(f"its line in the users file {error}", param_hint="NAME") from None

    def added(lines: list[str]) -> None:
        line = f"{name}:{credentials_of(_read_password(stdin=stdin), dict.fromkeys(mechanisms))}"
        for index, old in enumerate(lines):
            if _name_in(old) == name:
                lines[index] = line
                return
        lines.append(line)

    _change(file, added)


@user.command()
@click.argument("file", type=_FILE)
@click.argument("name")
def remove(file: Path, name: str) -> None:
    """Remove the user NAME from FILE.

    Connections of the user stay open; after a reload the user cannot log in again.
    """

    def removed(lines: list[str]) -> None:
        kept = [line for line in lines if _name_in(line) != name]
        if len(kept) == len(lines):
            raise click.ClickException(f"{file} has no user {name}")
        lines[:] = kept

    _change(file, removed)


@user.command("list")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def list_users(file: Path) -> None:
    """List the users in FILE, and the mechanisms that each can log in by."""
    try:
        users = load_users(file)
    except InvalidConfiguration as invalid:
        raise click.ClickException(str(invalid)) from None
    rows = [
        (Cell(name), Cell(" ".join(["PLAIN", *each.scram]))) for name, each in users.by_name.items()
    ]
    for line in lay_out((Head("user"), Head("mechanisms")), rows):
        click.echo(line)


def _name_in(line: str) -> str:
    return line.partition(":")[0]


def _change(file: Path, change: Callable[[list[str]], None]) -> None:
    """Apply a change to the lines of a users file, and replace the file as a whole."""
    # A symbolic link stays one: the file that it points to is replaced.
    file = file.resolve()
    try:
        if file.exists():
            load_users(file)
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        change(lines)
        replace_file(file, "".join(f"{line}\n" for line in lines))
    except InvalidConfiguration as invalid:
        raise click.ClickException(f"the file was not changed:\n{invalid}") from None
    except ValueError as error:
        raise click.ClickException(str(error)) from None
    except OSError as error:
        raise click.ClickException(f"{file}: {error.strerror or error}") from None


def _read_password(*, stdin: bool) -> str:
    if not stdin:
        password: str = click.prompt("Password", hide_input=True, confirmation_prompt="Once more")
        return password
    return sys.stdin.readline().rstrip("\r\n")
