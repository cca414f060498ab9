"""Progress line and final summary of `trioute send` and `trioute receive`."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable
from functools import partial

import attrs
import click
import trio

from router.cli.exit_codes import EXIT_PIPE, run_command
from router.cli.run_statistics import RunStatistics
from router.client.url import Url, parse_url

LIVE_EVERY_S = 0.5


def read_url(_context: click.Context, _parameter: click.Parameter, value: str) -> Url:
    """Parse an argument of the form amqp://user:password@host:port/address."""
    try:
        return parse_url(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


@attrs.frozen
class Report:
    """Options for the progress and the summary of a run."""

    as_json: bool = False
    quiet: bool = False
    # whether a live line may be drawn if stderr is a terminal
    live: bool = True


def run(work: Callable[[], Awaitable[None]], statistics: RunStatistics, report: Report) -> int:
    """Run `work` until it ends or a signal arrives, print a summary, and return the exit code."""
    is_drawn = report.live and not report.quiet and sys.stderr.isatty()
    code = run_command(work, partial(_draw, statistics) if is_drawn else None)
    if code == EXIT_PIPE:
        return code
    if report.as_json:
        click.echo(json.dumps(statistics.as_json()))
    elif not report.quiet:
        for line in statistics.lines():
            click.echo(line, err=True)
    return code


async def _draw(statistics: RunStatistics) -> None:
    """Redraw the progress line on the terminal until cancelled, then clear the line."""
    try:
        while True:
            sys.stderr.write(f"\r\x1b[K{statistics.progress()}")
            sys.stderr.flush()
            await trio.sleep(LIVE_EVERY_S)
    finally:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()
