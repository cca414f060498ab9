"""Ways in which commands that talk to a router end: exit codes, signals, closed output pipes.

The exit code is 0 if everything was done, 1 if something was not done or the answer is no, 2 for an
invalid command line, 3 if a connection, link or response was missing or was lost, 130 after SIGINT,
and 143 after SIGTERM.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Awaitable, Callable
from typing import Final

import click
import trio

from router.client import ClientError, RequestRefused
from router.errors import TriouteError

EXIT_DONE: Final = 0
EXIT_NOT_ALL: Final = 1
EXIT_NO_LINK: Final = 3
EXIT_PIPE: Final = 128 + signal.SIGPIPE


class Incomplete(TriouteError):
    """Incomplete or negative result: less was done than requested, or the answer is no.

    The text gives the reason, and may be empty.
    """


def run_command(
    work: Callable[[], Awaitable[None]], beside: Callable[[], Awaitable[None]] | None = None
) -> int:
    """Run `work` until it ends or a signal arrives; return the exit code.

    A failure is reported as one line on standard error. `beside` runs at the same time, and is
    cancelled when the work ends.
    """
    try:
        code, complaint = trio.run(_until_ended, work, beside)
        sys.stdout.flush()
    except BrokenPipeError:
        # the reader has closed its end; Python must not report that again at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_PIPE
    if complaint:
        click.echo(f"trioute: {complaint}", err=True)
    return code


async def _until_ended(
    work: Callable[[], Awaitable[None]], beside: Callable[[], Awaitable[None]] | None
) -> tuple[int, str]:
    """Run `work`; return the exit code, and the line for standard error, which may be empty."""
    code, complaint = EXIT_DONE, ""
    broken: BrokenPipeError | None = None
    async with trio.open_nursery() as nursery:
        signalled = await nursery.start(_watch_signals, nursery.cancel_scope)
        if beside is not None:
            nursery.start_soon(beside)
        try:
            await work()
        except (RequestRefused, Incomplete) as error:
            code, complaint = EXIT_NOT_ALL, str(error)
        except ClientError as error:
            code, complaint = EXIT_NO_LINK, str(error)
        except BrokenPipeError as error:
            broken = error
        nursery.cancel_scope.cancel()
    if broken is not None:
        raise broken
    return (128 + signalled[0], "") if signalled else (code, complaint)


async def _watch_signals(whole: trio.CancelScope, task_status: trio.TaskStatus[list[int]]) -> None:
    """Cancel `whole` at the first SIGINT or SIGTERM.

    The caller gets a list from `task_status`; the number of the signal is appended to it.
    """
    signalled: list[int] = []
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        task_status.started(signalled)
        async for number in signals:
            signalled.append(number)
            whole.cancel()
            return
