"""Queues of links that have something to send but no room for it, in the socket or the window.

When there is room again, only the links in the queue need to be visited. Links are served by
urgency, which has the ten levels of a message's priority (section 3.2.1), and within a level in the
order of their arrival. Now and then a less urgent link is served first, so that all links make
progress.
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
    """Queue of links that wait for room in the same socket or the same session's window."""

    def __init__(self) -> None:
        self.count = 0
        # the level of the most urgent link; -1 if the queue is empty
        self.top = -1
        # the remaining links are served in later turns
        self.is_later = False
        # by level, in order of arrival
        self._levels = [UNUSED] * LEVELS
        # how often in a row others have waited while the most urgent used up the room, and which
        # level below the top was served last
        self._passed_over = 0
        self._let_in = 0

    def add(self, link: Link, level: int) -> None:
        """Add a link at a level of urgency; move it there if it is queued already."""
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
        """Remove and return the next link to serve; return None if the queue is empty.

        `blocked_level` of the link remains the level at which the link waited.
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
        """Note that the room is used up, and whether less urgent links had to keep waiting.

        When less urgent links have waited `PATIENCE` times in a row, `take` returns one of them.
        """
        if self.count > len(self._levels[self.top]):
            self._passed_over += 1
        else:
            self._passed_over = 0

    def _below(self) -> int:
        """Return the less urgent level to serve next; the top level if only that one has links."""
        level = self._let_in
        for _ in range(LEVELS):
            level = level - 1 if level > 0 else LEVELS - 1
            if level < self.top and self._levels[level]:
                return level
        return self.top


def block(session: Session, link: OutgoingLink) -> None:
    """Queue a link that has something to send, but no room for it.

    The link waits for its session's window if the window is closed, otherwise for the end of
    congestion. When there is room, `Handler.room_made` is called.
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
