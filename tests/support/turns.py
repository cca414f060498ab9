"""How much of something is done in one turn, counted rather than timed."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from support.in_memory import Router


def most_in_a_turn(router: Router, count: Callable[[], int], act: Callable[[], object]) -> int:
    """By how much `count` changes at most in one turn, while something is done and until all that
    it has led to is done as well.
    """
    counts = [count()]
    router.turn_ended = lambda: counts.append(count())
    act()
    router.finish_turn()
    return max(abs(after - before) for before, after in pairwise(counts))
