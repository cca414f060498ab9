"""Connection endpoint, sans-I/O: octets and the time go in, calls and octets come out.

The I/O itself is done by a shell around the engine (`router.net`). `receive` goes through the
frames of one read from the socket. Transfers, flows and dispositions go straight to their session.
Every other frame is decoded by the table-driven codec and handled in `opening` (open and close),
`sasl`, `beginning` (sessions) or `attaching` (links). `receive` raises no exception, whatever
octets it is given: an `AmqpError` only ends the link, session or connection at its scope.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from router.amqp import codes, octets
from router.amqp.constants import Descriptor
from router.amqp.encoded import FRAME_LIMITS, EncodedMap
from router.amqp.framing import decode_frame_body
from router.amqp.reading import Cursor, TransferFrame
from router.amqp.reading_disposition import DispositionFrame
from router.amqp.reading_flow import FlowFrame
from router.engine import attaching, beginning, flows, headers, opening, sasl
from router.engine.account import Account
from router.engine.handler import Handler
from router.engine.numbers import Numbers
from router.engine.outbox import Outbox, Turn
from router.engine.session import Session
from router.engine.settings import TURN_WORK, ConnectionSettings
from router.engine.slots import Slots
from router.engine.states import ConnectionState, SessionState
from router.engine.window import share_of
from router.errors import AmqpError, Scope

if TYPE_CHECKING:
    from router.amqp.types import Octets
    from router.engine.link import Link

    class Unfinished(Protocol):
        """Unfinished work for a frame; later frames wait until the work is done."""

        session: Session

        def go_on(self) -> bool:
            """Continue within the turn's budget of work; return whether the work is done."""


# Kind of the next octets: a protocol header, SASL frames, AMQP frames, or octets to ignore.
HEADER = 0
SASL = 1
AMQP = 2
OVER = 3

MAPPED = int(SessionState.MAPPED)
BEGIN = int(Descriptor.BEGIN)

FRAME_HEADER_BYTES = 8

# A frame for the table-driven codec takes as long as this many per-message frames.
TABLED_WORK = 4096
OCTETS_OF_WORK = 4


class Connection:
    """Connection endpoint (section 2.4), as client or server."""

    def __init__(
        self, settings: ConnectionSettings, handler: Handler, turn: Turn, name: str, is_client: bool
    ) -> None:
        self.settings = settings
        self.handler = handler
        self.turn = turn
        self.outbox = Outbox(turn, self)
        # the state that the peer has created here
        self.account = Account(turn.ledger)
        # for people: the connection's name in logs, and the peer's user with mechanism and groups
        self.name = name
        # the connection's number in logs, which is sent to the peer; 0 if none is sent
        self.number = 0
        self.user: str | None = None
        self.mechanism: str | None = None
        self.groups: frozenset[str] = frozenset()
        # whether a SASL challenge is unanswered; the error of one that has refused our token
        self.challenged = False
        self.token_error = ""
        # whether TLS is used; the user of the peer's certificate, for EXTERNAL; and the host name
        # that the peer asked for in TLS or HTTP
        self.is_encrypted = False
        self.external_user: str | None = None
        self.requested_host: str | None = None
        self.is_client = is_client
        # for the shell: any object that it attaches; for the core: what the peer may do, or None
        self.owner: Any = None
        self.access: Any = None
        self.state = int(ConnectionState.START)
        self.phase = HEADER
        # while a SASL init or an open awaits a decision, the octets after it wait
        self.paused = False
        # there is so much work that other connections have their turn before the rest is done
        self.is_behind = False
        # the rest of a frame's work, if that is too much for one turn, or None
        self.unfinished: Unfinished | None = None
        # the work that a turn may do; the shell may reduce it
        self.turn_work = TURN_WORK
        # the count of received frames at which the work of this turn is used up
        self.turn_end = TURN_WORK
        # octets of its deliveries that could not be forwarded yet; and whether they have exceeded
        # the limit and not fallen to half of it since
        self.held_bytes = 0
        self.held_back = False
        # nothing more will be written: close the socket once the output has been sent
        self.finished = False
        self.kept = b""
        self.cursor = Cursor()
        self.transfer = TransferFrame()
        self.disposition = DispositionFrame()
        self.flow = FlowFrame()
        self.frame_end = 0
        self.max_frame_size = settings.max_frame_size
        self.sasl_frame_bytes = settings.sasl_frame_bytes
        self.remote_max_frame_size = 512
        self.remote_open: Any = None
        self.local_open: Any = None
        self.remote_idle_s = 0.0
        self.channel_max = 0
        # sessions by the peer's channel, and by ours
        self.sessions = Slots()
        self.local_sessions: dict[int, Session] = {}
        # the channels of these sessions
        self.channels = Numbers()
        # the session of the last frame; the next frame is usually for the same one
        self.recent_session: Session | None = None
        self.sessions_due: list[Session] = []
        # sessions whose window will be opened later, and further (`flows`), by our channel
        self.delayed_windows: dict[int, Session] = {}
        self.failing: Session | None = None
        self.started_at = turn.now
        self.closed_at = 0.0
        # when the last whole frame was received
        self.last_received = turn.now
        self.last_sent = turn.now
        self.frames_received = 0
        # the descriptor of the last whole frame; 0 for an empty one
        self.last_code = int(Descriptor.OPEN)
        # the size of the frame being processed by the table-driven codec
        self.tabled_bytes = 0
        # octets received, and octets that the socket has taken
        self.received_bytes = self.sent_bytes = 0
        # how many frames had been received, and octets sent, when octets last came in
        self.frames_before = 0
        self.sent_before = 0
        # deliveries of links that have ended
        self.past_received = 0
        self.past_sent = 0

    # Octets in.

    def has_to_wait(self) -> bool:
        """Return whether reading must wait: for a SASL outcome, or until the peer has read more."""
        return self.paused or self.unsent_beyond(1)

    def unsent_beyond(self, part: int) -> bool:
        """Return whether the unsent output exceeds 1/`part` of its limit."""
        limit = self.settings.unsent_limit_bytes
        return limit > 0 and self.outbox.output.size() * part > limit

    def prepare(self, buffer: memoryview) -> int:
        """Copy the octets kept from an incomplete frame to the start of the shared read buffer.

        Returns the count of copied octets. The shell reads more octets into the buffer after them,
        and then calls `receive` with all.
        """
        count = len(self.kept)
        if count:
            buffer[:count] = self.kept
        return count

    def receive(self, view: Octets, end: int) -> None:
        """Process `view[:end]`, which begins with the octets that `prepare` put there."""
        self.received_bytes += end - len(self.kept)
        self.sent_before = self.sent_bytes
        # `view` begins with these octets now
        self.kept = b""
        self.is_behind = False
        self.frames_before = self.frames_received
        self.turn_end = self.frames_before + self.turn_work
        self.cursor.octets = view
        self.transfer.octets = view
        self.disposition.octets = view
        at = 0
        while at < end and not (self.paused or self.is_behind) and self.phase != OVER:
            try:
                following = self._read(view, at, end)
            except AmqpError as error:
                self._fail(error)
                # skip the frame at fault; a header or framing error ends the connection anyway
                following = max(self.frame_end, at)
            if following == at:
                break
            at = following
        if self.frames_received != self.frames_before:
            self.last_received = self.turn.now
        if self.phase != OVER and at < end:
            self.kept = bytes(memoryview(view)[at:end])

    def expects_more(self) -> bool:
        """Return whether the peer will probably send more before anything is sent to it.

        This is certain if a frame or delivery is incomplete. It is improbable if anything was sent
        since the last read. Otherwise it is probable after a read of a single flow or heartbeat, or
        after a disposition if a sender waits for credit (`Session.awaits_credit`).
        """
        if self.kept:
            return True
        session = self.recent_session
        if session is not None:
            link = session.recent_link
            if link is not None and link.current is not None:
                return True
        if self.sent_bytes != self.sent_before:
            return False
        if self.last_code == codes.DISPOSITION:
            return session is not None and session.awaits_credit()
        came_alone = self.frames_received - self.frames_before == 1
        return came_alone and (self.last_code == codes.FLOW or self.last_code == 0)

    def took_long(self) -> bool:
        """Return whether the last turn used more than half of the work allowed in a turn."""
        return (self.turn_end - self.frames_received) * 2 < self.turn_work

    def resume(self) -> None:
        """Continue after a pause, or after other connections have had their turn.

        If the work for a frame is unfinished, it is continued; otherwise the kept octets are
        processed.
        """
        self.paused = False
        if self.unfinished is not None:
            self._finish(self.unfinished)
        elif self.kept:
            kept = self.kept
            self.receive(kept, len(kept))

    def _finish(self, rest: Unfinished) -> None:
        """Continue the unfinished work for a frame, as much as fits into one turn."""
        self.turn_end = self.frames_received + self.turn_work
        # the peer is not silent: the octets that it has sent since are not read yet
        self.last_received = self.turn.now
        session = self.failing = rest.session
        try:
            if session.state == MAPPED and not rest.go_on():
                return
        except AmqpError as error:
            self._fail(error)
        self.unfinished = None
        # the octets that follow it are processed in another turn
        self.is_behind = bool(self.kept)

    def end_of_input(self) -> None:
        """End the connection: the peer closed its side of the socket, or the socket failed."""
        opening.lose(self)

    def _read(self, view: Octets, at: int, end: int) -> int:
        """Process a header, or all complete frames; return the offset of the rest."""
        if self.phase == HEADER:
            if end - at < FRAME_HEADER_BYTES:
                self.frame_end = end
                headers.check_partial_header(self, bytes(memoryview(view)[at:end]))
                return at
            self.frame_end = end
            headers.header_received(self, bytes(memoryview(view)[at : at + FRAME_HEADER_BYTES]))
            return at + FRAME_HEADER_BYTES
        phase = self.phase
        limit = self.max_frame_size if phase == AMQP else self.sasl_frame_bytes
        while end - at >= FRAME_HEADER_BYTES:
            size = octets.read_u32(view, at)
            doff = view[at + 4] * 4
            if (
                size > limit
                or size < FRAME_HEADER_BYTES
                or doff < FRAME_HEADER_BYTES
                or doff > size
            ):
                self.frame_end = end
                raise AmqpError(
                    "amqp:connection:framing-error",
                    f"wrong frame header: a size of {size} octets (up to {limit} are allowed), and "
                    f"a data offset of {doff} octets",
                    Scope.CONNECTION,
                )
            if size > end - at:
                break
            self.frame_end = at + size
            if view[at + 5] != (0 if phase == AMQP else 1):
                raise AmqpError(
                    "amqp:connection:framing-error",
                    f"frame type {view[at + 5]} is not expected at this point",
                    Scope.CONNECTION,
                )
            self.frames_received += 1
            if phase == AMQP:
                self._read_frame(octets.read_u16(view, at + 6), at + doff, at + size)
            else:
                sasl.frame_received(self, bytes(memoryview(view)[at + doff : at + size]))
            at += size
            if self.frames_received >= self.turn_end:
                self.is_behind = at < end or self.unfinished is not None
                break
            if self.phase != phase or self.paused:
                break
        return at

    def _read_frame(self, channel: int, at: int, end: int) -> None:
        if at == end:
            # an empty frame: a heartbeat
            self.last_code = 0
            if channel > self.settings.channel_max:
                raise beginning.unmapped(self, channel)
            return
        cursor = self.cursor
        cursor.at = at
        cursor.end = end
        code = cursor.take_descriptor()
        self.last_code = code
        if code == codes.TRANSFER:
            session = self._mapped_session(channel)
            if session is not None:
                self.transfer.read(cursor)
                session.transfer_received(self.transfer)
        elif code == codes.DISPOSITION:
            session = self._mapped_session(channel)
            if session is not None:
                self.disposition.read(cursor)
                session.disposition_received(self.disposition)
        elif code == codes.FLOW:
            session = self._mapped_session(channel)
            if session is not None:
                self.flow.read(cursor)
                session.flow_received(self.flow)
        else:
            self.failing = None
            body = bytes(memoryview(cursor.octets)[at:end])
            # large frames take long, and other connections have their turn in between
            self.turn_end -= TABLED_WORK + (end - at) // OCTETS_OF_WORK
            self.tabled_bytes = end - at
            try:
                performative, _ = decode_frame_body(body, 0, end - at, FRAME_LIMITS, EncodedMap)
            except AmqpError as error:
                if code != BEGIN:
                    raise
                beginning.begin_refused(self, channel, error)
                return
            opening.frame_received(self, channel, performative)

    def _mapped_session(self, channel: int) -> Session | None:
        """Return the session of a channel, or None if we have ended it and so ignore its frames."""
        session = self.recent_session
        if session is None or session.remote_channel != channel or session.state != MAPPED:
            session = self.sessions.find(channel)
            if session is None:
                raise beginning.unmapped(self, channel)
            self.recent_session = session
        self.failing = session
        if session.state == MAPPED:
            return session
        beginning.check_discarding(session)
        return None

    def _fail(self, error: AmqpError) -> None:
        """End the session or close the connection with an error, depending on the error's scope."""
        session = self.failing
        if error.scope is not Scope.CONNECTION and session is not None and session.state == MAPPED:
            beginning.end(session, error)
        else:
            opening.close(self, error)

    def deduct_work(self, count: int) -> None:
        """Deduct the work of `count` per-message frames from the turn's budget."""
        self.turn_end -= count

    def try_deduct_work(self, count: int) -> bool:
        """Deduct the work of `count` frames; return False if the turn's budget is used up."""
        if self.frames_received >= self.turn_end:
            return False
        self.turn_end -= count
        return True

    def fail_link(self, link: Link, error: AmqpError) -> None:
        """Detach one link with an error, without ending its session."""
        attaching.detach(link, True, error)

    # Octets out.

    def write_due(self) -> None:
        """Write the flows and dispositions due at the end of a turn; the shell then sends them."""
        self.outbox.in_turn = False
        if self.sessions_due:
            for session in self.sessions_due:
                # a session that has ended has nothing left to write; one whose begin is unanswered
                # keeps its flows until something else is noted
                session.in_due = False
                if session.state == MAPPED:
                    session.write_due()
            self.sessions_due.clear()

    def sent(self, count: int) -> None:
        """Note that the socket has taken `count` octets of the output."""
        self.last_sent = self.turn.now
        self.sent_bytes += count
        self.outbox.output.sent(count)
        if self.outbox.relieve():
            self.handler.room_made(self, None)

    # Time.

    def tick(self) -> None:
        """Do what is due at the time `turn.now`: heartbeats, time-outs, delayed window openings."""
        opening.tick(self)
        if self.delayed_windows:
            flows.open_delayed_windows(self)

    # Calls from the shell, the core and clients.

    def start(self) -> None:
        """Send the first header, as the side that opened the connection."""
        opening.start(self)

    def sasl_outcome(self, accepted: bool, user: str | None) -> None:
        """Accept or refuse a client's SASL init, which paused the connection."""
        sasl.outcome(self, accepted, user)

    def close(self, error: AmqpError | None = None) -> None:
        """Close the connection, with or without an error; nothing is sent afterwards."""
        opening.close(self, error)

    def session_dropped(self, session: Session) -> None:
        """Add the deliveries of a session that has ended to the connection's counts."""
        self.past_received += session.received_deliveries
        self.past_sent += session.sent_deliveries

    def window_share(self, holds: bool) -> int:
        """Return how many octets a session's peer may send ahead.

        `holds` says whether this router still holds frames of the session.
        """
        is_scarce = holds and (self.held_back or self.turn.is_pressed)
        return share_of(self.settings.held_limit_bytes, len(self.local_sessions), is_scarce)

    def is_open(self) -> bool:
        """Return whether both opens have been exchanged, and no close has been sent or received."""
        return self.state == int(ConnectionState.OPENED)
