"""Amount of work that is done in one turn, counted rather than timed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise

from router.simulation.host import SimulatedRouter

from support.in_memory import Router


def most_in_a_turn(router: Router, count: Callable[[], int], act: Callable[[], object]) -> int:
    """Return the largest change of `count` in one turn, from `act` until all its work is done."""
    counts = [count()]
    router.turn_ended = lambda: counts.append(count())
    act()
    router.finish_turn()
    return longest(counts)


@contextmanager
def turns_of(host: SimulatedRouter, count: Callable[[], int]) -> Iterator[list[int]]:
    """Yield the values of `count`: before a router's first turn, and after each within."""
    counts, finish = [count()], host.hub.finish_turn

    def finish_turn() -> None:
        finish()
        counts.append(count())

    host.hub.finish_turn = finish_turn  # type: ignore[method-assign]
    try:
        yield counts
    finally:
        host.hub.finish_turn = finish  # type: ignore[method-assign]


def longest(counts: list[int]) -> int:
    """Return the largest change of a count from one turn to the next."""
    return max(abs(after - before) for before, after in pairwise(counts))
