"""Command `trioute` with its subcommands, one module each."""

from __future__ import annotations

import click

from router import __version__
from router.build import data_plane
from router.cli.apply import apply
from router.cli.check import check
from router.cli.convert import convert
from router.cli.explain import explain
from router.cli.manage import manage
from router.cli.passwd import passwd
from router.cli.plugins import plugins
from router.cli.receive import receive
from router.cli.run import run
from router.cli.send import send
from router.cli.simulate import simulate
from router.cli.stat import stat
from router.cli.trace import trace


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(
    __version__, "-V", "--version", message=f"trioute %(version)s ({data_plane()} data plane)"
)
def main() -> None:
    """Run, inspect and manage a brokerless AMQP 1.0 message router."""


main.add_command(run)
main.add_command(check)
main.add_command(convert)
main.add_command(simulate)
main.add_command(passwd)
main.add_command(plugins)
main.add_command(send)
main.add_command(receive)
main.add_command(trace)
main.add_command(apply)
main.add_command(manage)
main.add_command(stat)
main.add_command(explain)
