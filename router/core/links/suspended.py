"""Suspended termini: sources and targets that outlive their links, with their deliveries.

By a timeout or an expiry-policy (section 3.5.6) a peer asks that a terminus outlives its link, so
that the link can be attached again. Until then the unsettled deliveries are kept, instead of being
resolved immediately. Two limits apply: `terminusTimeoutLimitSeconds`, and `MAX_SUSPENDED` termini
without a link. (docs/decisions/0035-suspended-links.md.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, TypeVar, overload

from router.amqp.constants import TerminusExpiryPolicy
from router.core.addresses import nodes
from router.core.addresses.link_names import LinkNames, key_of, user_of
from router.core.links.azure_clients import is_recoverable
from router.core.links.terminus import Terminus
from router.engine.account import SUSPENDED, SUSPENDED_BYTES, link_bytes
from router.engine.deferred import ITEMS_PER_STEP
from router.engine.events import LinkDetached
from router.engine.link import IncomingLink, Link, OutgoingLink
from router.engine.outbox import Turn

if TYPE_CHECKING:
    from router.amqp.performatives import Source, Target
    from router.core.model.address import Address
    from router.core.ports import Core
    from router.engine.connection import Connection
    from router.engine.session import Session

# How many termini may be suspended: peers could suspend any number of links with new names.
MAX_SUSPENDED = 1000
# How many deliveries a sender may leave in doubt without resuming them.
MAX_UNSETTLED = 65536
# How many termini end in the turn in which they expire; each takes as long as a lost link.
EXPIRED_AT_ONCE = 2 * ITEMS_PER_STEP

Policy = TerminusExpiryPolicy
K = TypeVar("K")


class Lifetime(TypedDict, total=False):
    """Part of a source or target that says how long it lasts."""

    expiry_policy: TerminusExpiryPolicy
    timeout: int


class SuspendedTermini:
    """Table of a router's termini that have no link.

    Timeouts are at most `limit_s` seconds; if it is 0, no terminus is kept. `next_expiry` is when
    `expire` has to be called next, on the turn's clock; 0 if nothing is going to expire.
    """

    def __init__(self, turn: Turn, names: LinkNames, limit_s: int) -> None:
        self.turn = turn
        self.names = names
        self.limit_s = limit_s
        self.next_expiry = 0.0
        # how many links were resumed
        self.resumed = 0
        self._termini: dict[tuple[str, str, bool], Terminus] = {}
        # the same termini, by user, and by the session and connection of their last links; oldest
        # first
        self._by_user: dict[tuple[bool, str], dict[Terminus, None]] = {}
        self._of: dict[object, dict[Terminus, None]] = {}

    def __len__(self) -> int:
        return len(self._termini)

    def deliveries(self) -> int:
        """Return how many deliveries are kept for links that may be resumed.

        A delivery whose outcome is kept for its sender counts twice.
        """
        return sum(len(each.unsettled) + len(each.outcomes) for each in self._termini.values())

    def grant(
        self, link: Link, address: Address | None, asked: Source | Target, resumed: Terminus | None
    ) -> Terminus | None:
        """Return the terminus for a source or target that a peer requests.

        If the link resumes the terminus `resumed`, that terminus gets the policy and timeout that
        are requested now. Returns None if the terminus ends with its link.
        """
        policy, timeout_s = self._allowed(link, asked)
        if resumed is not None:
            resumed.policy, resumed.timeout_s = policy, timeout_s
            return resumed
        if policy is Policy.LINK_DETACH and timeout_s == 0:
            return None
        terminus = Terminus(link, policy, timeout_s)
        terminus.address = address
        return terminus

    def _allowed(self, link: Link, asked: Source | Target) -> tuple[TerminusExpiryPolicy, int]:
        """Return the expiry-policy and the timeout to grant.

        "never" is replaced by "link-detach" with the longest timeout. A terminus that may not
        outlive its link gets "link-detach" with the timeout 0.
        """
        policy = asked.expiry_policy
        is_ordinary = policy is Policy.SESSION_END and not asked.timeout
        is_possible = self.limit_s and self.names.is_tracked(link) and is_recoverable(link)
        if is_ordinary or not is_possible:
            return Policy.LINK_DETACH, 0
        if policy is Policy.NEVER:
            return Policy.LINK_DETACH, self.limit_s
        return policy, min(asked.timeout, self.limit_s)

    def find(self, link: Link) -> Terminus | None:
        """Return the suspended terminus with the link name of `link`; None if there is none."""
        return self._termini.get(key_of(link)) if self._termini else None

    @overload
    def recovered(self, link: OutgoingLink) -> Source | None: ...

    @overload
    def recovered(self, link: IncomingLink) -> Target | None: ...

    def recovered(self, link: Link) -> Source | Target | None:
        """Return the source or target granted earlier, for an attach that names none (2.6.3).

        Returns None if the link has no suspended terminus.
        """
        found = self.find(link)
        return None if found is None else found.granted

    def enter(self, forwarder: Core, terminus: Terminus, event: LinkDetached) -> None:
        """Add a terminus whose link has ended."""
        terminus.is_parked = False
        if event.lost or event.error is not None:
            terminus.park_in_turns(self.turn.deferred)
        session = terminus.link.session
        self._termini[key_of(terminus.link)] = terminus
        self._by_user.setdefault(_user(terminus), {})[terminus] = None
        for of in (session, session.connection):
            self._of.setdefault(of, {})[terminus] = None
        if terminus.policy is Policy.LINK_DETACH:
            self._count_down(forwarder, terminus)
        if key_of(terminus.link) in self._termini:
            self._charge(forwarder, terminus)
        if len(self._termini) > MAX_SUSPENDED:
            self.end(forwarder, self._one_too_many())

    def _charge(self, forwarder: Core, terminus: Terminus) -> None:
        """Charge the peer for a terminus, or end the terminus if that would exceed the limit."""
        link = terminus.link
        account = link.session.connection.account
        count = SUSPENDED_BYTES + link_bytes(link.name, (link.attach, link.remote_attach))
        refusal = account.refusal(count)
        account.charge(SUSPENDED, count)
        terminus.charged = count
        if refusal is not None:
            self.end(forwarder, terminus)

    def _release(self, terminus: Terminus) -> None:
        if terminus.charged:
            terminus.link.session.connection.account.release(SUSPENDED, terminus.charged)
            terminus.charged = 0

    def _one_too_many(self) -> Terminus:
        """Return the terminus to end if there are too many: the oldest of the user who has most."""
        greediest = max(self._by_user.values(), key=len)
        return next(iter(greediest))

    def take(self, terminus: Terminus) -> None:
        """Remove a terminus because it has a link again."""
        self._release(terminus)
        self._forget(terminus)
        terminus.expires_at = 0.0
        self.resumed += 1

    def end(self, forwarder: Core, terminus: Terminus) -> None:
        """Remove a terminus for good, and resolve its deliveries."""
        self._release(terminus)
        self._forget(terminus)
        terminus.park_in_turns(self.turn.deferred, lambda: terminus.give_up(forwarder))
        nodes.link_left(forwarder, terminus.address, terminus.link)

    def _forget(self, terminus: Terminus) -> None:
        del self._termini[key_of(terminus.link)]
        session = terminus.link.session
        _leave(self._by_user, _user(terminus), terminus)
        _leave(self._of, session, terminus)
        _leave(self._of, session.connection, terminus)

    def session_ended(self, forwarder: Core, session: Session) -> None:
        """Take the deliveries out of an ended session, and start the timeouts that begin then."""
        for terminus in list(self._of.get(session, ())):
            if not terminus.is_parked:
                terminus.park_in_turns(self.turn.deferred)
            if terminus.policy is Policy.SESSION_END:
                self._count_down(forwarder, terminus)

    def connection_closed(self, forwarder: Core, connection: Connection) -> None:
        """Start the timeouts that begin when a connection is closed."""
        for terminus in list(self._of.get(connection, ())):
            if terminus.policy is Policy.CONNECTION_CLOSE:
                self._count_down(forwarder, terminus)

    def expire(self, forwarder: Core) -> None:
        """End all expired termini; if there are very many, end the rest in later turns."""
        now = self.turn.now
        expired = []
        self.next_expiry = 0.0
        for terminus in self._termini.values():
            if not terminus.expires_at:
                continue
            if terminus.expires_at <= now:
                expired.append(terminus)
            elif not self.next_expiry or terminus.expires_at < self.next_expiry:
                self.next_expiry = terminus.expires_at

        def end(terminus: Terminus) -> None:
            # the terminus may have a link again
            if self._termini.get(key_of(terminus.link)) is terminus and terminus.expires_at:
                self.end(forwarder, terminus)

        self.turn.deferred.process_each(expired, end, at_once=EXPIRED_AT_ONCE)

    def end_all(self, forwarder: Core) -> None:
        """End all termini, because the router shuts down."""
        for terminus in list(self._termini.values()):
            self.end(forwarder, terminus)

    def _count_down(self, forwarder: Core, terminus: Terminus) -> None:
        if terminus.timeout_s == 0:
            self.end(forwarder, terminus)
            return
        terminus.expires_at = self.turn.now + terminus.timeout_s
        if not self.next_expiry or terminus.expires_at < self.next_expiry:
            self.next_expiry = terminus.expires_at


def _leave(sets: dict[K, dict[Terminus, None]], whose: K, terminus: Terminus) -> None:
    """Remove a terminus from one of several sets, and the set itself once it is empty."""
    left = sets[whose]
    del left[terminus]
    if not left:
        del sets[whose]


def _user(terminus: Terminus) -> tuple[bool, str]:
    return user_of(terminus.link.session.connection)


def lifetime(terminus: Terminus | None) -> Lifetime:
    """Return the lifetime fields of a source or target for the answer to its attach."""
    if terminus is None:
        return {"expiry_policy": Policy.LINK_DETACH}
    return {"expiry_policy": terminus.policy, "timeout": terminus.timeout_s}


def remember(terminus: Terminus | None, granted: Source | Target) -> None:
    """Keep the source or target that is sent to the peer, for a later attach that names none."""
    if terminus is not None:
        terminus.granted = granted
