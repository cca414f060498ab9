"""What `trioute send` and `trioute receive` share: signals, the live line, the summary, exit codes.

Exit codes: 0 all is done, 1 something is not as it was asked for, 2 a wrong command line, 3 there
is no connection or link (any more), 130 and 143 ended by SIGINT or SIGTERM, after the summary.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable

import attrs
import click
import trio

from router.cli.tally import Tally
from router.client.failures import ClientError
from router.client.url import Url, parse_url
from router.errors import TriouteError

EXIT_DONE = 0
EXIT_NOT_ALL = 1
EXIT_NO_LINK = 3
EXIT_PIPE = 128 + signal.SIGPIPE
LIVE_EVERY_S = 0.5


class NotAll(TriouteError):
    """Less was done than was asked for; the text says what."""


def read_url(_context: click.Context, _parameter: click.Parameter, value: str) -> Url:
    """Read a parameter of the form amqp://user:password@host:port/address."""
    try:
        return parse_url(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


@attrs.frozen
class Report:
    """How a run tells about itself."""

    as_json: bool = False
    quiet: bool = False
    # whether a line that changes may be drawn, where stderr is a terminal
    live: bool = True


def run(work: Callable[[], Awaitable[None]], tally: Tally, report: Report) -> int:
    """Do the work until it ends or a signal comes, tell how it went, and return the exit code."""
    try:
        code, complaint = trio.run(_run, work, tally, report)
        sys.stdout.flush()
    except BrokenPipeError:
        # whoever read our output has enough; Python must not complain about it at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_PIPE
    if complaint:
        click.echo(f"trioute: {complaint}", err=True)
    if report.as_json:
        click.echo(json.dumps(tally.as_json()))
    elif not report.quiet:
        for line in tally.lines():
            click.echo(line, err=True)
    return code


async def _run(
    work: Callable[[], Awaitable[None]], tally: Tally, report: Report
) -> tuple[int, str]:
    code, complaint = EXIT_DONE, ""
    signalled = 0

    async def watch_signals(whole: trio.CancelScope) -> None:
        nonlocal signalled
        with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            ready.set()
            async for number in signals:
                signalled = number
                whole.cancel()
                return

    broken: BrokenPipeError | None = None
    ready = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch_signals, nursery.cancel_scope)
        if report.live and not report.quiet and sys.stderr.isatty():
            nursery.start_soon(_draw, tally)
        await ready.wait()
        try:
            await work()
        except ClientError as error:
            code, complaint = EXIT_NO_LINK, str(error)
        except NotAll as error:
            code, complaint = EXIT_NOT_ALL, str(error)
        except BrokenPipeError as error:
            broken = error
        nursery.cancel_scope.cancel()
    if broken is not None:
        raise broken
    return (128 + signalled if signalled else code), complaint


async def _draw(tally: Tally) -> None:
    """Keep a line on the terminal up to date."""
    try:
        while True:
            sys.stderr.write(f"\r\x1b[K{tally.progress()}")
            sys.stderr.flush()
            await trio.sleep(LIVE_EVERY_S)
    finally:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()
