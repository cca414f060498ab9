"""Serve links that waited for room, in a socket or in a session's window.

Only waiting links are examined (`engine.held_up`), the most urgent first. A link is as urgent as
the most urgent message that waits for it, and stops when its next message is less urgent than that
of another waiting link. Of equally urgent links, the one that has waited longest is served first; a
link that fills the room then waits after the others (docs/decisions/0071).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from router.core.links import attach
from router.core.model.address import Consumer
from router.engine.held_up import BlockedLinks
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
    held: BlockedLinks | None = connection.outbox.held if session is None else session.held
    if held is None or held.count == 0 or held.is_later:
        return
    if go_on(forwarder, connection, session, held, AT_ONCE):
        held.is_later = True
        forwarder.turn.deferred.add(_Later(forwarder, connection, session, held))


def go_on(
    forwarder: Core, connection: Connection, session: Session | None, held: BlockedLinks, most: int
) -> bool:
    """Serve up to `most` links; return whether there is room for others that wait."""
    outbox = connection.outbox
    count = 0
    while held.count and count < most:
        if session is None:
            is_full = outbox.congested
        else:
            is_full = session.remote_incoming_window <= 0
        if is_full:
            held.is_full()
            connection.count_work(count)
            return False
        top = held.top
        link: Any = held.take()
        count += 1
        consumer = link.owner
        if isinstance(consumer, Consumer):
            _serve(forwarder, held, link, consumer, top)
    connection.count_work(count)
    return held.count > 0


class _Later:
    """Deferred task that serves the rest of the links that wait for the same room."""

    def __init__(
        self, forwarder: Core, connection: Connection, session: Session | None, held: BlockedLinks
    ) -> None:
        self._forwarder = forwarder
        self._connection = connection
        self._session = session
        self._held = held

    def step(self) -> bool:
        """Serve a few links; return whether there is room for others."""
        self._held.is_later = go_on(
            self._forwarder, self._connection, self._session, self._held, A_STEP
        )
        return self._held.is_later


def _serve(
    forwarder: Core, held: BlockedLinks, link: OutgoingLink, consumer: Consumer, top: int
) -> None:
    """Serve a link that was taken from `held`, whose most urgent link then had urgency `top`."""
    queues = forwarder.queues
    level = link.held_level
    if consumer.resuming is not None:
        attach.go_on(forwarder, consumer)
        return
    floor = 0
    if level == top:
        urgency = urgency_of(consumer)
        if urgency < level:
            # another link has taken the urgent message
            held.add(link, urgency)
            return
        floor = max(0, held.top)
    # a drain may still be unanswered because of a message that another link has taken since
    if consumer.waiting.count or link.current is not None or link.drain:
        queues.floor = floor
        queues.serve(consumer)
    if queues.is_cut_short:
        queues.is_cut_short = False
        held.add(link, urgency_of(consumer))
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
