"""Links that are lost with their session or connection, with no detach exchanged (section 2.6).

A few are resolved in the turn in which they are lost. A connection may have had many thousands; the
rest of these follow in later turns (`deferred`). Until its turn has come a lost link counts as one
whose loss has not been noticed yet: it is on its address, and nothing can be sent by it, because
its session's outbox has no room for anything and leads nowhere.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from router.amqp.performatives import Error
from router.engine.events import LinkDetached
from router.engine.outbox import nowhere
from router.engine.states import LinkState

# So many links are resolved in the turn in which they are lost.
AT_ONCE = 64
_PRESENT = (LinkState.ATTACHED, LinkState.ATTACH_RCVD, LinkState.ATTACH_SENT)


class LostSessions:
    """The links of some sessions, which are lost one after the other; a task of `Deferred`.

    `error` is what ended them, and by whom that was; `session_over` is called after the last link
    of each session, and `over` after the last session.
    """

    def __init__(
        self,
        sessions: Iterable[Any],
        error: Error | None,
        *,
        by_peer: bool,
        session_over: Callable[[Any], None],
        over: Callable[[], None] | None = None,
    ) -> None:
        self._sessions = deque(sessions)
        self._links: deque[Any] = deque()
        self._error = error
        self._by_peer = by_peer
        self._session_over = session_over
        self._over = over
        if self._sessions:
            self._links.extend(self._sessions[0].local_links.values())

    def step(self) -> bool:
        """Lose the next link, or end the session that has none left."""
        if self._links:
            self._lose(self._links.popleft())
            return True
        if self._sessions:
            session = self._sessions.popleft()
            _forget_links(session)
            self._session_over(session)
        if self._sessions:
            self._links.extend(self._sessions[0].local_links.values())
            return True
        if self._over is not None:
            self._over()
        return False

    def defer(self) -> None:
        """Have nothing written any more for what is left, and nothing sent by its links."""
        for session in self._sessions:
            session.outbox = nowhere(session.outbox.turn)

    def _lose(self, link: Any) -> None:
        was_present = link.state in _PRESENT
        link.state = int(LinkState.DETACHED)
        if was_present:
            connection = link.session.connection
            event = LinkDetached(link, False, self._error, lost=True, by_peer=self._by_peer)
            connection.handler.event_received(connection, event)
        link.drop()
        # not all of them at once when the last is lost: what they are made of takes time to free
        session = link.session
        session.local_links.pop(link.handle, None)
        if link.remote_handle >= 0 and session.links.find(link.remote_handle) is link:
            session.links.remove(link.remote_handle)


def lose(turn: Any, lost: LostSessions, before_deferring: Callable[[], None] | None = None) -> None:
    """Lose the first of some links at once, and the others in later turns.

    `before_deferring` is called where there are others: what is still to be said is said then.
    """

    def defer() -> None:
        if before_deferring is not None:
            before_deferring()
        lost.defer()

    turn.deferred.start(lost, AT_ONCE, defer)


def _forget_links(session: Any) -> None:
    session.recent_link = None
    session.window.give_back(session.outbox.turn)
    withheld = session.connection.withheld
    if withheld.get(session.channel) is session:
        del withheld[session.channel]
    session.links.clear()
    session.local_links.clear()
    session.links_due.clear()
    session.unanswered.clear()
    session.errant.clear()
