"""Count problems that recur, such as a router that is refused and retries.

The counts let the caller log only some of the occurrences.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

# If a cause was not seen for this long, its count begins again.
REST_S: Final = 600.0
# Most causes that are known; the one that was not seen for longest is forgotten first.
MOST: Final = 1000


class OccurrenceCounter:
    """Counter of the occurrences of each cause."""

    def __init__(self) -> None:
        # count and last time of each cause, the one that was not seen for longest first
        self._seen: dict[Hashable, tuple[int, float]] = {}

    def count(self, cause: Hashable, now: float) -> int:
        """Count an occurrence of a cause at `now`, in seconds; return the count so far."""
        times, last = self._seen.pop(cause, (0, now))
        if now - last >= REST_S:
            times = 0
        if len(self._seen) >= MOST:
            del self._seen[next(iter(self._seen))]
        self._seen[cause] = times + 1, now
        return times + 1
