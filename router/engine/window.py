"""The incoming window of a session: how many frames the peer may send ahead (section 2.5.6).

The specification counts frames; memory is octets. A frame's worth of window is cheap for small
messages and dear for large ones, so the window is wide while frames are small and narrows to
`WINDOW_BYTES` worth of them as they grow. Frames that could not be sent on are not replaced.
"""

from __future__ import annotations

# A peer may have this many octets under way on one session while nothing can be forwarded.
WINDOW_BYTES = 4 * 1024 * 1024
# But so many frames of any size, or a session would crawl.
LEAST_FRAMES = 16


class IncomingWindow:
    """What one session's peer may still send, and what it will be let send next."""

    def __init__(self, limit: int, largest_bytes: int) -> None:
        self.limit = limit
        # frames that came and have not been sent on
        self.held_frames = 0
        # what a frame carries, up at once and down slowly; at first as much as it can
        self.frame_bytes = largest_bytes
        # frames that may still come, and how few of them make a flow due
        self.size = 0
        self.mark = 0
        self.widen()

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
        """How many frames may come: many small ones or WINDOW_BYTES, less what is held."""
        window = self.limit
        if self.frame_bytes * window > WINDOW_BYTES:
            window = min(self.limit, max(LEAST_FRAMES, WINDOW_BYTES // self.frame_bytes))
        return window - self.held_frames

    def widen(self) -> None:
        """Let come what can be afforded; a flow that tells it is on its way."""
        window = self.affordable()
        if window > self.size:
            self.size = window
        self.mark = self.size >> 1
