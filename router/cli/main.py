"""Command `trioute` with its subcommands, one module each.

A subcommand's module is imported when the command is used: most of the time that a short command
takes is that of imports.
"""

from __future__ import annotations

from importlib import import_module
from typing import Final

import click

from router import __version__

COMMANDS: Final = {
    "apply": "Apply a configuration to a running router.",
    "check": "Check a configuration and report its mistakes.",
    "convert": "Convert a configuration of Qpid Dispatch.",
    "explain": "Explain why messages do or do not flow.",
    "manage": "Perform a management operation.",
    "passwd": "Set or remove a user's password.",
    "plugins": "List installed plugins.",
    "receive": "Receive messages.",
    "run": "Run a router.",
    "send": "Send messages.",
    "simulate": "Simulate a network of routers.",
    "stat": "Show the state of a running router.",
    "trace": "Show frames, or follow deliveries.",
}
"""Subcommands, which are modules of this package, with the text of `trioute --help`."""


class _Subcommands(click.Group):
    """Group whose commands are imported when they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, sorted."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, or None if there is none of that name."""
        return command(cmd_name) if cmd_name in COMMANDS else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(sorted(COMMANDS.items()))


def command(name: str) -> click.Command:
    """Import a subcommand and return it."""
    found: click.Command = getattr(import_module(f"router.cli.{name}"), name)
    return found


def _version(ctx: click.Context, _: click.Parameter, is_asked: bool) -> None:
    if not is_asked or ctx.resilient_parsing:
        return
    from router.build import data_plane

    click.echo(f"trioute {__version__} ({data_plane()} data plane)")
    ctx.exit()


@click.group(cls=_Subcommands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "-V",
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_version,
    help="Show the version and exit.",
)
def main() -> None:
    """Run, inspect and manage a brokerless AMQP 1.0 message router."""
