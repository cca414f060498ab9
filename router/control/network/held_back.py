"""Hold a few changes back while more of them are expected, so that they are sent together."""

from __future__ import annotations

from typing import Final

MOST: Final = 256
"""Most changes that are held back."""
LONGEST_S: Final = 0.02
"""Time for which changes are held back at most."""


class HeldBack:
    """Time since which changes are held back."""

    def __init__(self) -> None:
        self._since: float | None = None

    def holds(self, count: int, now: float, *, expects_more: bool) -> bool:
        """Return whether to hold `count` changes back."""
        if self._since is None:
            self._since = now
        if expects_more and count < MOST and now - self._since < LONGEST_S:
            return True
        self._since = None
        return False
