"""`trioute passwd FILE USER`: add a user to a users file, or change a user's password."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from router.config.mistakes import InvalidConfiguration
from router.config.replacing import replace_file
from router.config.users import check_name, hash_password, load_users


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.argument("user")
@click.option(
    "--stdin", is_flag=True, help="Read the password from the first line of standard input."
)
def passwd(file: Path, user: str, stdin: bool) -> None:
    """Set the password of USER in the users FILE, which is created if it does not exist.

    The command asks for the password twice. It does not change the other lines of FILE. Only the
    owner can read FILE afterwards. A router that reads FILE meanwhile sees either the old content
    or the new one.
    """
    try:
        check_name(user)
    except ValueError as error:
        raise click.BadParameter(f"its line in the users file {error}", param_hint="USER") from None
    # A symbolic link stays one: the file that it points to is replaced.
    file = file.resolve()
    try:
        if file.exists():
            load_users(file)
        password = _read_password(stdin=stdin)
        replace_file(file, _with_user(_old_text(file), user, hash_password(password)))
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


def _old_text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""


def _with_user(text: str, user: str, stored: str) -> str:
    """Return the text of a users file, with the line of `user` replaced or added at the end."""
    lines = text.splitlines()
    line = f"{user}:{stored}"
    for index, old in enumerate(lines):
        if old.partition(":")[0] == user:
            lines[index] = line
            break
    else:
        lines.append(line)
    return "\n".join(lines) + "\n"
