"""Looking again and again: on a terminal in place, elsewhere line after line."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

import attrs
import click
import trio

Seen = TypeVar("Seen")

# Another screen, so that what was on this one is there again afterwards; no cursor.
_ENTER: Final = "\x1b[?1049h\x1b[?25l"
_LEAVE: Final = "\x1b[?25h\x1b[?1049l"
_HOME: Final = "\x1b[H"
_END_OF_LINE: Final = "\x1b[K\n"
_CLEAR_REST: Final = "\x1b[J"


@attrs.frozen
class Watch:
    """Every so many seconds, `looks` times or without end, on a screen or line after line."""

    every_s: float
    looks: int | None = None
    is_screen: bool = False


async def watch(
    plan: Watch,
    look: Callable[[], Awaitable[Seen]],
    lines_of: Callable[[Seen, int], Sequence[str]],
) -> None:
    """Look, show the lines, wait, until the looks are done or this is cancelled.

    `lines_of` gets the number of the look as well, from 0 on. What a screen showed last stays on
    the terminal when it ends.
    """
    shown: Sequence[str] = ()
    if plan.is_screen:
        _write(_ENTER)
    try:
        number = 0
        next_at = trio.current_time()
        while plan.looks is None or number < plan.looks:
            await trio.sleep_until(next_at)
            # what takes longer than it may is not made up for
            next_at = max(next_at, trio.current_time()) + plan.every_s
            shown = lines_of(await look(), number)
            number += 1
            if plan.is_screen:
                _write(picture(shown, shutil.get_terminal_size().lines))
            else:
                _write("".join(f"{line}\n" for line in shown))
    finally:
        if plan.is_screen:
            _write(_LEAVE + "".join(f"{line}\n" for line in shown))


def picture(lines: Sequence[str], height: int) -> str:
    """What to write for a screen of so many lines to show these, over what it showed before."""
    if len(lines) >= height:
        kept = max(0, height - 2)
        lines = [*lines[:kept], f"... {len(lines) - kept} more lines"]
    return _HOME + "".join(f"{line}{_END_OF_LINE}" for line in lines) + _CLEAR_REST


def _write(text: str) -> None:
    """On standard output, at once; colours are in it only where they are to be."""
    click.echo(text, nl=False, color=True)
    sys.stdout.flush()
