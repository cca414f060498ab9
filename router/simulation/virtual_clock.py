"""Virtual clock: calls run in the order of their times, and time passes only between calls."""

from __future__ import annotations

import heapq
from collections.abc import Callable

import attrs

# Not 0, which means "never" in many places.
START_S = 1000.0


@attrs.define(eq=False)
class ScheduledCall:
    """Scheduled call of a function, which can be cancelled."""

    act: Callable[[], None] | None

    def cancel(self) -> None:
        """Cancel the call; this has no effect once it has run."""
        self.act = None


class EventScheduler:
    """Schedule of calls by time, in seconds; calls for the same time run in order of entry."""

    def __init__(self) -> None:
        self.now = START_S
        # number of calls made
        self.done = 0
        self._next_number = 0
        self._due: list[tuple[float, int, ScheduledCall]] = []

    def clock(self) -> float:
        """Return the current virtual time."""
        return self.now

    def at(self, when: float, act: Callable[[], None]) -> ScheduledCall:
        """Schedule a call for a time; a call for a past time runs next."""
        entry = ScheduledCall(act)
        self._next_number += 1
        heapq.heappush(self._due, (max(when, self.now), self._next_number, entry))
        return entry

    def after(self, delay_s: float, act: Callable[[], None]) -> ScheduledCall:
        """Schedule a call after a delay."""
        return self.at(self.now + delay_s, act)

    def run(self, until: float, most: int | None = None) -> bool:
        """Let time pass until `until`, and make the calls due by then, but at most `most`.

        Return whether all these calls were made.
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
        """Let time pass until a condition holds, for at most `limit_s` and at most `most` calls.

        Return whether the condition holds.
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
