"""There is room again, in a socket or in a session's window: those that wait for it go on.

Only these are looked at (`engine.held_up`), the most urgent first: a link is as urgent as the most
urgent message that waits for it, and gives way when its next one is less so than what another link
waits with. Of several that are equally urgent the one that has waited longest begins; it may fill
the room again by itself, and then waits behind the others (docs/decisions/0071).
"""

from __future__ import annotations

from typing import Any

from router.core import linking
from router.core.address import Consumer
from router.engine.held_up import HeldUp
from router.engine.link import OutgoingLink

# So many links go on in the turn in which room is made, and in each step of later turns.
AT_ONCE = 256
A_STEP = 16


def room_made(forwarder: Any, connection: Any, session: Any) -> None:
    """Let the links go on that wait for a session's window, or else for a connection's socket: of
    very many the last ones in later turns.
    """
    held: HeldUp | None = connection.outbox.held if session is None else session.held
    if held is None or held.count == 0 or held.is_later:
        return
    if go_on(forwarder, connection, session, held, AT_ONCE):
        held.is_later = True
        forwarder.turn.deferred.add(_Later(forwarder, connection, session, held))


def go_on(forwarder: Any, connection: Any, session: Any, held: HeldUp, most: int) -> bool:
    """Let some links go on; return whether there is room for others that wait."""
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
    """A task of `Deferred`: lets the rest of the links go on that wait for the same room."""

    def __init__(self, forwarder: Any, connection: Any, session: Any, held: HeldUp) -> None:
        self._forwarder = forwarder
        self._connection = connection
        self._session = session
        self._held = held

    def step(self) -> bool:
        """Let a few links go on; return whether there is room for others."""
        self._held.is_later = go_on(
            self._forwarder, self._connection, self._session, self._held, A_STEP
        )
        return self._held.is_later


def _serve(forwarder: Any, held: HeldUp, link: OutgoingLink, consumer: Consumer, top: int) -> None:
    """Let one of them go on; `top` is how urgent the most urgent of them was."""
    level = link.held_level
    if consumer.resuming is not None:
        linking.go_on(forwarder, consumer)
        return
    floor = 0
    if level == top:
        urgency = urgency_of(consumer)
        if urgency < level:
            # another has taken what made it urgent
            held.add(link, urgency)
            return
        floor = max(0, held.top)
    # another may have taken what kept a drain from being answered
    if consumer.waiting.count or link.current is not None or link.drain:
        forwarder.floor = floor
        forwarder.serve(consumer)
    if forwarder.is_cut_short:
        forwarder.is_cut_short = False
        held.add(link, urgency_of(consumer))
    forwarder.note_credit(consumer.address, None)


def urgency_of(consumer: Consumer) -> int:
    """How urgent that is which waits for a receiver, or has been sent to it in part."""
    link = consumer.link
    takes = consumer.takes
    if consumer.beside is not None and takes & (takes - 1) == 0:
        # its lane's messages are all as urgent, and others wait in the same queue
        level: int = link.urgency
        return level
    level = consumer.waiting.top(takes)
    if (level < 0 or link.current is not None) and link.urgency > level:
        level = link.urgency
    return level
