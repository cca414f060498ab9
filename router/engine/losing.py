"""End links that are lost with their session or connection, without a detach (section 2.6).

A connection may have many thousands of links, and many connections may be lost in one round of the
event loop. So the first links are ended in the turn of the loss, and the others in later turns
(`deferred`). Until then, a lost link still belongs to its address. But nothing can be sent on it,
because its session's outbox has no room.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from router.amqp.performatives import Error
from router.engine.events import LinkDetached
from router.engine.link import IncomingLink, Link
from router.engine.outbox import Outbox, Turn, null_outbox
from router.engine.states import LinkState

if TYPE_CHECKING:
    from router.engine.session import Session

# How many links are ended in the turn in which they are lost, at most.
AT_ONCE = 64
# How many handles one step tries in search of the next link.
HANDLES_A_STEP = 256
_PRESENT = (LinkState.ATTACHED, LinkState.ATTACH_RCVD, LinkState.ATTACH_SENT)


class LostSessions:
    """Deferred task that ends the links of some lost sessions, one after the other.

    `error` is the error that ended the sessions, and `by_peer` says whether the peer ended them.
    `session_over` is called after the last link of each session, and `over` after the last session.
    """

    def __init__(
        self,
        turn: Turn,
        sessions: Iterable[Session],
        error: Error | None,
        *,
        by_peer: bool,
        session_over: Callable[[Session], None],
        over: Callable[[], None] | None = None,
    ) -> None:
        self._turn = turn
        self._null_outbox: Outbox | None = None
        self._sessions = deque(sessions)
        # the lowest handle that the first session's next link may have
        self._handle = 0
        self._error = error
        self._by_peer = by_peer
        self._session_over = session_over
        self._over = over

    def start(self, before_deferring: Callable[[], None] | None = None) -> None:
        """End the first links immediately, and the others in later turns.

        If links are left for later turns, `before_deferring` is called first, to write the last
        frames to the peer.
        """

        def defer() -> None:
            if before_deferring is not None:
                before_deferring()
            self.defer()

        self._turn.deferred.start(self, AT_ONCE, defer)

    def step(self) -> bool:
        """End the next link, or a session without links; return whether anything is left to do."""
        if self._sessions and self._sessions[0].local_links:
            self._lose_next(self._sessions[0])
            return True
        if self._sessions:
            self._handle = 0
            session = self._sessions.popleft()
            _forget_links(session)
            self._session_over(session)
            # the core may settle deliveries of these links later; that must write nothing
            session.outbox = self._outbox()
        if self._sessions:
            return True
        if self._over is not None:
            self._over()
        return False

    def defer(self) -> None:
        """Give the remaining sessions an outbox that is never sent, so that they send nothing."""
        outbox = self._outbox()
        for session in self._sessions:
            session.outbox = outbox

    def _outbox(self) -> Outbox:
        """Return the outbox without room that these lost sessions share."""
        if self._null_outbox is None:
            self._null_outbox = null_outbox(self._turn)
        return self._null_outbox

    def _lose_next(self, session: Session) -> None:
        """End the link with the next handle in use; try at most `HANDLES_A_STEP` handles."""
        # just making a list of so many links would take long
        for _ in range(HANDLES_A_STEP):
            link = session.local_links.get(self._handle)
            self._handle += 1
            if link is not None:
                self._lose(link)
                break

    def _lose(self, link: Link) -> None:
        was_present = link.state in _PRESENT
        link.state = int(LinkState.DETACHED)
        if was_present:
            connection = link.session.connection
            event = LinkDetached(link, False, self._error, lost=True, by_peer=self._by_peer)
            connection.handler.event_received(connection, event)
        link.drop()
        # freed one by one, because freeing all of them together at the end would take long
        session: Session = link.session
        session.local_links.pop(link.handle, None)
        session.errant.pop((link.name, isinstance(link, IncomingLink)), None)
        if link.remote_handle >= 0 and session.links.find(link.remote_handle) is link:
            session.links.remove(link.remote_handle)


def _forget_links(session: Session) -> None:
    session.recent_link = None
    session.window.give_back(session.outbox.turn)
    delayed_windows = session.connection.delayed_windows
    if delayed_windows.get(session.channel) is session:
        del delayed_windows[session.channel]
    session.links.clear()
    session.local_links.clear()
    session.links_due.clear()
    session.unanswered.clear()
    session.errant.clear()
    session.late_handles = None
