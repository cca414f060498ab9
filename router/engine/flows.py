"""Receive and send flows: the flow state of a session and of its links (section 2.7.4).

One flow suffices for a batch of messages: the session notes that a flow is due, and writes the flow
at the end of the turn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from router.amqp.framing import encode_frame
from router.amqp.performatives import Flow
from router.amqp.reading_flow import FlowFrame
from router.amqp.writing import write_flow
from router.engine import late_flows, serial, transactions
from router.engine.link import IncomingLink, OutgoingLink
from router.engine.states import SessionState
from router.engine.window import LARGE_BYTES

if TYPE_CHECKING:
    from router.engine.connection import Connection
    from router.engine.link import Link
    from router.engine.session import Session

# Our own outgoing window is always as wide as allowed, so it never limits a peer.
OUTGOING_WINDOW = 0x7FFFFFFF
MAPPED = int(SessionState.MAPPED)


def process(session: Session, frame: FlowFrame) -> None:
    """Process a flow: update the session's windows, then the link it names (section 2.7.4)."""
    was_closed = session.remote_incoming_window <= 0
    if frame.has_next_incoming_id:
        under_way = serial.distance(frame.next_incoming_id, session.next_outgoing_id)
    else:
        # The peer has not seen our begin: everything that we sent is still on its way.
        under_way = serial.distance(0, session.next_outgoing_id)
    session.remote_incoming_window = frame.incoming_window - under_way
    session.next_incoming_id = frame.next_outgoing_id
    session.remote_outgoing_window = frame.outgoing_window
    link = None
    is_routed = False
    if frame.has_handle:
        link = session.links.find(frame.handle)
        if link is None:
            late_flows.ignore_flow(session, frame.handle)
        else:
            is_routed = link.is_routed and not link.is_lost()
            if is_routed:
                # if an answer is requested, it comes from the peer at the other end
                link.terminus.flow_received(session, link, frame)
            if not link.is_attached():
                if isinstance(link, OutgoingLink) and not link.is_lost() and not is_routed:
                    # its attach is answered in a later turn, and the credit holds from then on
                    outgoing = link
                    outgoing.apply_flow(frame)
                link = None
    if isinstance(link, OutgoingLink):
        outgoing = link
        if frame.properties_end and not is_routed and transactions.refuse_acquisition(link, frame):
            link = None
        else:
            outgoing.apply_flow(frame)
            session.handler.credit_received(outgoing)
            if outgoing.drain_due:
                answer_drain(outgoing)
    elif isinstance(link, IncomingLink):
        incoming: IncomingLink = link
        incoming.apply_flow(frame)
        session.handler.flow_received(incoming)
    if was_closed and session.remote_incoming_window > 0:
        session.handler.room_made(session.connection, session)
    if frame.echo and not is_routed:
        if link is not None:
            session.schedule_link_flow(link)
        else:
            session.schedule_flow()


def answer_drain(link: OutgoingLink) -> None:
    """Answer a receiver's drain, once, if no credit is left (section 2.6.7).

    If a delivery is only partly sent, the answer has to wait. On a routed link, the sender at the
    other end answers.
    """
    if link.drain_due and link.credit == 0 and link.current is None and not link.is_routed:
        link.drain_due = False
        session = link.session
        session.schedule_link_flow(link)


def prepare_opening(session: Session) -> bool:
    """Prepare to open a session's window; return False if the opening is delayed.

    It is delayed if the window cannot be opened far enough to be worth a flow. Otherwise the window
    may be enlarged, for a large message that is passing through.
    """
    connection = session.connection
    window = session.window
    held = window.held_frames
    window.share = connection.window_share(held > 0)
    if not window.can_open(session.local_links):
        if window.delayed_since < 0:
            delay_opening(session)
        return False
    link = session.recent_link
    delivery = None if link is None else link.current
    is_large = (
        delivery is not None
        and delivery.size >= LARGE_BYTES
        and (not held or window.is_moving)
        and not (connection.held_back or connection.turn.is_pressed)
    )
    most = connection.settings.held_limit_bytes
    window.stretch(connection.turn, window.share, most, is_large)
    return True


def delay_opening(session: Session) -> None:
    """Delay the opening of a session's window, which could only be opened a little now."""
    window = session.window
    connection = session.connection
    window.delayed_since = connection.turn.now
    connection.delayed_windows[session.channel] = session


def open_delayed_windows(connection: Connection) -> None:
    """Open the windows whose opening was delayed for long enough, even if only by a little.

    Otherwise messages held for one link could stop the messages for the session's other links.
    """
    now = connection.turn.now
    for channel, session in list(connection.delayed_windows.items()):
        window = session.window
        if window.delayed_since < 0 or session.state != MAPPED:
            del connection.delayed_windows[channel]
        elif window.has_waited(now):
            window.share = connection.window_share(window.held_frames > 0)
            del connection.delayed_windows[channel]
            window.delayed_since = -1.0
            if window.affordable() > window.size:
                session.schedule_flow()


def write(session: Session, link: Link | None) -> None:
    """Write a flow for the session, with the flow state of `link` unless that is None."""
    if link is None:
        write_flow(
            session.outbox.output, session.channel, session.next_incoming_id, session.window.size,
            session.next_outgoing_id, OUTGOING_WINDOW, False, 0, 0, 0, 0, False, False,
        )  # fmt: skip
        return
    if isinstance(link, OutgoingLink):
        available = session.handler.available(link)
    else:
        assert isinstance(link, IncomingLink)
        available = link.available()
    if link.flow_extras is not None:
        _write_with_extras(session, link, available)
        return
    write_flow(
        session.outbox.output, session.channel, session.next_incoming_id, session.window.size,
        session.next_outgoing_id, OUTGOING_WINDOW, True, link.handle, link.delivery_count,
        link.credit, available, link.drain, False,
    )  # fmt: skip


def _write_with_extras(session: Session, link: Link, available: int) -> None:
    """Write a flow that passes on the echo flag and properties from a routed link's other end.

    Properties that are too long for a frame are omitted.
    """
    assert link.flow_extras is not None
    echo, properties = link.flow_extras
    link.flow_extras = None
    flow = Flow(
        next_incoming_id=session.next_incoming_id,
        incoming_window=session.window.size,
        next_outgoing_id=session.next_outgoing_id,
        outgoing_window=OUTGOING_WINDOW,
        handle=link.handle,
        delivery_count=link.delivery_count,
        link_credit=link.credit,
        available=available,
        drain=bool(link.drain),
        echo=echo,
        properties=properties,
    )
    octets = encode_frame(session.channel, flow)
    if len(octets) > session.connection.remote_max_frame_size:
        octets = encode_frame(session.channel, attrs.evolve(flow, properties=None))
    session.outbox.output.append(octets)
    session.outbox.touch()
