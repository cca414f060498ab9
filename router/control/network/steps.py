"""Work that is done bit by bit, so that others have their turns in between.

It is a generator that yields, again and again, how much it has done since: about how many addresses
that would be, each some microseconds. What is too little to be worth it is done at one go.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

T = TypeVar("T")

Steps = Generator[int, None, T]
"""What is to be done, and what comes of it."""


def do_all(steps: Steps[T]) -> T:
    """Do everything at once."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            value: T = end.value
            return value


def do_some(steps: Steps[object], most: int) -> int:
    """Do about so much; gives how much of that is left, and with that whether it is over: if there
    is more to do nothing is left.
    """
    while most > 0:
        done = next(steps, None)
        if done is None:
            return most
        most -= done
    return 0
