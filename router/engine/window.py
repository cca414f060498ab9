"""Incoming window of a session: how many frames the peer may send ahead (section 2.5.6).

The specification counts frames, but memory is limited in octets. So a window depends on the size of
the session's recent frames: the larger the frames, the narrower the window. What the peer may send
fits into the session's share of its connection's limit. Held frames, which could not be forwarded
yet, are deducted from the window. So the router need not stop reading from a peer that respects the
window, and still receives frames such as flows, which may be needed before a held message can be
forwarded (docs/decisions/0004).

For some senders each opening of the window costs time in proportion to the rest of their message.
So the window is opened rarely and far. It is not opened for only a few frames that have just been
forwarded, and opens twice as far each time while a large message passes through
(docs/decisions/0089).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from router.engine.outbox import Turn

if TYPE_CHECKING:
    from router.engine.link import Link

# How many octets a session's peer may have under way: at most, and at least if many sessions share.
MOST_BYTES = 4 * 1024 * 1024
LEAST_BYTES = 256 * 1024
# Frames of any size that are always allowed: one on its way, and one after it.
LEAST_FRAMES = 2
# A window that was granted cannot be withdrawn, and small frames may be followed by the largest. So
# no frame counts as less than this fraction of the largest, and at worst this many times the share
# is received.
LEAST_PART = 16
# A message that is not complete after this many octets is large: the window may grow for it.
LARGE_BYTES = MOST_BYTES // 2
# For how long held frames that keep leaving may delay the opening of the window.
PATIENCE_S = 1.0


class IncomingWindow:
    """Incoming window of one session: how many frames its peer may send ahead."""

    def __init__(self, limit: int, largest_bytes: int) -> None:
        self.limit = limit
        # octets that may be under way; octets beyond the session's share, for a large message; and
        # how many of these are borrowed from the router (`Turn`)
        self.share = 0
        self.grown = 0
        self.borrowed = 0
        # frames that were received and not forwarded yet
        self.held_frames = 0
        # the estimated size of a frame: it starts with the largest, rises at once, falls slowly
        self.frame_bytes = largest_bytes
        self.largest_bytes = largest_bytes
        self.least_frame_bytes = largest_bytes // LEAST_PART
        # frames that the peer may still send, and how few of them make a flow due
        self.size = 0
        self.mark = 0
        # held frames have left recently; and the time since which an opening is delayed, or -1
        self.is_moving = False
        self.delayed_since = -1.0

    def spend(self, count: int) -> bool:
        """Count a frame of `count` octets; return whether the window should be opened again."""
        self.size -= 1
        if count > self.frame_bytes:
            # raised at once, because a window that was granted cannot be withdrawn
            self.frame_bytes = count
        else:
            self.frame_bytes += (count - self.frame_bytes) >> 3
        return self.size <= self.mark

    def whole(self) -> int:
        """Return how many frames may be on their way or held; large frames reduce the count."""
        window = self.limit
        frame_bytes = max(self.frame_bytes, self.least_frame_bytes)
        octets = self.share + self.grown
        if frame_bytes * window > octets:
            window = min(self.limit, max(LEAST_FRAMES, octets // frame_bytes))
        return window

    def affordable(self) -> int:
        """Return how many frames the peer may send: the whole window less the held frames."""
        return self.whole() - self.held_frames

    def widen(self, share: int, links: dict[int, Link]) -> None:
        """Open the window as far as `share` octets allow; the caller sends the flow.

        If a receiver awaits the rest of a delivery, a few frames are always allowed, because held
        messages may have to wait for the rest of that delivery.
        """
        self.share = share
        self.delayed_since = -1.0
        window = self.affordable()
        if window > self.size:
            self.size = window
        if self.size <= 0 and is_awaited(links):
            self.size = LEAST_FRAMES
        self.mark = self.size >> 1
        if self.grown:
            # a flow is due at the same mark as with a smaller window
            self.mark = min(self.mark, share // max(1, self.frame_bytes) >> 1)

    def stretch(self, turn: Turn, share: int, most: int, is_large: bool) -> None:
        """Let the window grow, up to `most` octets, while a large message passes through.

        The octets beyond `share` are borrowed from `turn.lendable_bytes`, at most half of what is
        left. Octets that were granted to the peer remain borrowed until the peer has used them.
        """
        lendable = turn.lendable_bytes + self.borrowed
        grown = 0
        if is_large and self.frame_bytes * 2 >= self.largest_bytes:
            grown = min(share + 2 * self.grown, most - share, lendable // 2)
        if grown <= 0:
            grown = 0
        lent = grown
        if self.borrowed > lent:
            granted = self.size * self.largest_bytes - share
            lent = max(lent, min(self.borrowed, granted))
        turn.lendable_bytes = lendable - lent
        self.borrowed = lent
        self.grown = grown

    def give_back(self, turn: Turn) -> None:
        """Return all borrowed octets to `turn`, because the session has ended."""
        turn.lendable_bytes += self.borrowed
        self.borrowed = self.grown = 0

    def can_open(self, links: dict[int, Link]) -> bool:
        """Return whether the window can be opened far enough to be worth a flow.

        While held frames are being forwarded, an opening by half of the whole window is worth a
        flow. Otherwise it is enough to double what the peer may still send.
        """
        whole = self.whole()
        gain = whole - self.held_frames - self.size
        if gain > 0:
            if self.is_moving and self.held_frames:
                if gain * 2 >= whole:
                    return True
            elif gain >= self.size:
                return True
        # last, because a session may have very many links
        return self.size <= 0 and is_awaited(links)

    def has_waited(self, now: float) -> bool:
        """Return whether a delayed opening is due; the caller asks a few times a second."""
        was_moving = self.is_moving
        self.is_moving = False
        return not was_moving or now - self.delayed_since >= PATIENCE_S


def is_awaited(links: dict[int, Link]) -> bool:
    """Return whether a receiver was sent all that has arrived of a message, and awaits the rest."""
    for link in links.values():
        current = link.current
        if current is None or current.incoming is not link or current.complete:
            continue
        for part in current.copies or (current,):
            if part.started and not part.chunks and not part.discarded:
                return True
    return False


def share_of(limit_bytes: int, sessions: int, is_scarce: bool) -> int:
    """Return how many octets one of a connection's sessions may have under way.

    All sessions together get half of what the connection may hold. If memory is scarce, each
    session gets the least share, so that little more is received while messages are held.
    """
    half = limit_bytes // 2
    least = min(LEAST_BYTES, half)
    return least if is_scarce else max(least, min(MOST_BYTES, half // max(1, sessions)))
