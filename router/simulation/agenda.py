"""The virtual clock: what is due when, done in that order; nothing in between takes any time."""

from __future__ import annotations

import heapq
from collections.abc import Callable

import attrs

# Not 0, which means "never" in many a place.
START_S = 1000.0


@attrs.define(eq=False)
class Entry:
    """Something to be done, unless it is taken back."""

    act: Callable[[], None] | None

    def cancel(self) -> None:
        """Take it back; nothing happens where it has been done."""
        self.act = None


class Agenda:
    """What is to be done at which time, in seconds; what is due at once is done in the order in
    which it was put down.
    """

    def __init__(self) -> None:
        self.now = START_S
        # how much has been done
        self.done = 0
        self._next_number = 0
        self._due: list[tuple[float, int, Entry]] = []

    def clock(self) -> float:
        """What time it is."""
        return self.now

    def at(self, when: float, act: Callable[[], None]) -> Entry:
        """Have something done at a time; what is past is done next."""
        entry = Entry(act)
        self._next_number += 1
        heapq.heappush(self._due, (max(when, self.now), self._next_number, entry))
        return entry

    def after(self, delay_s: float, act: Callable[[], None]) -> Entry:
        """Have something done after a while."""
        return self.at(self.now + delay_s, act)

    def run(self, until: float, most: int | None = None) -> bool:
        """Let time pass until `until`, and do all that is due by then, or the first `most` of it;
        returns whether it was all.
        """
        last = None if most is None else self.done + most
        while self._due and self._due[0][0] <= until:
            if self.done == last:
                return False
            self._step()
        self.now = max(self.now, until)
        return True

    def run_until(
        self, is_reached: Callable[[], bool], limit_s: float, most: int | None = None
    ) -> bool:
        """Let time pass until something is so, but no longer than `limit_s`, nor until more than
        `most` was done; returns whether it is.
        """
        end = self.now + limit_s
        last = None if most is None else self.done + most
        while not is_reached():
            if self.done == last:
                return False
            if not self._due or self._due[0][0] > end:
                self.now = end
                return is_reached()
            self._step()
        return True

    def _step(self) -> None:
        when, _, entry = heapq.heappop(self._due)
        self.now = when
        if entry.act is not None:
            act, entry.act = entry.act, None
            self.done += 1
            act()
