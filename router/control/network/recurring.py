"""What is wrong again and again for one reason, such as a router that is refused and tries again:
how many times it was, so that not each of them has to be told.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

# What was not seen for so long begins anew.
REST_S: Final = 600.0
# So many causes are known at a time; those that were seen last.
MOST: Final = 1000


class Recurring:
    """How often each cause was seen."""

    def __init__(self) -> None:
        # how often, and when last, the one that was not seen for longest first
        self._seen: dict[Hashable, tuple[int, float]] = {}

    def count(self, cause: Hashable, now: float) -> int:
        """It is seen, at a time in seconds; how many times by now."""
        times, last = self._seen.pop(cause, (0, now))
        if now - last >= REST_S:
            times = 0
        if len(self._seen) >= MOST:
            del self._seen[next(iter(self._seen))]
        self._seen[cause] = times + 1, now
        return times + 1
