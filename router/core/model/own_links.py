"""Links that the router attaches itself, each on a session of its own.

Some brokers report an error of a link by ending its session, and an error of one link must not end
another link. Nothing here runs per message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from router.amqp.performatives import Attach, Error
from router.engine import attaching, beginning
from router.engine.events import LinkDetached, SessionEnded
from router.engine.link import IncomingLink, Link
from router.engine.session import Session
from router.engine.states import LinkState, SessionState
from router.errors import AmqpError, Scope

if TYPE_CHECKING:
    from typing import Any

    from router.core.ports import Core
    from router.engine.connection import Connection


class OwnLink:
    """Link that the router attaches on a session of its own.

    Subclasses override `attached` and `over`, each of which is called at most once. The link has no
    `owner` until it has been attached and added to an address.
    """

    # whether another event reports its state to the log
    is_announced = False

    def __init__(self, frame: Attach) -> None:
        self.frame = frame
        self.session: Session | None = None
        self.link: Link | None = None
        self.is_over = False
        # whether the session stays until the peer answers the detach; see `answer_lost`
        self.awaits_answer = False

    def begin(self, connection: Connection) -> None:
        """Begin the session; the link is attached as soon as the peer has answered.

        Raise `AmqpError` if the connection has no channel left.
        """
        self.session = beginning.begin(connection)
        self.session.owner = self

    def detach(self, closed: bool = True, error: AmqpError | None = None) -> None:
        """Detach the link, or prevent its attach; call `over` unless it has been called."""
        if self.link is not None:
            attaching.detach(self.link, closed, error)
        elif self.session is not None and not self.is_over:
            session, self.is_over = self.session, True
            forwarder: Any = session.handler
            self.over(forwarder, beginning.wire_error(error), closed)
            forwarder.idle_sessions.append(session)

    @property
    def is_quiet(self) -> bool:
        """Return whether no delivery is under way or unsettled on the link."""
        link = self.link
        return link is None or (link.unsettled == 0 and link.current is None)

    @property
    def awaits_session_end(self) -> bool:
        """Return whether the session exists; it does until the peer answers the end frame."""
        session = self.session
        if session is None:
            return False
        return session.connection.local_sessions.get(session.channel) is session

    def attached(self, forwarder: Core) -> None:
        """Note that the peer has accepted the link, and has not detached it since."""

    def answer_lost(self, forwarder: Core) -> None:
        """Note that the peer will not answer the detach, because the session has ended."""

    def over(self, forwarder: Core, error: Error | None, closed: bool) -> None:
        """Note that the link is detached, was refused, or is lost with its session or connection.

        The link's `owner` has already left its address. `closed` is True for a close, and False for
        a detach or a loss.
        """


def session_begun(forwarder: Core, session: Session) -> None:
    """Attach the link that a session was begun for, now that the peer has answered the begin."""
    own = session.owner
    if not isinstance(own, OwnLink):
        return
    if own.is_over:
        forwarder.idle_sessions.append(session)
        return
    if own.link is not None:
        # the link was attached before the peer answered the begin
        return
    try:
        own.link = attaching.attach(session, own.frame)
        # the attach has been sent
        own.frame = own.link.attach
    except AmqpError as error:
        if error.scope is Scope.CONNECTION:
            raise
        _is_over(forwarder, own, beginning.wire_error(error), True)


def link_attached(forwarder: Core, link: Link) -> None:
    """Call `attached` for one of the router's own links that the peer has accepted.

    An answer without the peer's terminus is a refusal (section 2.6.3).
    """
    own = link.session.owner
    if not isinstance(own, OwnLink) or own.is_over:
        return
    remote = link.remote_attach
    terminus = remote.source if isinstance(link, IncomingLink) else remote.target
    if terminus is not None and link.state == LinkState.ATTACHED:
        own.attached(forwarder)


def link_detached(forwarder: Core, event: LinkDetached) -> None:
    """Mark one of the router's own links as over, and note its session for `end_idle`."""
    own = event.link.session.owner
    if isinstance(own, OwnLink) and own.link is event.link:
        _is_over(forwarder, own, event.error, event.closed)


def session_ended(forwarder: Core, event: SessionEnded) -> None:
    """Mark the link of an ended session as over, even if it was never attached."""
    own = event.session.owner
    if isinstance(own, OwnLink):
        _is_over(forwarder, own, event.error, False)
        if own.awaits_answer:
            own.awaits_answer = False
            own.answer_lost(forwarder)


def _is_over(forwarder: Core, own: OwnLink, error: Error | None, closed: bool) -> None:
    if own.is_over:
        return
    own.is_over = True
    assert own.session is not None
    if not own.awaits_answer:
        # the detach, or the answer to one, has to leave first
        forwarder.idle_sessions.append(own.session)
    own.over(forwarder, error, closed)


def end_idle(forwarder: Core) -> None:
    """End the sessions whose links have ended; called at the end of a turn."""
    idle, forwarder.idle_sessions = forwarder.idle_sessions, []
    for session in idle:
        if session.state == SessionState.MAPPED:
            beginning.end(session)
        # a session that has not begun yet is ended once it has
