"""`trioute convert FILE`: convert a configuration file of Qpid Dispatch to TOML."""

from __future__ import annotations

from pathlib import Path

import click

from router.config.load import read_text
from router.config.mistakes import InvalidConfiguration, Mistake
from router.config.qdrouterd.converting import format_converted
from router.config.qdrouterd.reading import InvalidDispatch, parse_dispatch
from router.config.qdrouterd.report import FLAG
from router.config.qdrouterd.syntax import detect_syntax
from router.config.replacing import replace_file
from router.net.extra_checks import EXTRA_CHECKS


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write to this file, which must not exist yet, instead of standard output.",
)
@click.option(
    FLAG,
    is_flag=True,
    help="Accept a Dispatch file even if it asks for TLS, authentication or policies that are "
    "not supported.",
)
def convert(file: Path, output: Path | None, weaker_security: bool) -> None:
    """Print the configuration FILE of Qpid Dispatch (qdrouterd.conf, in either syntax) as TOML.

    The result configures the same router and keeps the comments. It begins with lists of the
    settings that are not supported, of those that are ignored, and of the Dispatch defaults that it
    sets explicitly. Like FILE, it may contain passwords.

    Exits with 0 on success, and otherwise with 1 and one line for each mistake.
    """
    try:
        text = _converted(file, output, weaker_security)
        if output is not None and output.exists():
            raise InvalidConfiguration([Mistake(str(output), 0, 0, "", "", "exists already")])
    except InvalidConfiguration as invalid:
        for mistake in invalid.mistakes:
            click.echo(str(mistake), err=True)
        if isinstance(invalid, InvalidDispatch):
            for line in invalid.report.lines():
                click.echo(line, err=True)
        raise SystemExit(1) from None
    if output is None:
        click.echo(text, nl=False)
        return
    try:
        replace_file(output, text)
    except OSError as error:
        raise click.ClickException(f"{output} cannot be written: {error.strerror}") from None


def _converted(file: Path, output: Path | None, weaker_security: bool) -> str:
    text, source = read_text(file), str(file)
    syntax = detect_syntax(text, file.suffix)
    if syntax == "toml":
        raise InvalidConfiguration([Mistake(source, 0, 0, "", "", "is TOML already")])
    moved = parse_dispatch(
        text,
        syntax,
        source=source,
        folder=file.parent,
        extra_checks=EXTRA_CHECKS,
        weaker_security=weaker_security,
    )
    # files that it names stay where they are
    elsewhere = output is not None and output.absolute().parent != file.absolute().parent
    return format_converted(moved, file.parent if elsewhere else None)
