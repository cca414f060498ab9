"""Attach and detach links (sections 2.6, 2.7.3 and 2.7.7).

These functions work on `Session` and `Link`. The core calls `accept` or `refuse` to answer a peer's
attach. `beginning` begins and ends sessions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from router.amqp.constants import Condition, ReceiverSettleMode, SenderSettleMode
from router.amqp.encoded import AnyMap
from router.amqp.performatives import Attach, Detach, Error, Source, Target
from router.amqp.transactions import Coordinator
from router.amqp.types import Symbol
from router.engine import late_flows, violations
from router.engine.account import LINK_BYTES, LINKS, SESSION_BYTES, attach_bytes, link_bytes
from router.engine.beginning import session_of, wire_error, write
from router.engine.checking import check_then_call
from router.engine.events import (
    LinkAttached,
    LinkAttachReceived,
    LinkDetached,
    LinkRefused,
)
from router.engine.link import PEER_OVERDRAFT, UNLIMITED, IncomingLink, Link, OutgoingLink
from router.engine.states import (
    Act,
    LinkState,
    SessionState,
    next_link_state,
)
from router.errors import AmqpError, Scope

if TYPE_CHECKING:
    from router.engine.connection import Connection
    from router.engine.session import Session


def attach(session: Session, frame: Attach) -> Link:
    """Attach a link of our own; the handle in `frame` is replaced by a free one."""
    handle = _free_handle(session)
    link = _new_link(session, frame.name, handle, we_receive=bool(frame.role))
    link.attach = attrs.evolve(frame, handle=handle)
    if isinstance(link, OutgoingLink):
        link.delivery_count = link.initial_count = int(frame.initial_delivery_count or 0)
    elif isinstance(link, IncomingLink):
        link.least_overdraft = PEER_OVERDRAFT
    write(session, link.attach)
    link.attach = reduced_attach(link.attach, keeps_properties=True)
    link.state = int(next_link_state(link.state, Act.SEND_ATTACH))
    session.local_links[handle] = link
    session.handles.use(handle)
    session.unanswered[_identity(link)] = link
    return link


def attach_received(connection: Connection, channel: int, remote: Attach) -> None:
    """Process a peer's attach, or its answer to ours."""
    session = _mapped(connection, channel)
    if session is None:
        return

    def act() -> None:
        _act_on_attach(connection, session, remote)

    if not check_then_call(session, remote, act):
        act()


def _act_on_attach(connection: Connection, session: Session, remote: Attach) -> None:
    handle = int(remote.handle)
    if handle > session.handle_max:
        raise violations.unattached(handle, session.handle_max)
    if session.links.find(handle) is not None:
        # a session error in name, but the specification closes the connection (section 2.7.3)
        raise AmqpError(Condition.HANDLE_IN_USE, f"handle {handle} is in use by another link")
    we_receive = not bool(remote.role)
    link = session.unanswered.pop((remote.name, we_receive), None)
    is_answer = link is not None
    refusal = None
    if link is None:
        if (remote.name, we_receive) in session.errant and remote.unsettled is None:
            # without an unsettled map it resumes nothing: sent before the peer knew of the error
            raise violations.errant(remote.name)
        # until it is answered, the whole attach is kept, and its names are keys in tables
        charged = attach_bytes(connection.tabled_bytes, remote)
        refusal = connection.account.refusal(charged)
        if refusal is not None:
            if refusal.scope is not Scope.LINK:
                raise refusal
            remote = reduced_attach(remote)
            charged = LINK_BYTES
        link = _new_link(session, remote.name, _free_handle(session), we_receive)
        session.local_links[link.handle] = link
        session.handles.use(link.handle)
        link.charged = charged
        connection.account.charge(LINKS, charged)
        if isinstance(link, OutgoingLink):
            # the core may send on the link before it answers the attach
            link.max_message_size = int(remote.max_message_size or UNLIMITED)
    link.remote_attach = remote
    link.remote_handle = handle
    link.state = int(next_link_state(link.state, Act.RECV_ATTACH))
    session.links.put(handle, link)
    late_flows.forget(session, handle)
    if isinstance(link, IncomingLink):
        link.delivery_count = int(remote.initial_delivery_count or 0)
    if is_answer:
        if isinstance(link, OutgoingLink):
            link.presettles = int(remote.snd_settle_mode) == 1
            link.max_message_size = int(remote.max_message_size or UNLIMITED)
        elif isinstance(link, IncomingLink):
            link.max_message_size = int(link.attach.max_message_size or 0)
            link.settles_second = int(remote.rcv_settle_mode) == 1
        if link.state == LinkState.ATTACHED:
            connection.handler.event_received(connection, LinkAttached(link))
        link.remote_attach = reduced_attach(
            remote, keeps_properties=_is_between_routers(connection)
        )
        return
    if refusal is not None:
        refuse(link, refusal)
        return
    connection.handler.event_received(connection, LinkAttachReceived(link))


def accept(
    link: Link,
    source: Source | None,
    target: Target | Coordinator | None,
    *,
    max_message_size: int = 0,
    offered_capabilities: tuple[str, ...] = (),
    snd_settle_mode: SenderSettleMode | None = None,
    rcv_settle_mode: ReceiverSettleMode | None = None,
    unsettled: AnyMap | None = None,
    incomplete_unsettled: bool = False,
    properties: AnyMap | None = None,
) -> None:
    """Answer a peer's attach, unless the link has ended meanwhile.

    The settle modes default to those that the peer asked for. `unsettled` is the unsettled map for
    a resumed link (section 2.6.13), with the states by delivery-tag. Raises
    amqp:frame-size-too-small at session scope if the answer exceeds the peer's max-frame-size.
    """
    if link.state != LinkState.ATTACH_RCVD:
        return
    remote = link.remote_attach
    we_send = isinstance(link, OutgoingLink)
    frame = Attach(
        name=link.name,
        handle=link.handle,
        role=not we_send,
        snd_settle_mode=remote.snd_settle_mode if snd_settle_mode is None else snd_settle_mode,
        rcv_settle_mode=remote.rcv_settle_mode if rcv_settle_mode is None else rcv_settle_mode,
        source=source,
        target=target,
        unsettled=unsettled,
        incomplete_unsettled=incomplete_unsettled,
        initial_delivery_count=0 if we_send else None,
        max_message_size=max_message_size or None,
        offered_capabilities=tuple(Symbol(c) for c in offered_capabilities),
        properties=properties,
    )
    if isinstance(link, OutgoingLink):
        link.presettles = int(frame.snd_settle_mode) == 1
        link.max_message_size = int(remote.max_message_size or UNLIMITED)
    else:
        assert isinstance(link, IncomingLink)
        link.max_message_size = max_message_size
        link.settles_second = int(frame.rcv_settle_mode) == 1
    answer(link, frame)


def answer(link: Link, frame: Attach) -> None:
    """Answer a peer's attach with `frame`, after setting its handle to the link's.

    Raises amqp:frame-size-too-small at session scope if the answer exceeds the peer's
    max-frame-size.
    """
    frame = attrs.evolve(frame, handle=link.handle)
    write(link.session, frame)
    _reduce_attaches(link, frame)
    link.state = int(next_link_state(link.state, Act.SEND_ATTACH))


def _reduce_attaches(link: Link, frame: Attach) -> None:
    """Drop unneeded fields from a link's two attach frames; charge the peer for what is kept."""
    connection = link.session.connection
    keeps = _is_between_routers(connection)
    link.attach = reduced_attach(frame, keeps_properties=keeps)
    link.remote_attach = reduced_attach(link.remote_attach, keeps_properties=keeps)
    if link.charged:
        count = link_bytes(link.name, (link.attach, link.remote_attach))
        if link.is_routed:
            # also charge for the link's other end, which has its own session
            count += count + SESSION_BYTES
        connection.account.charge(LINKS, count - link.charged)
        link.charged = count


def _is_between_routers(connection: Connection) -> bool:
    """Return whether the peer is a router, so that the properties of its links must be kept."""
    return connection.settings.role in ("inter-router", "edge")


def reduced_attach(frame: Attach, *, keeps_properties: bool = False) -> Attach:
    """Return an attach reduced to the fields that are read after it has been answered."""
    properties = frame.properties if keeps_properties else None
    source, target = frame.source, frame.target
    if isinstance(source, Source) and (
        source.filter is not None
        or source.dynamic_node_properties is not None
        or source.default_outcome is not None
        or source.outcomes
        or source.capabilities
    ):
        source = attrs.evolve(
            source, filter=None, dynamic_node_properties=None, default_outcome=None,
            outcomes=(), capabilities=(),
        )  # fmt: skip
    if isinstance(target, Target) and (target.dynamic_node_properties or target.capabilities):
        target = attrs.evolve(target, dynamic_node_properties=None, capabilities=())
    elif isinstance(target, Coordinator):
        target = Coordinator()
    if (
        source is frame.source
        and target is frame.target
        and frame.unsettled is None
        and frame.properties is properties
        and not frame.offered_capabilities
        and not frame.desired_capabilities
    ):
        return frame
    return attrs.evolve(
        frame, source=source, target=target, unsettled=None, offered_capabilities=(),
        desired_capabilities=(), properties=properties,
    )  # fmt: skip


def refuse(link: Link, error: AmqpError) -> None:
    """Refuse a peer's attach: answer by an attach without our terminus, then detach (2.6.3)."""
    if link.state != LinkState.ATTACH_RCVD:
        return
    source, target = link.remote_attach.source, link.remote_attach.target
    if isinstance(link, OutgoingLink):
        accept(link, None, target if target is not None else Target())
    else:
        accept(link, source if source is not None else Source(), None)
    _detach(link, True, error)
    # the link never existed: a peer may try again before it has answered the detach
    link.session.errant.pop(_identity(link), None)
    connection = link.session.connection
    connection.handler.event_received(connection, LinkRefused(link, error))


def detach(
    link: Link, closed: bool, error: AmqpError | None = None, *, keeps_terminus: bool = False
) -> None:
    """Detach a link, or close it if `closed`.

    The handler gets a `LinkDetached` event first, so that it can send last outcomes before the
    detach. With `keeps_terminus`, the event has `closed` False even if the link is closed, so
    that the core keeps our terminus.
    """
    if link.state not in (LinkState.ATTACHED, LinkState.ATTACH_SENT):
        return
    connection = link.session.connection
    previous = link.state
    # during the event nothing can be sent on the link
    link.state = int(LinkState.DETACHED)
    ends = closed and not keeps_terminus
    connection.handler.event_received(connection, LinkDetached(link, ends, wire_error(error)))
    link.session.write_due()
    link.state = previous
    _detach(link, closed, error)


def _detach(link: Link, closed: bool, error: AmqpError | None) -> None:
    act = Act.SEND_DETACH if error is None else Act.SEND_DETACH_ERROR
    link.state = int(next_link_state(link.state, act))
    link.closes = closed
    if error is not None and error.condition != Condition.STOLEN:
        # the name of a stolen link belongs to another link by now, perhaps on this session
        link.session.errant[_identity(link)] = link
    write(link.session, Detach(handle=link.handle, closed=closed, error=wire_error(error)))
    link.drop()


def detach_received(connection: Connection, channel: int, remote: Detach) -> None:
    """Process a peer's detach, which may be its answer to ours."""
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
            # a detach names our handle, which only an attach makes valid
            role = not link.remote_attach.role
            count = None if role else 0
            write(session, Attach(link.name, link.handle, role, initial_delivery_count=count))
        if not (link.is_routed and link.terminus.answers_detach(link)):
            answer_detach(link, bool(remote.closed), wire_error(link.close_error))
        return
    session.errant.pop(_identity(link), None)
    crossed = bool(remote.closed) and not link.closes
    _forget(link)
    if link.is_routed and link.terminus.detach_answered(connection.handler, link, remote):
        return
    if crossed:
        # the peer has closed a link that we only detached: close it here too (2.6.6)
        count = None if link.remote_attach.role is False else 0
        again = attach(session, Attach(link.name, 0, not link.remote_attach.role,
                                       initial_delivery_count=count))  # fmt: skip
        _detach(again, True, None)


def answer_detach(link: Link, closed: bool, error: Error | None) -> None:
    """Answer a peer's detach, unless the session has ended meanwhile."""
    if link.state != LinkState.DETACH_RCVD:
        return
    link.state = int(next_link_state(link.state, Act.SEND_DETACH))
    write(link.session, Detach(handle=link.handle, closed=closed, error=error))
    link.drop()
    _forget(link)


def _forget(link: Link) -> None:
    session = link.session
    link.release()
    session.recent_link = None
    session.links.remove(link.remote_handle)
    late_flows.expect(link)
    if session.local_links.pop(link.handle, None) is not None:
        session.handles.free(link.handle)


def _identity(link: Link) -> tuple[str, bool]:
    """Return what identifies a link within its session: its name, and whether we receive on it."""
    return link.name, isinstance(link, IncomingLink)


def _mapped(connection: Connection, channel: int) -> Session | None:
    """Return the session of a channel, or None if we have ended it and so ignore its frames."""
    session = session_of(connection, channel)
    if session.state in (SessionState.END_SENT, SessionState.DISCARDING):
        return None
    return session


def _free_handle(session: Session) -> int:
    limit = min(session.handle_max, session.remote_handle_max)
    handle: int | None = session.handles.lowest_free(limit)
    if handle is None:
        raise AmqpError(
            Condition.RESOURCE_LIMIT_EXCEEDED,
            f"all {limit + 1} handles of the session are in use",
            Scope.SESSION,
        )
    return handle


def _new_link(session: Session, name: str, handle: int, we_receive: bool) -> Link:
    link: Link = (IncomingLink if we_receive else OutgoingLink)(session, name, handle)
    link.no_credit_since = session.outbox.turn.now
    return link
