"""Measure the round trip to a neighbour by its HELLOs, as NTP does, without comparing clocks.

Each HELLO has a stamp, which is the time on its sender's clock. It also has the last stamp that the
sender received from the other router, and how long ago that was. The round trip is the time until a
router gets its own stamp back, less the time for which the peer held the stamp. Each of these times
is measured on one clock.
"""

from __future__ import annotations

from collections import deque
from typing import Final

US_PER_S: Final = 1_000_000
CYCLE_US: Final = 2**32
"""Modulus of times in microseconds, so that they fit in a uint."""
LONGEST_S: Final = 60.0
"""Longest time that is accepted as a round trip, in seconds."""
KEPT: Final = 8
"""Number of recent round trips, of which the shortest one counts."""


class RoundTrips:
    """Record of the round trips on one connection, in seconds on any monotonic clock."""

    def __init__(self) -> None:
        self._theirs = 0
        self._heard_at = 0.0
        self._kept: deque[float] = deque(maxlen=KEPT)
        # round trips since the last that was reported
        self._unreported = 0

    @property
    def least_s(self) -> float | None:
        """Return the shortest of the recent round trips, in seconds; None before the first one."""
        return min(self._kept, default=None)

    def stamps(self, now: float) -> tuple[int, int, int]:
        """Return the stamps for a HELLO: the present time, the peer's last stamp, and its age.

        The last two are 0 if no HELLO was received yet. All are in microseconds.
        """
        if not self._theirs:
            return _stamp(now), 0, 0
        held = min(round((now - self._heard_at) * US_PER_S), CYCLE_US - 1)
        return _stamp(now), self._theirs, held

    def heard(self, stamps: tuple[int, int, int], now: float) -> None:
        """Process the stamps in a HELLO from the other router."""
        self._theirs, echo, held = stamps
        self._heard_at = now
        if echo:
            trip_s = ((_stamp(now) - echo - held) % CYCLE_US) / US_PER_S
            if trip_s <= LONGEST_S:
                self._kept.append(trip_s)
                self._unreported += 1

    def take_report(self) -> float | None:
        """Return the shortest recent round trip once for every `KEPT` new ones, otherwise None."""
        if self._unreported < KEPT:
            return None
        self._unreported = 0
        return self.least_s


def _stamp(now: float) -> int:
    """Return a time as a stamp for a HELLO, in microseconds; the stamp is never 0."""
    return round(now * US_PER_S) % CYCLE_US or 1
