"""Do work in small steps, so that other work can be done in between.

The work is a generator that repeatedly yields how much work was done since the last yield. The unit
is the work for one address, some microseconds. Work that is too small to be divided is done in one
step.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Final, TypeVar

from router.amqp.octets import Buffer
from router.amqp.stepwise import decode_in_steps
from router.amqp.types import Value

OCTETS_AN_ADDRESS: Final = 64
"""Decoding this many octets is as much work as handling one address."""

T = TypeVar("T")

Steps = Generator[int, None, T]
"""Generator that does work in steps, and returns the result."""


def do_all(steps: Steps[T]) -> T:
    """Do all steps without a pause, and return the result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            value: T = end.value
            return value


def do_some(steps: Steps[object], most: int) -> int:
    """Do about `most` work; return how much of `most` is left.

    0 means that more steps remain; any other value means that the work is done.
    """
    while most > 0:
        done = next(steps, None)
        if done is None:
            return most
        most -= done
    return 0


def decode_value_in_steps(octets: Buffer) -> Steps[tuple[Value, int]]:
    """Decode an AMQP value in steps; return it, and the position after it.

    Raises AmqpError as `decode_value` does.
    """
    steps = decode_in_steps(octets)
    while True:
        try:
            decoded = next(steps)
        except StopIteration as done:
            value, end = done.value
            return value, end
        yield decoded // OCTETS_AN_ADDRESS
