"""Sessions and links come and go: begin, attach, detach, end (sections 2.5, 2.6, 2.7.2 to 2.7.9).

Functions over `Connection`, `Session` and `Link`. A peer's begin is always answered; a peer's
attach is the core's to answer, with `accept` or `refuse`.
"""

from __future__ import annotations

from typing import Any

import attrs

from router.amqp.constants import Condition, ReceiverSettleMode, SenderSettleMode
from router.amqp.framing import encode_frame
from router.amqp.performatives import Attach, Begin, Detach, End, Error, Source, Target
from router.amqp.types import Symbol
from router.engine import violations
from router.engine.events import (
    LinkAttached,
    LinkAttachReceived,
    LinkDetached,
    LinkRefused,
    SessionBegun,
    SessionEnded,
)
from router.engine.link import UNLIMITED, IncomingLink, Link, OutgoingLink
from router.engine.session import Session
from router.engine.states import (
    Act,
    LinkState,
    SessionState,
    next_link_state,
    next_session_state,
)
from router.errors import AmqpError, Scope

OUTGOING_WINDOW = 0x7FFFFFFF
# The connection is over and nothing is written any more (`connection.OVER`, which C keeps).
OVER_PHASE = 3
# What a transfer of ours has beside its payload, at most (see amqp.writing).
TRANSFER_OVERHEAD = 72


def _write(session: Any, performative: Any) -> None:
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


# Sessions.


def begin(connection: Any) -> Session:
    """Begin a session of our own; raises amqp:resource-limit-exceeded without a free channel."""
    channel = _free_number(connection.local_sessions, connection.channel_max)
    if channel is None:
        raise AmqpError(
            Condition.RESOURCE_LIMIT_EXCEEDED,
            f"all {connection.channel_max + 1} channels are in use",
            Scope.CONNECTION,
        )
    session = _new_session(connection, channel)
    session.state = int(next_session_state(session.state, Act.SEND_BEGIN))
    _write(session, _begin_frame(session, None))
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
        free = _free_number(connection.local_sessions, connection.channel_max)
        if free is None:
            raise AmqpError(Condition.FRAMING_ERROR, "more sessions than channels")
        session = _new_session(connection, free)
        session.state = int(next_session_state(session.state, Act.RECV_BEGIN))
        session.state = int(next_session_state(session.state, Act.SEND_BEGIN))
        _write(session, _begin_frame(session, channel))
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
    free = _free_number(connection.local_sessions, connection.channel_max)
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
    _write(session, _begin_frame(session, channel))
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
    _write(session, End(error=told))
    connection = session.connection
    connection.handler.event_received(connection, SessionEnded(session, told))


def end_received(connection: Any, channel: int, remote: End) -> None:
    """The peer ends a session, or answers our end."""
    session = _session_of(connection, channel)
    session.state = int(next_session_state(session.state, Act.RECV_END))
    if session.state == SessionState.END_RCVD:
        _lose_links(session, remote.error, True)
        session.state = int(next_session_state(session.state, Act.SEND_END))
        _write(session, End())
        connection.handler.event_received(connection, SessionEnded(session, remote.error, True))
    connection.recent_session = connection.failing = None
    connection.sessions.remove(channel)
    connection.local_sessions.pop(session.channel, None)


def lose_sessions(connection: Any, error: Error | None, by_peer: bool) -> None:
    """The connection ends, for that reason and by whom: every link of every session is lost."""
    for session in list(connection.local_sessions.values()):
        if session.state == SessionState.MAPPED:
            if connection.phase != OVER_PHASE:
                session.write_due()
            _lose_links(session, error, by_peer)
            session.state = int(SessionState.UNMAPPED)
            connection.handler.event_received(connection, SessionEnded(session, None, by_peer))
    connection.recent_session = connection.failing = None
    connection.sessions.clear()
    connection.local_sessions.clear()
    connection.sessions_due.clear()


def _session_of(connection: Any, channel: int) -> Any:
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


# Links.


def attach(session: Any, frame: Attach) -> Link:
    """Attach a link of our own; the handle of `frame` is chosen here."""
    handle = _free_handle(session)
    link = _new_link(session, frame.name, handle, we_receive=bool(frame.role))
    link.attach = attrs.evolve(frame, handle=handle)
    _write(session, link.attach)
    link.state = int(next_link_state(link.state, Act.SEND_ATTACH))
    session.local_links[handle] = link
    session.unanswered[link.name, isinstance(link, IncomingLink)] = link
    return link


def attach_received(connection: Any, channel: int, remote: Attach) -> None:
    """A peer attaches a link, or answers our attach."""
    session = _mapped(connection, channel)
    if session is None:
        return
    handle = int(remote.handle)
    if handle > session.handle_max:
        raise violations.unattached(handle, session.handle_max)
    if session.links.find(handle) is not None:
        # the session's condition, and yet a close (section 2.7.3)
        raise AmqpError(Condition.HANDLE_IN_USE, f"a link is attached to handle {handle}")
    we_receive = not bool(remote.role)
    link = session.unanswered.pop((remote.name, we_receive), None)
    is_answer = link is not None
    if link is None:
        link = _new_link(session, remote.name, _free_handle(session), we_receive)
        session.local_links[link.handle] = link
    link.remote_attach = remote
    link.remote_handle = handle
    link.state = int(next_link_state(link.state, Act.RECV_ATTACH))
    session.links.put(handle, link)
    if isinstance(link, IncomingLink):
        link.delivery_count = int(remote.initial_delivery_count or 0)
    if is_answer:
        if isinstance(link, OutgoingLink):
            link.presettles = int(remote.snd_settle_mode) == 1
        if link.state == LinkState.ATTACHED:
            connection.handler.event_received(connection, LinkAttached(link))
        return
    connection.handler.event_received(connection, LinkAttachReceived(link))


def accept(
    link: Any,
    source: Any,
    target: Any,
    *,
    max_message_size: int = 0,
    offered_capabilities: tuple[str, ...] = (),
    snd_settle_mode: SenderSettleMode | None = None,
    rcv_settle_mode: ReceiverSettleMode | None = None,
) -> None:
    """Answer a peer's attach, unless the peer has given the link up by now.

    The settle modes are those that the peer asked for, where no others are given. Raises
    amqp:frame-size-too-small at session scope where the peer takes no frame of that size.
    """
    if link.state != LinkState.ATTACH_RCVD:
        return
    remote = link.remote_attach
    session = link.session
    we_send = isinstance(link, OutgoingLink)
    link.attach = Attach(
        name=link.name,
        handle=link.handle,
        role=not we_send,
        snd_settle_mode=remote.snd_settle_mode if snd_settle_mode is None else snd_settle_mode,
        rcv_settle_mode=remote.rcv_settle_mode if rcv_settle_mode is None else rcv_settle_mode,
        source=source,
        target=target,
        initial_delivery_count=0 if we_send else None,
        max_message_size=max_message_size or None,
        offered_capabilities=tuple(Symbol(c) for c in offered_capabilities),
    )
    if isinstance(link, OutgoingLink):
        link.presettles = int(remote.snd_settle_mode) == 1
        link.max_message_size = int(remote.max_message_size or UNLIMITED)
    else:
        link.max_message_size = max_message_size
        link.settles_second = int(link.attach.rcv_settle_mode) == 1
    _write(session, link.attach)
    link.state = int(next_link_state(link.state, Act.SEND_ATTACH))


def refuse(link: Any, error: AmqpError) -> None:
    """Refuse a peer's attach as section 2.6.3 says: attach without our terminus, then detach."""
    if link.state != LinkState.ATTACH_RCVD:
        return
    source, target = link.remote_attach.source, link.remote_attach.target
    if isinstance(link, OutgoingLink):
        accept(link, None, target if target is not None else Target())
    else:
        accept(link, source if source is not None else Source(), None)
    _detach(link, True, error)
    connection = link.session.connection
    connection.handler.event_received(connection, LinkRefused(link, error))


def detach(link: Any, closed: bool, error: AmqpError | None = None) -> None:
    """Detach or close a link, telling the handler first so that nothing is settled afterwards."""
    if link.state not in (LinkState.ATTACHED, LinkState.ATTACH_SENT):
        return
    connection = link.session.connection
    previous = link.state
    link.state = int(LinkState.DETACHED)
    connection.handler.event_received(connection, LinkDetached(link, closed, wire_error(error)))
    link.session.write_due()
    link.state = previous
    _detach(link, closed, error)


def _detach(link: Any, closed: bool, error: AmqpError | None) -> None:
    act = Act.SEND_DETACH if error is None else Act.SEND_DETACH_ERROR
    link.state = int(next_link_state(link.state, act))
    _write(link.session, Detach(handle=link.handle, closed=closed, error=wire_error(error)))
    link.drop()


def detach_received(connection: Any, channel: int, remote: Detach) -> None:
    """The peer detaches a link, or answers our detach, with or without `closed`."""
    session = _mapped(connection, channel)
    if session is None:
        return
    handle = int(remote.handle)
    link = session.links.find(handle)
    if link is None:
        raise violations.unattached(handle, session.handle_max)
    was_answered = link.state != LinkState.ATTACH_RCVD
    link.state = int(next_link_state(link.state, Act.RECV_DETACH))
    if link.state == LinkState.DETACH_RCVD:
        connection.handler.event_received(
            connection, LinkDetached(link, bool(remote.closed), remote.error, by_peer=True)
        )
        session.write_due()
        if not was_answered:
            # a detach names a handle, and ours becomes one by an attach
            role = not link.remote_attach.role
            _write(session, Attach(name=link.name, handle=link.handle, role=role))
        link.state = int(next_link_state(link.state, Act.SEND_DETACH))
        _write(session, Detach(handle=link.handle, closed=bool(remote.closed)))
        link.drop()
    session.recent_link = None
    session.links.remove(handle)
    session.local_links.pop(link.handle, None)


def _mapped(connection: Any, channel: int) -> Any:
    """The session of a channel, or None while it discards what comes."""
    session = _session_of(connection, channel)
    if session.state in (SessionState.END_SENT, SessionState.DISCARDING):
        return None
    return session


def _free_handle(session: Any) -> int:
    limit = min(session.handle_max, session.remote_handle_max)
    handle = _free_number(session.local_links, limit)
    if handle is None:
        raise AmqpError(
            Condition.RESOURCE_LIMIT_EXCEEDED, f"all {limit + 1} handles are in use", Scope.SESSION
        )
    return handle


def _free_number(used: dict[int, Any], highest: int) -> int | None:
    """A number that is not in use; the lowest one, as a rule the first that is looked at."""
    number = len(used)
    if number <= highest and number not in used:
        return number
    return next((n for n in range(highest + 1) if n not in used), None)


def _new_link(session: Any, name: str, handle: int, we_receive: bool) -> Link:
    if we_receive:
        return IncomingLink(session, name, handle)
    return OutgoingLink(session, name, handle)
