"""The incoming window of a session: how many frames the peer may send ahead (section 2.5.6).

The specification counts frames; memory is octets. So a window is reckoned by what its session's
frames carried of late: it is wide while they are small and narrows as they grow, such that what may
come takes no more than the session's share of what its connection may have waiting. Frames that
could not be sent on are not replaced. A peer that keeps to its window is therefore always read:
what it says beside its transfers may be what lets something leave (docs/decisions/0004).
"""

from __future__ import annotations

from typing import Any

# What a session's peer may have under way, at most and, where it has to share with many, at least.
MOST_BYTES = 4 * 1024 * 1024
LEAST_BYTES = 256 * 1024
# But so many frames of any size: one on its way, and one to come after it.
LEAST_FRAMES = 2
# What was granted cannot be taken back, and small frames may be followed by the largest: none is
# reckoned as smaller than this part of those, so that at worst so many times the share comes.
LEAST_PART = 16


class IncomingWindow:
    """What one session's peer may still send, and what it will be let send next."""

    def __init__(self, limit: int, largest_bytes: int) -> None:
        self.limit = limit
        # octets that may be under way
        self.share = 0
        # frames that came and have not been sent on
        self.held_frames = 0
        # what a frame carries, up at once and down slowly; at first as much as it can
        self.frame_bytes = largest_bytes
        self.least_frame_bytes = largest_bytes // LEAST_PART
        # frames that may still come, and how few of them make a flow due
        self.size = 0
        self.mark = 0

    def spend(self, count: int) -> bool:
        """A frame of `count` octets came; whether the window should be opened again."""
        self.size -= 1
        if count > self.frame_bytes:
            # up at once: a window that was granted cannot be taken back
            self.frame_bytes = count
        else:
            self.frame_bytes += (count - self.frame_bytes) >> 3
        return self.size <= self.mark

    def affordable(self) -> int:
        """How many frames may come: many small ones or a share's worth, less what is held."""
        window = self.limit
        frame_bytes = max(self.frame_bytes, self.least_frame_bytes)
        if frame_bytes * window > self.share:
            window = min(self.limit, max(LEAST_FRAMES, self.share // frame_bytes))
        return window - self.held_frames

    def widen(self, share: int, links: dict[int, Any]) -> None:
        """Let come what can be afforded of `share` octets; a flow that tells it is on its way.

        What came on one of the session's links may wait for the end of what has begun on another
        one: of that some must be let come, however much waits.
        """
        self.share = share
        window = self.affordable()
        if window > self.size:
            self.size = window
        if self.size <= 0 and is_awaited(links):
            self.size = LEAST_FRAMES
        self.mark = self.size >> 1

    def can_open(self, links: dict[int, Any]) -> bool:
        """Whether half of the window or more can be opened, now that held frames have left."""
        return self.affordable() >= 2 * self.size or (self.size <= 0 and is_awaited(links))


def is_awaited(links: dict[int, Any]) -> bool:
    """Whether a receiver has all that has come of a message, and waits for its rest."""
    for link in links.values():
        current = link.current
        if current is None or current.incoming is not link or current.complete:
            continue
        for part in current.copies or (current,):
            if part.started and part.chunks is None and not part.discarded:
                return True
    return False


def share_of(limit_bytes: int, sessions: int, is_scarce: bool) -> int:
    """How many octets one of a connection's sessions may have under way.

    All together have half of what the connection may have waiting. Where memory is scarce, what is
    held already is followed by little more.
    """
    half = limit_bytes // 2
    least = min(LEAST_BYTES, half)
    return least if is_scarce else max(least, min(MOST_BYTES, half // max(1, sessions)))
