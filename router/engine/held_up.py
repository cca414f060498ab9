"""Queues of links that have something to send and no room, in the socket or a session's window.

A link enters when it is found to have no room, and leaves when there is some. So whoever makes room
looks only at the links that wait for it. The most urgent come first, by the ten levels of a
message's priority (section 3.2.1), and within a level the one that has waited longest. Now and then
a less urgent one comes first, so that these go on as well.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from router.engine.link import Link, OutgoingLink

if TYPE_CHECKING:
    from router.engine.session import Session

LEVELS = 10
# Where the room was used up so many times by the most urgent, one of the others begins.
PATIENCE = 16


class BlockedLinks:
    """Links that wait for the same room; each is here once."""

    def __init__(self) -> None:
        self.count = 0
        # how urgent the most urgent is; -1 where none is here
        self.top = -1
        # the rest of them go on in later turns
        self.is_later = False
        # in the order in which they came, by level; None where none ever was
        self._levels: list[Any] = [None] * LEVELS
        # how often in a row others have waited while the most urgent used up the room, and which of
        # these was let in last
        self._passed_over = 0
        self._let_in = 0

    def add(self, link: Link, level: int) -> None:
        """Have a link wait; one that waits here already does so as urgently as it says now."""
        if link.held is not None:
            if link.held is self and link.held_level == level:
                return
            link.held.remove(link)
        queue = self._levels[level]
        if queue is None:
            queue = self._levels[level] = OrderedDict()
        queue[link] = None
        link.held = self
        link.held_level = level
        self.count += 1
        if level > self.top:
            self.top = level

    def remove(self, link: Link) -> None:
        """A link waits no more; it must be here."""
        level = link.held_level
        del self._levels[level][link]
        link.held = None
        self.count -= 1
        while self.top >= 0 and not self._levels[self.top]:
            self.top -= 1

    def take(self) -> Link | None:
        """The link that comes next, which waits no more; None where none does.

        Its `held_level` is how urgently it waited.
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

    def is_full(self) -> None:
        """There is no room any more for those that are left."""
        if self.count > len(self._levels[self.top]):
            self._passed_over += 1
        else:
            self._passed_over = 0

    def _below(self) -> int:
        """The level below the highest whose turn it is; the highest where there is no other."""
        level = self._let_in
        for _ in range(LEVELS):
            level = level - 1 if level > 0 else LEVELS - 1
            if level < self.top and self._levels[level]:
                return level
        return self.top


def block(session: Session, link: OutgoingLink) -> None:
    """Have a link wait for room: in its session's window if that is closed, or in the socket.

    The handler hears of it (`Handler.room_made`) when there is some.
    """
    if link.held is not None:
        return
    held: BlockedLinks | None
    if session.remote_incoming_window <= 0:
        held = session.held
        if held is None:
            held = session.held = BlockedLinks()
    else:
        held = session.outbox.held
        if held is None:
            held = session.outbox.held = BlockedLinks()
    held.add(link, link.urgency)
