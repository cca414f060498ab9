"""`trioute user`: add, remove, import and list the users in a users file."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import click

from router.cli.tables import Cell, Head, lay_out
from router.config.mistakes import InvalidConfiguration
from router.config.replacing import replace_file
from router.config.sasldb import is_sasldb
from router.config.scram import MECHANISMS as SCRAM
from router.config.users import check_name, credentials_of, load_database, load_users

MECHANISMS: Final = ("PLAIN", *SCRAM)
_FILE: Final = click.Path(dir_okay=False, path_type=Path)
_EXISTING: Final = click.Path(exists=True, dir_okay=False, path_type=Path)
_with_mechanisms = click.option(
    "--mechanism",
    "mechanisms",
    multiple=True,
    type=click.Choice(MECHANISMS),
    default=MECHANISMS,
    show_default=True,
    help="A mechanism that the user can log in by; may be repeated.",
)


@click.group()
def user() -> None:
    """Add, remove, import and list users in a users FILE, which listeners with PLAIN or SCRAM read.

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
@_with_mechanisms
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
        _put(lines, {name: credentials_of(_read_password(stdin=stdin), dict.fromkeys(mechanisms))})

    _change(file, added)


@user.command("import")
@click.argument("file", type=_FILE)
@click.argument("database", type=_EXISTING)
@_with_mechanisms
def import_users(file: Path, database: Path, mechanisms: tuple[str, ...]) -> None:
    """Add the users of a DATABASE of Cyrus SASL (sasldb2) to FILE, or change their passwords.

    FILE gets hashes of the passwords, which DATABASE has in clear text. A user is called NAME@REALM
    and, if the realm is the name of this host, also NAME, with the same hashes. Each user takes
    about a tenth of a second.
    """
    try:
        passwords = load_database(database)
    except InvalidConfiguration as invalid:
        raise click.ClickException(str(invalid)) from None
    wanted = dict.fromkeys(mechanisms)
    found: dict[str, str] = {}
    # the same hashes show that two names are those of one user (`Users.name_of`)
    made: dict[tuple[str, str], str] = {}
    for name, password in passwords.items():
        key = (name.rpartition("@")[0] or name, password)
        try:
            check_name(name)
            found[name] = made[key] = made.get(key) or credentials_of(password, wanted)
        except ValueError as error:
            raise click.ClickException(f"{database}: the user {name!a}: {error}") from None
    _change(file, lambda lines: _put(lines, found))
    click.echo(f"{len(found)} imported into {file}")


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
@click.argument("file", type=_EXISTING)
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


def _name_in(line: str) -> str | None:
    """Return the user in a line, or None in a comment or an empty line."""
    return None if not line.strip() or line.startswith("#") else line.partition(":")[0]


def _put(lines: list[str], users: dict[str, str]) -> None:
    """Set the hashes of users, by name; new users are appended."""
    new = dict(users)
    for index, line in enumerate(lines):
        name = _name_in(line)
        if name is not None and name in new:
            lines[index] = f"{name}:{new.pop(name)}"
    lines.extend(f"{name}:{hashes}" for name, hashes in new.items())


def _lines(file: Path) -> list[str]:
    """Return the lines of a users file, which has to be valid."""
    data = file.read_bytes()
    if is_sasldb(data):
        raise click.ClickException(
            f"{file} is a database of Cyrus SASL: change it with saslpasswd2, or move its users to "
            "a users file with `trioute user import`"
        )
    load_users(file)
    return data.decode("utf-8").splitlines()


def _change(file: Path, change: Callable[[list[str]], None]) -> None:
    """Apply a change to the lines of a users file, and replace the file as a whole."""
    # A symbolic link stays one: the file that it points to is replaced.
    file = file.resolve()
    try:
        lines = _lines(file) if file.exists() else []
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
