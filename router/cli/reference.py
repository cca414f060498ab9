"""Markdown reference for the command line, generated from the help of the commands.

`python -m router.cli.reference > docs/reference/command-line.md` updates the page.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from typing import Final

import click

from router.cli import qdrouterd
from router.cli.main import COMMANDS, command

_IN_PLACE: Final = "trioute-qdrouterd"
_HEAD: Final = """\
# The command line

<!-- Written by `python -m router.cli.reference`; change the commands, not this page. -->

Every command has `--help`. Commands that query a running router take its URL from `--bus`, or from
the environment variable `TRIOUTE_BUS`. If they fail, they print one line on standard error. The
shell completes commands and options after

```console
$ eval "$(_TRIOUTE_COMPLETE=bash_source trioute)"     # or zsh_source, fish_source
```
"""


def format_reference() -> str:
    """Return the whole reference page."""
    return "\n".join(_page())


def _page() -> Iterator[str]:
    yield _HEAD
    commands = [(name, command(name)) for name in sorted(COMMANDS)]
    for name, each in commands:
        yield f"- [trioute {name}](#trioute-{name}): {_first_sentence(each)}"
    yield f"- [{_IN_PLACE}](#{_IN_PLACE}): {_first_sentence(qdrouterd.command)}"
    yield ""
    for name, each in commands:
        yield from _sections(f"trioute {name}", each)
    yield from _section(_IN_PLACE, qdrouterd.command)


def _sections(name: str, command: click.Command) -> Iterator[str]:
    """Yield the section of a command and, if it is a group, those of its subcommands."""
    yield from _section(name, command)
    if isinstance(command, click.Group):
        for inner in command.commands.values():
            yield from _section(f"{name} {inner.name}", inner)


def _section(name: str, command: click.Command) -> Iterator[str]:
    arguments = [each for each in command.params if isinstance(each, click.Argument)]
    options = [each for each in command.params if isinstance(each, click.Option)]
    yield f"## {name}"
    yield ""
    yield "```text"
    yield " ".join([name, *(["[OPTIONS]"] * bool(options)), *map(_argument, arguments)])
    yield "```"
    yield ""
    for paragraph in _paragraphs(command):
        yield paragraph
        yield ""
    if options:
        yield "| Option | Meaning |"
        yield "|---|---|"
        for each in options:
            yield f"| {_names(each)} | {_meaning(each)} |"
        yield ""


def _argument(argument: click.Argument) -> str:
    if argument.metavar:
        return argument.metavar
    name = _value(argument)
    return name if argument.required else f"[{name}]"


def _paragraphs(command: click.Command) -> Iterator[str]:
    """Yield the paragraphs of a command's help; preformatted ones become code blocks."""
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        if paragraph.startswith("\b\n"):
            yield f"```text\n{paragraph[2:]}\n```"
        else:
            yield paragraph


def _first_sentence(command: click.Command) -> str:
    first = " ".join(next(_paragraphs(command)).split())
    return f"{first.split('. ')[0].rstrip('.')}."


def _names(option: click.Option) -> str:
    value = "" if option.is_flag or option.count else f" {_value(option)}"
    return ", ".join(f"`{name}{value}`" for name in option.opts).replace("|", "\\|")


def _value(parameter: click.Parameter) -> str:
    """Return the placeholder for a parameter's value, such as FILE or N."""
    kind: object = parameter.type
    if parameter.metavar:
        return parameter.metavar
    if isinstance(kind, click.Choice):
        return "|".join(map(str, kind.choices))
    if isinstance(kind, click.Path):
        return "FILE"
    if isinstance(kind, click.types.IntParamType | click.types.FloatParamType):
        return "N"
    return (parameter.name or "").upper() if isinstance(parameter, click.Argument) else "TEXT"


def _meaning(option: click.Option) -> str:
    meaning = " ".join((option.help or "").split())
    if option.show_default and not option.is_flag and option.default is not None:
        meaning += f" [default: {option.default}]"
    return meaning.replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(format_reference())
