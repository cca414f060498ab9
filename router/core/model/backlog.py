"""Backlog: octets that were received and could not be forwarded yet.

Held octets count against three limits: the frames held for a session, the octets held for a
connection, and the octets held by the router. Windows get smaller as a limit comes closer
(docs/decisions/0004). If the router's limit is exceeded nevertheless, `shedding` gives up
deliveries. The ttl of a message runs down while it waits, and its priority decides how early it is
taken (`waiting_queue`).
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from router.amqp.peek import PRIORITY, find_absolute_expiry, find_header
from router.amqp.revision import without_ttl, write_ttl
from router.core.model.deadlines import Deadlines
from router.engine.blocking import block
from router.engine.delivery import Delivery
from router.engine.link import IncomingLink
from router.engine.outbox import Turn
from router.engine.session import Session
from router.engine.states import SessionState, Settling

if TYPE_CHECKING:
    from router.amqp.types import Octets

MAPPED = int(SessionState.MAPPED)
# Deadline of a message that has expired already; 0 would mean never.
LONG_AGO = 1e-9
# 1/PART_LENT of the limit may be granted beyond sessions' shares, for large messages (`window`).
PART_LENT = 4
ROUTED = int(Settling.ROUTED)
# The usual encoding of section descriptors, in three octets (section 1.2), and the header's code.
SMALL_ULONG = 0x53
HEADER = 0x70


class Backlog:
    """Backlog of a router: the octets from all its connections that wait to be forwarded."""

    def __init__(self, turn: Turn, limit_bytes: int) -> None:
        self.turn = turn
        self.held_bytes = 0
        self.limit_bytes = limit_bytes
        turn.lendable_bytes += limit_bytes // PART_LENT
        # incomplete batches, which wait at no address (`batches`)
        self.batches: dict[Delivery, None] = {}
        # deliveries that wait and expire
        self.deadlines = Deadlines()
        # how many seconds the wall clock is ahead of `turn.now`, set by the owner of a clock; 0 if
        # absolute-expiry-time is ignored
        self.wall_ahead_s = 0.0

    def hold(self, delivery: Delivery, view: Octets, start: int, end: int) -> None:
        """Keep octets that cannot be sent now; they count against the peer that sent them."""
        chunk: bytes | bytearray = bytes(memoryview(view)[start:end])
        if delivery.chunks is None:
            delivery.chunks = deque()
            if not delivery.started:
                delivery.priority = PRIORITY
                if delivery.message_format == 0 and delivery.settling != ROUTED:
                    header = None
                    deadline = 0.0
                    if not begins_without_header(view, start, end):
                        header = find_header(view, start, end)
                    if header is not None:
                        delivery.priority = header.priority
                        if header.ttl_at:
                            # the remaining ttl is written into it when the message leaves
                            chunk = bytearray(chunk)
                            delivery.ttl_at = header.ttl_at
                            deadline = max(self.turn.now + header.ttl_ms / 1000, LONG_AGO)
                    if self.wall_ahead_s:
                        expiry_ms = find_absolute_expiry(view, start, end)
                        if expiry_ms is not None:
                            expiry = max(expiry_ms / 1000 - self.wall_ahead_s, LONG_AGO)
                            deadline = min(deadline, expiry) if deadline else expiry
                    if deadline:
                        delivery.deadline = deadline
                        self.deadlines.enter(delivery, self.turn.now)
                if delivery.address.priority >= 0:
                    delivery.priority = delivery.address.priority
        delivery.chunks.append(chunk)
        count = len(chunk)
        delivery.held_bytes += count
        self.held_bytes += count
        session = delivery.incoming.session
        session.window.held_frames += 1
        connection = session.connection
        connection.held_bytes += count
        if connection.held_bytes > connection.settings.held_limit_bytes:
            connection.held_back = True
        self.turn.is_pressed = self.held_bytes * 2 > self.limit_bytes

    def set_limit(self, limit_bytes: int) -> None:
        """Set the limit in octets; 1/`PART_LENT` of it is lent to large messages."""
        self.turn.lendable_bytes += limit_bytes // PART_LENT - self.limit_bytes // PART_LENT
        self.limit_bytes = limit_bytes

    def remove_ttl(self, delivery: Delivery) -> None:
        """Remove the ttl of a message that waits, so that it does not expire."""
        self.deadlines.leave(delivery)
        delivery.deadline = 0.0
        if delivery.ttl_at:
            delivery.ttl_at = 0
            self.replace_first(delivery, without_ttl(bytes(delivery.chunks[0])))

    def write_remaining_ttl(self, delivery: Delivery) -> None:
        """Write the remaining ttl of a delivery into its header, in the first chunk."""
        left_ms = max(0, int((delivery.deadline - self.turn.now) * 1000))
        write_ttl(delivery.chunks[0], delivery.ttl_at, left_ms)

    def replace_first(self, delivery: Delivery, octets: bytes) -> None:
        """Replace the first chunk of a delivery that waits."""
        count = len(delivery.chunks[0]) - len(octets)
        delivery.chunks[0] = octets
        self._release(delivery, 0, count)

    def _release(self, delivery: Delivery, frames: int, count: int) -> None:
        """Stop counting octets that were sent or dropped, and reopen windows if possible."""
        delivery.held_bytes -= count
        self.held_bytes -= count
        session = delivery.incoming.session
        session.window.held_frames -= frames
        connection = session.connection
        connection.held_bytes -= count
        self.turn.is_pressed = self.held_bytes * 2 > self.limit_bytes
        if (
            connection.held_back
            and connection.held_bytes * 2 < connection.settings.held_limit_bytes
        ):
            connection.held_back = False
            for each in connection.local_sessions.values():
                if each.state == MAPPED:
                    each.schedule_opening()
        elif frames and session.state == MAPPED:
            # for the session's other links as well, if this one has ended
            session.held_frames_gone()

    def change_link(self, delivery: Delivery, link: IncomingLink) -> None:
        """Move a delivery, with the count of its waiting octets, to another link of its sender."""
        if delivery.outgoing is None and delivery.chunks is not None:
            _move(delivery, link)
        if delivery.chunks is None:
            delivery.incoming = link
            return
        count = delivery.held_bytes
        frames = len(delivery.chunks)
        self._release(delivery, frames, count)
        delivery.incoming = link
        delivery.held_bytes = count
        self.held_bytes += count
        session = link.session
        session.window.held_frames += frames
        connection = session.connection
        connection.held_bytes += count
        if connection.held_bytes > connection.settings.held_limit_bytes:
            connection.held_back = True
        self.turn.is_pressed = self.held_bytes * 2 > self.limit_bytes

    def drop(self, delivery: Delivery) -> None:
        """Discard the waiting octets of a delivery."""
        if delivery.chunks is not None:
            frames = len(delivery.chunks)
            delivery.chunks = None
            self.deadlines.leave(delivery)
            self._release(delivery, frames, delivery.held_bytes)
            if delivery.is_batch:
                self.batches.pop(delivery, None)

    def send(self, session: Session, delivery: Delivery) -> bool:
        """Send the waiting octets of a delivery; return whether none are left."""
        chunks = delivery.chunks
        while chunks:
            if session.remote_incoming_window <= 0 or session.outbox.congested:
                block(session, delivery.outgoing)
                return False
            chunk = chunks[0]
            count = len(chunk)
            is_last = len(chunks) == 1 and delivery.complete
            sent = session.send(delivery, chunk, 0, count, not is_last)
            delivery.address.counters.bytes_out += sent
            if sent < count:
                # a view: a peer that takes small pieces must not cause a copy of the rest each time
                chunks[0] = memoryview(chunk)[sent:]
                self._release(delivery, 0, sent)
                return False
            chunks.popleft()
            self._release(delivery, 1, count)
        delivery.chunks = None
        self.deadlines.leave(delivery)
        return True


def begins_without_header(view: Octets, start: int, end: int) -> bool:
    """Return whether `view[start:end]` certainly begins with a section other than the header."""
    if end - start < 3:
        return False
    form: int = view[start + 1]
    descriptor: int = view[start + 2]
    return form == SMALL_ULONG and descriptor != HEADER


def _move(delivery: Delivery, link: IncomingLink) -> None:
    """Move a waiting delivery to the queue for another link of its sender."""
    queue = delivery.waits_in
    if queue is not None:
        queue.move_to_link(delivery, link)
