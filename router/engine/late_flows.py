"""Late flows: answers to a drain that come after their link was detached.

A flow for a handle without an attached link is an error that ends the session (2.7.4). But some
clients, such as fe2o3-amqp, may detach a link just before they answer a drain. So one flow is
ignored for each link that the peer detached without answering our drain (the last part of
docs/decisions/0089-few-and-wide-windows.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from router.engine import violations
from router.engine.events import FlowIgnored
from router.engine.link import IncomingLink, Link
from router.engine.naming import link_identity

if TYPE_CHECKING:
    from router.engine.session import Session

# How many handles of a session are remembered, the most recently detached ones.
MOST: Final = 64


def expect(link: Link) -> None:
    """Remember the handle of a detached link if the peer has not answered our drain of the link."""
    if not (isinstance(link, IncomingLink) and link.drain_unanswered):
        return
    session = link.session
    late = session.late_handles
    if late is None:
        late = session.late_handles = {}
    elif len(late) >= MOST:
        del late[next(iter(late))]
    late[link.remote_handle] = link_identity(link)


def forget(session: Session, handle: int) -> None:
    """Stop expecting a late flow for a handle, to which a link is attached again."""
    if session.late_handles:
        session.late_handles.pop(handle, None)


def ignore_flow(session: Session, handle: int) -> None:
    """Ignore one flow for a handle if it is the late answer to a drain.

    For any other flow, raises amqp:session:unattached-handle, or amqp:connection:framing-error if
    the handle is above handle-max.
    """
    late = session.late_handles
    link_id = late.pop(handle, None) if late else None
    if link_id is None:
        raise violations.unattached(handle, session.handle_max)
    connection = session.connection
    connection.handler.event_received(connection, FlowIgnored(session, link_id))
