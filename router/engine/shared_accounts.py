"""Count the sessions, links and state of several connections together, and limit them.

The connections are those of one virtual host, of one of its users, or from one host. A policy makes
each connection a member of the shared accounts that it belongs to (`router.control.policy.gate`).
Counting takes constant time for each session and link, and nothing for each message.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Final

import attrs

from router.amqp.constants import Condition
from router.errors import AmqpError, Scope

# What is refused, as `Member.denied` is told.
SESSION: Final = "session"
STATE: Final = "state"
# Error description, the same as in Dispatch, since programs compare it. The reason is only logged.
SESSION_DISALLOWED: Final = "session disallowed by local policy"
# Even a refused link is charged until its detach is answered. A connection with more than an equal
# share loses the session when all exceed the limit by this fraction (1/8), and is closed at twice
# that.
_PART_BEYOND: Final = 8


@attrs.frozen
class SharedLimits:
    """Limits of a shared account: numbers of sessions and links, and octets; 0 means no limit.

    `suffix` is the end of the names of these settings, such as `PerUser`.
    """

    sessions: int = 0
    links: int = 0
    state_bytes: int = 0
    suffix: str = ""


@attrs.frozen
class Excess:
    """Limit that is used up: the name of its `setting`, and the `reason` for operators."""

    setting: str
    reason: str


@attrs.define(eq=False)
class SharedAccount:
    """Sessions, links and octets of state of several connections together.

    `whose` names them in reasons. `on_empty` is called when there is no connection left and no
    state that outlived one.
    """

    whose: str
    limits: SharedLimits
    on_empty: Callable[[], object] = lambda: None
    connections: int = 0
    sessions: int = 0
    links: int = 0
    total: int = 0

    def excess(self, what: str, held: int, limit: int) -> Excess | None:
        """Return the limit `max{what}` if this many that are held reach it."""
        if not limit or held < limit:
            return None
        return self._excess(what, held, what.lower(), limit)

    def state_excess(self, octets: int) -> Excess | None:
        """Return the limit on state if this many octets more would exceed it."""
        limit = self.limits.state_bytes
        if not limit or self.total + octets <= limit:
            return None
        return self._excess("StateBytes", self.total, "octets of state", limit)

    def _excess(self, what: str, held: int, unit: str, limit: int) -> Excess:
        setting = f"max{what}{self.limits.suffix}"
        return Excess(setting, f"{self.whose} has {held} {unit}; {setting} is {limit}")


class Member:
    """Part of a connection in the shared accounts to which it belongs.

    `denied` is called with what was refused and with the limit that refuses it.
    """

    __slots__ = ("_accounts", "_is_there", "_links", "_sessions", "_total", "denied")

    def __init__(self, total: int, sessions: Iterable[Hashable] = (), links: int = 0) -> None:
        self._accounts: tuple[SharedAccount, ...] = ()
        self._sessions = set(sessions)
        self._links = links
        self._total = total
        self._is_there = True
        self.denied: Callable[[str, Excess], None] = lambda *_: None

    def move(self, accounts: tuple[SharedAccount, ...]) -> None:
        """Belong to these accounts from now on."""
        before, self._accounts = self._accounts, accounts
        for each in accounts:
            each.connections += 1
        self._add(accounts, len(self._sessions), self._links, self._total)
        for each in before:
            each.connections -= 1
        self._add(before, -len(self._sessions), -self._links, -self._total)

    def leave(self) -> None:
        """Take the connection away, which has ended; state that outlives it stays charged."""
        if not self._is_there:
            return
        self._is_there = False
        sessions, self._sessions = len(self._sessions), set()
        links, self._links = self._links, 0
        for each in self._accounts:
            each.connections -= 1
        self._add(self._accounts, -sessions, -links, 0)

    def charge(self, count: int) -> None:
        """Add octets of state that the connection is charged; a negative number releases them."""
        self._total += count
        self._add(self._accounts, 0, 0, count)

    def session_begun(self, session: Hashable) -> None:
        """Count a session that the peer has begun."""
        if self._is_there and session not in self._sessions:
            self._sessions.add(session)
            self._add(self._accounts, 1, 0, 0)

    def session_ended(self, session: Hashable) -> None:
        """Stop counting a session; do nothing if it is not counted."""
        if session in self._sessions:
            self._sessions.remove(session)
            self._add(self._accounts, -1, 0, 0)

    def links_changed(self, by: int) -> None:
        """Count links of the peer that are attached, or that end if `by` is negative."""
        if self._is_there:
            self._links += by
            self._add(self._accounts, 0, by, 0)

    def _add(
        self, accounts: tuple[SharedAccount, ...], sessions: int, links: int, octets: int
    ) -> None:
        for each in accounts:
            each.sessions += sessions
            each.links += links
            each.total += octets
            if not each.connections and not each.total:
                each.on_empty()

    def link_excess(self) -> Excess | None:
        """Return the limit that one more link would exceed, or None."""
        return self._first(each.excess("Links", each.links, each.limits.links)
                           for each in self._accounts)  # fmt: skip

    def session_refusal(self) -> AmqpError | None:
        """Return the error for a session that was counted as it began, or None if it may stay."""
        excess = self._first(each.excess("Sessions", each.sessions - 1, each.limits.sessions)
                             for each in self._accounts)  # fmt: skip
        if excess is None:
            return None
        self.denied(SESSION, excess)
        return AmqpError(Condition.RESOURCE_LIMIT_EXCEEDED, SESSION_DISALLOWED, Scope.SESSION)

    def state_refusal(self, count: int, scope: Scope) -> AmqpError | None:
        """Return the error for `count` octets more of state, or None if there is room.

        The error has the given scope, or a wider one for a connection with more than an equal share
        if all together are already far above the limit.
        """
        for each in self._accounts:
            excess = each.state_excess(count)
            if excess is None:
                continue
            self.denied(STATE, excess)
            limit = each.limits.state_bytes
            beyond = each.total - limit
            if self._total * max(1, each.connections) > limit:
                if beyond * _PART_BEYOND > 2 * limit:
                    scope = Scope.CONNECTION
                elif beyond * _PART_BEYOND > limit and scope is Scope.LINK:
                    scope = Scope.SESSION
            described = (
                f"links, names and other state are limited to {limit} octets ({excess.setting})"
            )
            return AmqpError(Condition.RESOURCE_LIMIT_EXCEEDED, described, scope)
        return None

    @staticmethod
    def _first(found: Iterable[Excess | None]) -> Excess | None:
        return next((each for each in found if each is not None), None)
