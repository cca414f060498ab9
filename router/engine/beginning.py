"""Sessions begin and end (sections 2.5, 2.7.2 and 2.7.8).

Functions over `Connection` and `Session`. A peer's begin is always answered. How links come and go
within a session is in `attaching`.
"""

from __future__ import annotations

from typing import Any

import attrs

from router.amqp.constants import Condition
from router.amqp.framing import encode_frame
from router.amqp.performatives import Begin, End, Error
from router.amqp.types import Symbol
from router.engine.events import (
    LinkDetached,
    SessionBegun,
    SessionEnded,
)
from router.engine.session import Session
from router.engine.states import (
    Act,
    LinkState,
    SessionState,
    next_session_state,
)
from router.errors import AmqpError, Scope

OUTGOING_WINDOW = 0x7FFFFFFF
# The connection is over and nothing is written any more (`connection.OVER`, which C keeps).
OVER_PHASE = 3
# What a transfer of ours has beside its payload, at most (see amqp.writing).
TRANSFER_OVERHEAD = 72


def write(session: Any, performative: Any) -> None:
    """Write a frame; raises amqp:frame-size-too-small where the peer takes none of its size."""
    limit = session.connection.remote_max_frame_size
    frame = encode_fitting(limit, session.channel, performative)
    if len(frame) > limit:
        raise AmqpError(
            Condition.FRAME_SIZE_TOO_SMALL,
            f"{type(performative).__name__} of {len(frame)} octets; {limit} are allowed",
            Scope.SESSION,
        )
    session.outbox.output.append(frame)
    session.outbox.touch()


def encode_fitting(limit: int, channel: int, performative: Any) -> bytes:
    """A frame; where it is too long, without what an error says beside its condition."""
    frame = encode_frame(channel, performative)
    if len(frame) > limit and getattr(performative, "error", None) is not None:
        short = Error(condition=performative.error.condition)
        frame = encode_frame(channel, attrs.evolve(performative, error=short))
    return frame


def wire_error(error: AmqpError | None) -> Error | None:
    """The wire's error for an exception; None for an orderly end."""
    if error is None:
        return None
    return Error(
        condition=Symbol(error.condition), description=error.description or None, info=error.info
    )


def begin(connection: Any) -> Session:
    """Begin a session of our own; raises amqp:resource-limit-exceeded without a free channel."""
    channel = free_number(connection.local_sessions, connection.channel_max)
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


def begin_received(connection: Any, channel: int, remote: Begin) -> None:
    """Answer a peer's begin, or take the answer to ours."""
    if channel > connection.settings.channel_max:
        raise unmapped(connection, channel)
    mapped = connection.sessions.find(channel)
    if mapped is not None:
        connection.failing = mapped
        problem = f"a begin on channel {channel}, to which this session is mapped"
        raise AmqpError(Condition.NOT_ALLOWED, problem, Scope.SESSION)
    if remote.remote_channel is not None:
        session = connection.local_sessions.get(int(remote.remote_channel))
        if session is None:
            raise AmqpError(
                Condition.INVALID_FIELD, f"remote-channel {remote.remote_channel} was never begun"
            )
        session.state = int(next_session_state(session.state, Act.RECV_BEGIN))
    else:
        free = free_number(connection.local_sessions, connection.channel_max)
        if free is None:
            raise AmqpError(Condition.FRAMING_ERROR, "more sessions than channels")
        session = _new_session(connection, free)
        session.state = int(next_session_state(session.state, Act.RECV_BEGIN))
        session.state = int(next_session_state(session.state, Act.SEND_BEGIN))
        write(session, _begin_frame(session, channel))
    session.remote_channel = channel
    session.next_incoming_id = int(remote.next_outgoing_id)
    session.remote_incoming_window = int(remote.incoming_window)
    session.remote_outgoing_window = int(remote.outgoing_window)
    session.remote_handle_max = int(remote.handle_max)
    connection.sessions.put(channel, session)
    connection.handler.event_received(connection, SessionBegun(session))


def begin_refused(connection: Any, channel: int, error: AmqpError) -> None:
    """Answer a peer's begin whose fields cannot be by a session that ends with the error at once.

    Raises the error where it is not known which channels are meant, or none is free.
    """
    free = free_number(connection.local_sessions, connection.channel_max)
    if (
        error.condition != Condition.INVALID_FIELD
        or not connection.is_open()
        or channel > connection.settings.channel_max
        or connection.sessions.find(channel) is not None
        or free is None
        # it may have been the answer to a begin of ours
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


def _new_session(connection: Any, channel: int) -> Session:
    settings = connection.settings
    session = Session(connection, channel, settings.window_limit, settings.max_frame_size)
    session.handle_max = settings.handle_max
    session.max_frame_payload = connection.remote_max_frame_size - TRANSFER_OVERHEAD
    connection.local_sessions[channel] = session
    session.window.widen(connection.window_share(False), session.local_links)
    return session


def _begin_frame(session: Any, remote_channel: int | None) -> Begin:
    return Begin(
        remote_channel=remote_channel,
        next_outgoing_id=session.next_outgoing_id,
        incoming_window=session.window.size,
        outgoing_window=OUTGOING_WINDOW,
        handle_max=session.handle_max,
    )


def end(session: Any, error: AmqpError | None = None) -> None:
    """End a session; its links are lost with it."""
    if session.state != SessionState.MAPPED:
        return
    session.write_due()
    told = wire_error(error)
    _lose_links(session, told, False)
    act = Act.SEND_END if error is None else Act.SEND_END_ERROR
    session.state = int(next_session_state(session.state, act))
    write(session, End(error=told))
    connection = session.connection
    connection.handler.event_received(connection, SessionEnded(session, told))


def end_received(connection: Any, channel: int, remote: End) -> None:
    """The peer ends a session, or answers our end."""
    session = session_of(connection, channel)
    session.state = int(next_session_state(session.state, Act.RECV_END))
    if session.state == SessionState.END_RCVD:
        _lose_links(session, remote.error, True)
        session.state = int(next_session_state(session.state, Act.SEND_END))
        write(session, End())
        connection.handler.event_received(connection, SessionEnded(session, remote.error, True))
    connection.recent_session = connection.failing = None
    connection.sessions.remove(channel)
    connection.local_sessions.pop(session.channel, None)


def lose_sessions(connection: Any, error: Error | None, by_peer: bool) -> None:
    """The connection ends, for that reason and by whom: every link of every session is lost."""
    for session in list(connection.local_sessions.values()):
        if session.state in (SessionState.MAPPED, SessionState.BEGIN_SENT):
            if connection.phase != OVER_PHASE and session.state == SessionState.MAPPED:
                session.write_due()
            _lose_links(session, error, by_peer)
            session.state = int(SessionState.UNMAPPED)
            connection.handler.event_received(connection, SessionEnded(session, None, by_peer))
    connection.recent_session = connection.failing = None
    connection.sessions.clear()
    connection.local_sessions.clear()
    connection.sessions_due.clear()


def session_of(connection: Any, channel: int) -> Any:
    """The session that a frame's channel names; raises amqp:not-allowed where there is none."""
    session = connection.sessions.find(channel)
    if session is None:
        raise unmapped(connection, channel)
    connection.failing = session
    return session


def unmapped(connection: Any, channel: int) -> AmqpError:
    """The error for a frame on a channel where no session is."""
    highest = connection.settings.channel_max
    if channel > highest:
        return AmqpError(Condition.FRAMING_ERROR, f"channel {channel}; channel-max is {highest}")
    return AmqpError(Condition.NOT_ALLOWED, f"no session is mapped to channel {channel}")


def _lose_links(session: Any, error: Error | None, by_peer: bool) -> None:
    """Every link of the session is over, with no detach exchanged; `error` is what ended it."""
    for link in list(session.local_links.values()):
        was_attached = link.state in (
            LinkState.ATTACHED,
            LinkState.ATTACH_RCVD,
            LinkState.ATTACH_SENT,
        )
        link.state = int(LinkState.DETACHED)
        if was_attached:
            session.connection.handler.event_received(
                session.connection, LinkDetached(link, False, error, lost=True, by_peer=by_peer)
            )
        link.drop()
    session.recent_link = None
    session.links.clear()
    session.local_links.clear()
    session.links_due.clear()
    session.unanswered.clear()
    session.errant.clear()


def free_number(used: dict[int, Any], highest: int) -> int | None:
    """A number that is not in use; the lowest one, as a rule the first that is looked at."""
    number = len(used)
    if number <= highest and number not in used:
        return number
    return next((n for n in range(highest + 1) if n not in used), None)
