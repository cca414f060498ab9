"""Queues of links that have something to send but no room for it, in the socket or the window.

A link enters when it is found to have no room, and leaves when there is room. So when there is room
again, only the links that wait for it are visited. Links are served by urgency, which has the ten
levels of a message's priority (section 3.2.1), and within a level by time of arrival. Now and then
a less urgent link is served first, so that all make progress.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from router.engine.link import Link, OutgoingLink

if TYPE_CHECKING:
    from router.engine.session import Session

LEVELS = 10
# Placeholder for a level that was never used.
UNUSED: OrderedDict[Link, None] = OrderedDict()
# After the most urgent have used up the room this many times, one of the others comes first.
PATIENCE = 16


class BlockedLinks:
    """Queue of links that wait for the same room; each link is in it once."""

    def __init__(self) -> None:
        self.count = 0
        # the level of the most urgent link; -1 if the queue is empty
        self.top = -1
        # the rest of them are served in later turns
        self.is_later = False
        # by level, in order of arrival
        self._levels = [UNUSED] * LEVELS
        # how often in a row others have waited while the most urgent used up the room, and which
        # level below the top was served last
        self._passed_over = 0
        self._let_in = 0

    def add(self, link: Link, level: int) -> None:
        """Add a link at a level of urgency; a link that is queued already moves to that level."""
        if link.blocked_in is not None:
            if link.blocked_in is self and link.blocked_level == level:
                return
            link.blocked_in.remove(link)
        queue = self._levels[level]
        if queue is UNUSED:
            queue = self._levels[level] = OrderedDict()
        queue[link] = None
        link.blocked_in = self
        link.blocked_level = level
        self.count += 1
        if level > self.top:
            self.top = level

    def remove(self, link: Link) -> None:
        """Remove a link, which must be in the queue."""
        level = link.blocked_level
        del self._levels[level][link]
        link.blocked_in = None
        self.count -= 1
        while self.top >= 0 and not self._levels[self.top]:
            self.top -= 1

    def take(self) -> Link | None:
        """Remove and return the next link; return None if the queue is empty.

        The link's `blocked_level` remains the level at which it waited.
        """
        level = self.top
        if level < 0:
            return None
        if self._passed_over >= PATIENCE:
            self._passed_over = 0
            level = self._let_in = self._below()
        link: Link = next(iter(self._levels[level]))
        self.remove(link)
        return link

    def note_full(self) -> None:
        """Note that the room is used up, although less urgent links may still wait."""
        if self.count > len(self._levels[self.top]):
            self._passed_over += 1
        else:
            self._passed_over = 0

    def _below(self) -> int:
        """Return the level below the top to serve next; the top if no other has links."""
        level = self._let_in
        for _ in range(LEVELS):
            level = level - 1 if level > 0 else LEVELS - 1
            if level < self.top and self._levels[level]:
                return level
        return self.top


def block(session: Session, link: OutgoingLink) -> None:
    """Make a link wait until its session's window opens, or, if it is open, until congestion ends.

    `Handler.room_made` is called then.
    """
    if link.blocked_in is not None:
        return
    blocked: BlockedLinks | None
    if session.remote_incoming_window <= 0:
        blocked = session.blocked_links
        if blocked is None:
            blocked = session.blocked_links = BlockedLinks()
    else:
        blocked = session.outbox.blocked_links
        if blocked is None:
            blocked = session.outbox.blocked_links = BlockedLinks()
    blocked.add(link, link.urgency)
