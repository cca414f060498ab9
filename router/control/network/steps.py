"""Do work in small steps, so that other work has its turns in between.

The work is a generator that repeatedly yields how much it has done since: in addresses, each of
which takes some microseconds. Work too small to be divided is done at once.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

T = TypeVar("T")

Steps = Generator[int, None, T]
"""Work in steps, with its result."""


def do_all(steps: Steps[T]) -> T:
    """Do all steps at once, and return the result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            value: T = end.value
            return value


def do_some(steps: Steps[object], most: int) -> int:
    """Do about `most` work; return how much of that is left.

    0 means that more steps remain; any other value that the work is done.
    """
    while most > 0:
        done = next(steps, None)
        if done is None:
            return most
        most -= done
    return 0
