"""`trioute-qdrouterd`: run the router in the place of qdrouterd, with the same command line."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Final

import click

from router import __version__
from router.cli.daemon import (
    NoSuchUser,
    Parent,
    become_daemon,
    become_user,
    remove_pid,
    write_log_to,
    write_pid,
)
from router.cli.run import STOPS, WEAKER_SECURITY, End, run_until_stopped, say
from router.cli.startup import load_startup
from router.config.qdrouterd.report import FLAG
from router.errors import ConfigurationError
from router.node import Node
from router.running_listeners import ListenerAddresses

DEFAULT_FILE: Final = "/etc/qpid-dispatch/qdrouterd.conf"
# qdrouterd has only one exit status for failures
EXIT_FAILED: Final = 1
STOPS_OF_DISPATCH: Final = (*STOPS, signal.SIGQUIT)
_ABSOLUTE: Final = click.Path(path_type=Path, dir_okay=False, resolve_path=True)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "-c",
    "--config",
    "file",
    type=_ABSOLUTE,
    default=DEFAULT_FILE,
    show_default=True,
    help="The configuration file, of Dispatch or in TOML.",
)
@click.option("-I", "--include", metavar="PATH", help="Accepted and ignored.")
@click.option(
    "-d", "--daemon", is_flag=True, help="Run in the background; return once the router runs."
)
@click.option("-P", "--pidfile", type=_ABSOLUTE, help="Write the process id to this file.")
@click.option("-U", "--user", help="Run as this user, with the user's groups.")
@click.option("-T", "--test-hooks", is_flag=True, help="Accepted and ignored.")
@click.option(FLAG, is_flag=True, help=WEAKER_SECURITY)
@click.version_option(__version__, "-v", "--version", message="%(version)s")
def command(
    file: Path,
    daemon: bool,
    pidfile: Path | None,
    user: str | None,
    weaker_security: bool,
    **_accepted: object,
) -> None:
    """Run a router in the place of qdrouterd.

    The log goes to the file that the log entity of module DEFAULT names, or to standard error if
    there is none. SIGTERM, SIGINT and SIGQUIT stop the router. SIGHUP makes it read its
    configuration file again.
    """
    # a daemon changes to the root folder, and paths are relative to this one
    folder = Path.cwd()
    parent = become_daemon() if daemon else None
    try:
        if pidfile is not None:
            write_pid(pidfile)
        if user is not None:
            become_user(user)
        end = _run(file, folder, parent, weaker_security)
    except (OSError, NoSuchUser) as error:
        say(f"trioute-qdrouterd: cannot start: {error}")
        end = End(EXIT_FAILED)
    if pidfile is not None:
        remove_pid(pidfile)
    if end.status:
        sys.exit(EXIT_FAILED)
    if end.by == signal.SIGINT:
        # so that a shell also sees that this was interrupted
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.raise_signal(signal.SIGINT)


def _run(file: Path, folder: Path, parent: Parent | None, weaker_security: bool) -> End:
    try:
        startup = load_startup(file, weaker_security=weaker_security)
    except ConfigurationError as error:
        say(str(error))
        return End(EXIT_FAILED)
    report = startup.base.report
    log_file = None if report is None or not report.log_file else folder / report.log_file
    if parent is None:
        if log_file is not None:
            write_log_to(log_file)
        return run_until_stopped(startup, _ignore_start, stops=STOPS_OF_DISPATCH)
    if log_file is None:
        say(
            f"trioute-qdrouterd: there will be no log: {file} has no log entity of module DEFAULT "
            "with an outputFile"
        )
    write_log_to(log_file)
    waiting = parent

    def report_running(_: Node, __: list[ListenerAddresses], ___: Path | None) -> None:
        waiting.report_running()

    return run_until_stopped(startup, report_running, parent.report_failure, STOPS_OF_DISPATCH)


def _ignore_start(_: Node, __: list[ListenerAddresses], ___: Path | None) -> None:
    """Print nothing on standard output, like qdrouterd."""


def main() -> None:
    """Run the command; for an invalid command line, exit with qdrouterd's status."""
    try:
        command(prog_name="trioute-qdrouterd", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(EXIT_FAILED)
    except click.exceptions.Exit as end:
        sys.exit(end.exit_code)
    except click.Abort:
        sys.exit(EXIT_FAILED)
