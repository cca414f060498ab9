"""Begin and end sessions (sections 2.5, 2.7.2 and 2.7.8).

These functions work on `Connection` and `Session`. A peer's begin is always answered. `attaching`
attaches and detaches the links of a session.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs

from router.amqp.constants import Condition
from router.amqp.framing import encode_frame
from router.amqp.performatives import Begin, Close, Detach, End, Error
from router.amqp.types import Symbol
from router.engine.account import SESSION_BYTES, SESSIONS
from router.engine.events import ConnectionClosed, SessionBegun, SessionEnded
from router.engine.losing import LostSessions
from router.engine.session import Session
from router.engine.states import (
    Act,
    SessionState,
    next_session_state,
)
from router.errors import AmqpError, Scope

if TYPE_CHECKING:
    from router.amqp.composite import Composite
    from router.engine.connection import Connection

OUTGOING_WINDOW = 0x7FFFFFFF
# The connection is over and nothing is written any more (as `connection.OVER`, a C constant).
OVER_PHASE = 3
# The most octets that our transfers have in addition to the payload (see amqp.writing).
TRANSFER_OVERHEAD = 72


def write(session: Session, performative: Composite) -> None:
    """Write a frame; raise amqp:frame-size-too-small if the frame is too large for the peer."""
    limit = session.connection.remote_max_frame_size
    frame = encode_fitting(limit, session.channel, performative)
    if len(frame) > limit:
        raise AmqpError(
            Condition.FRAME_SIZE_TOO_SMALL,
            f"{type(performative).__name__} frame of {len(frame)} octets; the peer allows {limit}",
            Scope.SESSION,
        )
    session.outbox.output.append(frame)
    session.outbox.touch()


def encode_fitting(limit: int, channel: int, performative: Composite) -> bytes:
    """Encode a frame; omit the description and info of its error if it exceeds `limit` octets."""
    frame = encode_frame(channel, performative)
    if len(frame) > limit and isinstance(performative, End | Detach | Close) and performative.error:
        short = Error(condition=performative.error.condition)
        frame = encode_frame(channel, attrs.evolve(performative, error=short))
    return frame


def wire_error(error: AmqpError | None) -> Error | None:
    """Return the AMQP error for an exception, or None for an orderly end."""
    if error is None:
        return None
    return Error(
        condition=Symbol(error.condition), description=error.description or None, info=error.info
    )


def begin(connection: Connection) -> Session:
    """Begin a session of our own; raise amqp:resource-limit-exceeded if no channel is free."""
    channel = connection.channels.lowest_free(connection.channel_max)
    if channel is None:
        raise AmqpError(
            Condition.RESOURCE_LIMIT_EXCEEDED,
            f"all {connection.channel_max + 1} channels are in use",
            Scope.CONNECTION,
        )
    session = _new_session(connection, channel)
    session.state = int(next_session_state(session.state, Act.SEND_BEGIN))
    write(session, _begin_frame(session, None))
    return session


def begin_received(connection: Connection, channel: int, remote: Begin) -> None:
    """Answer a peer's begin, or process its answer to ours."""
    if channel > connection.settings.channel_max:
        raise unmapped(connection, channel)
    mapped = connection.sessions.find(channel)
    if mapped is not None:
        connection.failing = mapped
        problem = f"begin received on channel {channel}, which already has a session"
        raise AmqpError(Condition.NOT_ALLOWED, problem, Scope.SESSION)
    if remote.remote_channel is not None:
        session = connection.local_sessions.get(int(remote.remote_channel))
        if session is None:
            raise AmqpError(
                Condition.INVALID_FIELD,
                f"remote-channel {remote.remote_channel} names no session that this router began",
            )
        session.state = int(next_session_state(session.state, Act.RECV_BEGIN))
    else:
        free = connection.channels.lowest_free(connection.channel_max)
        if free is None:
            raise AmqpError(
                Condition.FRAMING_ERROR, f"all {connection.channel_max + 1} channels are in use"
            )
        session = _new_session(connection, free)
        session.state = int(next_session_state(session.state, Act.RECV_BEGIN))
        session.state = int(next_session_state(session.state, Act.SEND_BEGIN))
        write(session, _begin_frame(session, channel))
        session.charged = SESSION_BYTES
    session.remote_channel = channel
    session.next_incoming_id = int(remote.next_outgoing_id)
    session.remote_incoming_window = int(remote.incoming_window)
    session.remote_outgoing_window = int(remote.outgoing_window)
    session.remote_handle_max = int(remote.handle_max)
    connection.sessions.put(channel, session)
    connection.handler.event_received(connection, SessionBegun(session))
    if session.charged:
        account = connection.account
        refusal = account.refusal(SESSION_BYTES, Scope.SESSION) or account.session_refusal()
        account.charge(SESSIONS, SESSION_BYTES)
        if refusal is not None and refusal.scope is Scope.CONNECTION:
            raise refusal
        if refusal is not None:
            end(session, refusal)


def begin_refused(connection: Connection, channel: int, error: AmqpError) -> None:
    """Answer a begin that has invalid fields: begin a session and end it with the error.

    Raises the error instead if no session can be begun: the peer's channel is in use or above
    channel-max, no channel is free on our side, or the begin may be the answer to one of ours.
    """
    free = connection.channels.lowest_free(connection.channel_max)
    if (
        error.condition != Condition.INVALID_FIELD
        or not connection.is_open()
        or channel > connection.settings.channel_max
        or connection.sessions.find(channel) is not None
        or free is None
        # the refused begin may have been the answer to one of ours
        or any(each.state == SessionState.BEGIN_SENT for each in connection.local_sessions.values())
    ):
        raise error
    session = _new_session(connection, free)
    session.state = int(next_session_state(session.state, Act.RECV_BEGIN))
    session.state = int(next_session_state(session.state, Act.SEND_BEGIN))
    write(session, _begin_frame(session, channel))
    session.remote_channel = channel
    connection.sessions.put(channel, session)
    connection.handler.event_received(connection, SessionBegun(session))
    end(session, error)


def _new_session(connection: Connection, channel: int) -> Session:
    settings = connection.settings
    session = Session(connection, channel, settings.window_limit, settings.max_frame_size)
    session.handle_max = settings.handle_max
    session.max_frame_payload = connection.remote_max_frame_size - TRANSFER_OVERHEAD
    connection.local_sessions[channel] = session
    connection.channels.use(channel)
    session.window.widen(connection.window_share(False), session.local_links)
    return session


def _begin_frame(session: Session, remote_channel: int | None) -> Begin:
    return Begin(
        remote_channel=remote_channel,
        next_outgoing_id=session.next_outgoing_id,
        incoming_window=session.window.size,
        outgoing_window=OUTGOING_WINDOW,
        handle_max=session.handle_max,
    )


def end(session: Session, error: AmqpError | None = None) -> None:
    """End a session; its links are lost with it."""
    if session.state != SessionState.MAPPED:
        return
    session.write_due()
    told = wire_error(error)
    act = Act.SEND_END if error is None else Act.SEND_END_ERROR
    _lose_links(session, told, by_peer=False, act=act, answer=End(error=told))


def end_received(connection: Connection, channel: int, remote: End) -> None:
    """Process a peer's end, or its answer to ours."""
    session = session_of(connection, channel)
    session.state = int(next_session_state(session.state, Act.RECV_END))
    if session.state == SessionState.END_RCVD:
        _lose_links(session, remote.error, by_peer=True, act=Act.SEND_END, answer=End())
    connection.account.release(SESSIONS, session.charged)
    connection.recent_session = connection.failing = None
    connection.sessions.remove(channel)
    if connection.local_sessions.pop(session.channel, None) is not None:
        connection.session_dropped(session)
        connection.channels.free(session.channel)


def lose_sessions(
    connection: Connection,
    error: Error | None,
    *,
    by_peer: bool,
    end: Callable[[], None],
    closed: ConnectionClosed | None,
) -> None:
    """Lose every link of every session, because the connection ends.

    `error` is the reason, and `by_peer` says whether the peer ended the connection. `end` is called
    in this turn to mark the connection as ended. `closed` is the event to pass on after the last
    link is lost, which may be in a later turn.
    """
    # plain numbers are compared faster, and there may be very many sessions
    ending = (int(SessionState.MAPPED), int(SessionState.BEGIN_SENT))
    sessions = [each for each in connection.local_sessions.values() if each.state in ending]
    if connection.phase != OVER_PHASE:
        for session in connection.sessions_due:
            if session.state == SessionState.MAPPED:
                session.write_due()
    is_ended = False

    def end_once() -> None:
        nonlocal is_ended
        if is_ended:
            return
        is_ended = True
        connection.recent_session = connection.failing = None
        connection.sessions.clear()
        for session in connection.local_sessions.values():
            connection.session_dropped(session)
        connection.local_sessions.clear()
        connection.sessions_due.clear()
        end()

    def session_over(session: Session) -> None:
        session.state = int(SessionState.UNMAPPED)
        connection.handler.event_received(connection, SessionEnded(session, None, by_peer))

    def over() -> None:
        end_once()
        if closed is not None:
            connection.handler.event_received(connection, closed)

    turn = connection.turn
    lost = LostSessions(
        turn, sessions, error, by_peer=by_peer, session_over=session_over, over=over
    )
    lost.start(before_deferring=end_once)


def session_of(connection: Connection, channel: int) -> Session:
    """Return the session of a frame's channel; raise the error of `unmapped` if there is none."""
    session: Session | None = connection.sessions.find(channel)
    if session is None:
        raise unmapped(connection, channel)
    connection.failing = session
    return session


def check_discarding(session: Session) -> None:
    """Raise amqp:illegal-state unless we have ended the session, and so may ignore its frames."""
    state = SessionState(session.state)
    if state not in (SessionState.END_SENT, SessionState.DISCARDING):
        raise AmqpError(
            Condition.ILLEGAL_STATE,
            f"frame received while the session is {state.name}",
            Scope.CONNECTION,
        )


def unmapped(connection: Connection, channel: int) -> AmqpError:
    """Return the error for a frame on a channel without a session, or above channel-max."""
    highest = connection.settings.channel_max
    if channel > highest:
        return AmqpError(
            Condition.FRAMING_ERROR, f"channel {channel} is above channel-max {highest}"
        )
    return AmqpError(Condition.NOT_ALLOWED, f"no session is mapped to channel {channel}")


def _lose_links(
    session: Session, error: Error | None, *, by_peer: bool, act: Act, answer: End
) -> None:
    """Lose every link of a session that ends, and send the end frame `answer` to the peer.

    The frame is sent in this turn, even if some links are only lost in later turns.
    """
    connection = session.connection
    state = session.state

    def tell() -> None:
        session.state = int(next_session_state(session.state, act))
        write(session, answer)

    def session_over(_: Session) -> None:
        if session.state == state:
            tell()
        connection.handler.event_received(connection, SessionEnded(session, error, by_peer))

    lost = LostSessions(
        connection.turn, [session], error, by_peer=by_peer, session_over=session_over
    )
    lost.start(before_deferring=tell)
