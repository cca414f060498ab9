"""Command `trioute` and its subcommands, each in a module of its own.

A subcommand's module is imported only when the subcommand is used, because imports take most of the
time of a short command.
"""

from __future__ import annotations

from importlib import import_module
from typing import Final

import click

from router import __version__

COMMANDS: Final = {
    "apply": "Apply a configuration file to a running router.",
    "check": "Check a configuration file and report every mistake.",
    "convert": "Convert a configuration file of Qpid Dispatch.",
    "explain": "Explain why a user's messages flow or do not flow.",
    "manage": "Perform a management operation on a router.",
    "plugins": "List installed plugins, or show the settings of one.",
    "policy": "Try a policy before it is applied.",
    "receive": "Receive messages from an address.",
    "run": "Run a router.",
    "send": "Send messages to an address.",
    "simulate": "Simulate a network of routers, with traffic and faults.",
    "stat": "Show the state of a running router.",
    "trace": "Show frames or deliveries as they pass through a router.",
    "user": "Add, remove, import and list users in a users file.",
}
"""Subcommands, which are modules of this package, with the text of `trioute --help`."""


class _Subcommands(click.Group):
    """Command group that imports a subcommand only when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, sorted."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, or None if there is no command with that name."""
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
