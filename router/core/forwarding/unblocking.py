"""Serve links that waited for room, in a socket or in a session's window.

Only waiting links are examined (`engine.blocking`), the most urgent first. A link is as urgent as
the most urgent message that waits for it. It is served until its next message is less urgent than
that of another waiting link. Of equally urgent links, the one that has waited longest is served
first; a link that fills the room then waits after the others (docs/decisions/0071).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from router.core.links import attach
from router.core.links.cbs_answers import ReplyEnd
from router.core.model.address import Consumer
from router.engine.blocking import BlockedLinks
from router.engine.link import OutgoingLink

if TYPE_CHECKING:
    from typing import Any

    from router.core.ports import Core
    from router.engine.connection import Connection
    from router.engine.session import Session

# How many links are served in the turn in which there is room, and in each later step.
AT_ONCE = 256
A_STEP = 16


def room_made(forwarder: Core, connection: Connection, session: Session | None) -> None:
    """Serve the links that wait for a session's window, or for the socket if `session` is None.

    If very many links wait, the last ones are served in later turns.
    """
    blocked: BlockedLinks | None = (
        connection.outbox.blocked_links if session is None else session.blocked_links
    )
    if blocked is None or blocked.count == 0 or blocked.is_later:
        return
    if go_on(forwarder, connection, session, blocked, AT_ONCE):
        blocked.is_later = True
        forwarder.turn.deferred.add(_Later(forwarder, connection, session, blocked))


def go_on(
    forwarder: Core,
    connection: Connection,
    session: Session | None,
    blocked: BlockedLinks,
    most: int,
) -> bool:
    """Serve up to `most` links; return whether there is room for other waiting links."""
    outbox = connection.outbox
    count = 0
    while blocked.count and count < most:
        if session is None:
            is_full = outbox.congested
        else:
            is_full = session.remote_incoming_window <= 0
        if is_full:
            blocked.note_full()
            connection.deduct_work(count)
            return False
        top = blocked.top
        link: Any = blocked.take()
        count += 1
        consumer = link.owner
        if isinstance(consumer, Consumer):
            _serve(forwarder, blocked, link, consumer, top)
        elif isinstance(link.terminus, ReplyEnd):
            link.terminus.flush(forwarder)
    connection.deduct_work(count)
    return blocked.count > 0


class _Later:
    """Deferred task that serves the rest of the links that wait for the same room."""

    def __init__(
        self,
        forwarder: Core,
        connection: Connection,
        session: Session | None,
        blocked: BlockedLinks,
    ) -> None:
        self._forwarder = forwarder
        self._connection = connection
        self._session = session
        self._blocked = blocked

    def step(self) -> bool:
        """Serve a few links; return whether there is room for other waiting links."""
        self._blocked.is_later = go_on(
            self._forwarder, self._connection, self._session, self._blocked, A_STEP
        )
        return self._blocked.is_later


def _serve(
    forwarder: Core, blocked: BlockedLinks, link: OutgoingLink, consumer: Consumer, top: int
) -> None:
    """Serve a link that was taken from `blocked`.

    `top` is the greatest urgency of the links in `blocked` before this link was taken.
    """
    queues = forwarder.queues
    level = link.blocked_level
    if consumer.resuming is not None:
        attach.go_on(forwarder, consumer)
        return
    floor = 0
    if level == top:
        urgency = urgency_of(consumer)
        if urgency < level:
            # another link has taken the urgent message
            blocked.add(link, urgency)
            return
        floor = max(0, blocked.top)
    # a drain may still be unanswered because of a message that another link has taken since
    if consumer.waiting.count or link.current is not None or link.drain:
        queues.floor = floor
        queues.serve(consumer)
    if queues.is_cut_short:
        queues.is_cut_short = False
        blocked.add(link, urgency_of(consumer))
    forwarder.credit.note(consumer.address, None)


def urgency_of(consumer: Consumer) -> int:
    """Return the urgency of a receiver's link: that of its most urgent message to be sent."""
    link = consumer.link
    takes = consumer.lane_mask
    if consumer.sibling_lanes is not None and takes & (takes - 1) == 0:
        # all messages of its lane are equally urgent, and the queue also has those of other lanes
        level: int = link.urgency
        return level
    level = consumer.waiting.top(takes)
    if (level < 0 or link.current is not None) and link.urgency > level:
        level = link.urgency
    return level
