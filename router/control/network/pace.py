"""Pace of a peer's work: all of it at first, and then a share of the time."""

from __future__ import annotations

from typing import Final

# A peer that has used up its allowance gets this share of the time.
SHARE: Final = 0.05
# How much more than its allowance a peer can owe, in seconds of work. It rests for a second then.
MOST_OWED_S: Final = 0.05


class Pace:
    """Allowance for work that a peer causes, in seconds.

    It grows by `SHARE` seconds in each second, up to `burst_s`.
    """

    def __init__(self, burst_s: float) -> None:
        self._burst_s = burst_s
        # when the whole allowance is there again
        self._full_at = float("-inf")

    def spend(self, work_s: float, now: float) -> None:
        """Deduct work that has taken `work_s`; the peer never owes more than `MOST_OWED_S`."""
        spent_s = (max(self._full_at - now, 0.0) * SHARE) + work_s
        self._full_at = now + min(spent_s, self._burst_s + MOST_OWED_S) / SHARE

    def resumes_at(self) -> float:
        """Return when there is an allowance for more work; a time in the past if there is now."""
        return self._full_at - self._burst_s / SHARE
