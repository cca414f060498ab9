"""Query a router repeatedly; show each result in place of the one before, or after it."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

import attrs
import click
import trio

Seen = TypeVar("Seen")

# The alternate screen, so that the previous content reappears afterwards; no cursor.
_ENTER: Final = "\x1b[?1049h\x1b[?25l"
_LEAVE: Final = "\x1b[?25h\x1b[?1049l"
_HOME: Final = "\x1b[H"
_END_OF_LINE: Final = "\x1b[K\n"
_CLEAR_REST: Final = "\x1b[J"


@attrs.frozen
class Watch:
    """Plan for repeated queries: their interval and number, and how results are shown.

    If `count` is None, the number of queries is not limited. With `is_screen`, each result replaces
    the one before on the terminal.
    """

    every_s: float
    count: int | None = None
    is_screen: bool = False


async def watch(
    plan: Watch,
    query: Callable[[], Awaitable[Seen]],
    lines_of: Callable[[Seen, int], Sequence[str]],
) -> None:
    """Query repeatedly and show the lines for each result, until all queries are done.

    `lines_of` is called with the result and the number of the query, counted from 0. If each result
    replaces the one before, the last one stays on the terminal at the end.
    """
    shown: Sequence[str] = ()
    if plan.is_screen:
        _write(_ENTER)
    try:
        number = 0
        next_at = trio.current_time()
        while plan.count is None or number < plan.count:
            await trio.sleep_until(next_at)
            # missed queries are skipped
            next_at = max(next_at, trio.current_time()) + plan.every_s
            shown = lines_of(await query(), number)
            number += 1
            if plan.is_screen:
                _write(picture(shown, shutil.get_terminal_size().lines))
            else:
                _write("".join(f"{line}\n" for line in shown))
    finally:
        if plan.is_screen:
            _write(_LEAVE + "".join(f"{line}\n" for line in shown))


def picture(lines: Sequence[str], height: int) -> str:
    """Return the output that replaces the content of a terminal of `height` lines by `lines`."""
    if len(lines) >= height:
        kept = max(0, height - 2)
        lines = [*lines[:kept], f"... {len(lines) - kept} more lines"]
    return _HOME + "".join(f"{line}{_END_OF_LINE}" for line in lines) + _CLEAR_REST


def _write(text: str) -> None:
    """Write to standard output immediately, without removing colours from the text."""
    click.echo(text, nl=False, color=True)
    sys.stdout.flush()
