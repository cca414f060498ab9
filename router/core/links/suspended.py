"""Suspended termini: sources and targets that outlive their links, with their deliveries.

By a timeout or an expiry-policy (section 3.5.6) a peer asks that a terminus outlives its link, so
that the link can be attached again. Until then the unsettled deliveries are kept, instead of being
resolved immediately. Two limits apply: `terminusTimeoutLimitSeconds`, and `MAX_SUSPENDED` termini
without a link.

As long as its session lasts, deliveries of a link that is merely detached stay "live": they keep
their delivery-ids, and dispositions may name them (section 2.7.6). After that they are identified
by their tags only, and called "parked". (docs/decisions/0035-suspended-links.md.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, overload

from router.amqp.constants import TerminusExpiryPolicy
from router.amqp.outcomes import MAX_KEPT_BYTES
from router.core.addresses import nodes
from router.core.addresses.link_names import LinkNames, key_of, user_of
from router.core.deliveries import source_outcomes
from router.engine.account import SUSPENDED, SUSPENDED_BYTES, link_bytes
from router.engine.deferred import THINGS_A_STEP, Deferred
from router.engine.events import LinkDetached
from router.engine.link import IncomingLink, Link, OutgoingLink
from router.engine.outbox import Turn
from router.engine.states import Settling
from router.engine.unsettled import Unsettled

if TYPE_CHECKING:
    from router.amqp.performatives import Source, Target
    from router.core.model.address import Address
    from router.core.ports import Core, MovedTerminus, Moving
    from router.engine.connection import Connection
    from router.engine.delivery import Delivery
    from router.engine.session import Session

# How many termini may be suspended: peers could suspend any number of links with new names.
MAX_SUSPENDED = 1000
# How many deliveries a sender may leave in doubt without resuming them.
MAX_UNSETTLED = 65536
# How many termini end in the turn in which they expire; each takes as long as a lost link.
EXPIRED_AT_ONCE = 2 * THINGS_A_STEP
TAG_BYTES = 8
NO_STATE = 0

Policy = TerminusExpiryPolicy
K = TypeVar("K")


class Lifetime(TypedDict, total=False):
    """Fields of a source or target that say how long it lasts."""

    expiry_policy: TerminusExpiryPolicy
    timeout: int


class Terminus:
    """Source or target of the router, with the granted expiry-policy and timeout (seconds).

    `link` is its present link, or its last one. `unsettled` are its parked deliveries, by
    delivery-tag, oldest first. `outcomes` are the outcomes of parked deliveries whose receivers
    have settled, by delivery-tag: the code, and the octets, empty for an outcome without fields.
    """

    def __init__(self, link: Link, policy: TerminusExpiryPolicy, timeout_s: int) -> None:
        self.link = link
        self.policy = policy
        self.timeout_s = timeout_s
        self.address: Address | None = None
        self.unsettled: dict[Any, Delivery] = {}
        self.outcomes: dict[Any, tuple[int, bytes]] = {}
        # when it expires, on the turn's clock; 0 while that is not known
        self.expires_at = 0.0
        # the source or target that was sent to its peer
        self.granted: Source | Target | None = None
        # whether its deliveries no longer have delivery-ids
        self.is_parked = False
        # how many tasks are parking its deliveries, and the functions to call after that
        self._parkings = 0
        self._once_parked: list[Callable[[], None]] = []
        # task that moves its deliveries to its present link, until all have been moved
        self.moving: Moving | None = None
        self._tags_made = 0
        # octets charged to its peer's account while it has no link
        self.charged = 0

    def outlives(self, event: LinkDetached | None) -> bool:
        """Return whether the terminus stays when its link ends by `event`."""
        if event is None or event.closed:
            return False
        return self.timeout_s > 0 or self.policy is not Policy.LINK_DETACH

    def new_tag(self) -> bytes:
        """Return a delivery-tag that no delivery of this terminus has had."""
        self._tags_made += 1
        return self._tags_made.to_bytes(TAG_BYTES, "big")

    def live(self) -> list[Delivery]:
        """Return the deliveries of its link that still have delivery-ids, oldest first."""
        if self.moving is not None:
            for _ in self.moving.steps:
                pass
        return self._unsettled().of_link(self.link)

    def _unsettled(self) -> Unsettled:
        session = self.link.session
        found: Unsettled = (
            session.outgoing if isinstance(self.link, OutgoingLink) else session.incoming
        )
        return found

    def park(self) -> None:
        """Take the deliveries from their session, so that they no longer have delivery-ids.

        An incomplete delivery stays in the session, because it cannot be resumed.
        """
        self.is_parked = True
        link, deliveries = self.link, self.live()
        link.session.connection.count_work(len(deliveries))
        for delivery in deliveries:
            self._park(delivery, link)

    def park_in_turns(self, deferred: Deferred, over: Callable[[], None] | None = None) -> None:
        """Park the first deliveries now and the others in later turns; then call `over`.

        Call `park` if all of them are needed before that.
        """
        self.is_parked = True
        link = self.link
        self._parkings += 1

        def parked() -> None:
            self._parkings -= 1
            if over is not None:
                over()
            if not self._parkings:
                waiting, self._once_parked = self._once_parked, []
                for act in waiting:
                    act()

        if link.unsettled:
            link.session.connection.count_work(link.unsettled)
            found = search(self, self._unsettled(), link)
            deferred.go_through(found, lambda each: self._park(each, link), parked)
        else:
            parked()

    @property
    def is_being_parked(self) -> bool:
        """Return whether its deliveries are being taken out of their session."""
        return self._parkings > 0

    def once_parked(self, act: Callable[[], None]) -> bool:
        """Call `act` when parking is finished.

        Returns False, and does nothing, if no deliveries are being parked.
        """
        if not self.is_being_parked:
            return False
        self._once_parked.append(act)
        return True

    def _park(self, delivery: Delivery, link: Link) -> None:
        """Take a delivery from the session of `link`, unless it is settled or parked by now."""
        if delivery is link.current:
            return
        if isinstance(link, OutgoingLink):
            if delivery.outgoing_open and delivery.outgoing is link:
                link.session.close_outgoing(delivery)
                self.unsettled[delivery.tag] = delivery
        elif delivery.incoming_open and delivery.incoming is link:
            link.session.close_incoming(delivery)
            self._remember(delivery)

    def _remember(self, delivery: Delivery) -> None:
        """Park a sender's unsettled delivery, unless the sender cannot resume it."""
        # the transfer that resumes the delivery sets its settle mode (section 2.7.5)
        was_told, delivery.settling = delivery.settling == Settling.TOLD, int(Settling.FIRST)
        tag = delivery.incoming_tag
        if was_told and delivery.outcome == NO_STATE:
            # the router has told the sender that there was no receiver
            return
        if delivery.address is None:
            # its sender has tried to resume it, but it is unknown here
            return
        former = self.unsettled.get(tag)
        if former is not None:
            # the sender reused the tag, so the earlier delivery cannot be resumed any more
            former.suspended = None
            self.outcomes.pop(tag, None)
        if was_told:
            self.outcomes[tag] = (delivery.outcome, delivery.outcome_octets or b"")
        delivery.suspended = self
        self.unsettled[tag] = delivery

    def settled(self, delivery: Delivery, code: int, octets: bytes) -> None:
        """Keep the outcome of a parked delivery for its sender."""
        tag = delivery.incoming_tag
        if self.unsettled.get(tag) is delivery:
            kept = bytes(octets) if len(octets) <= MAX_KEPT_BYTES else b""
            self.outcomes[tag] = (code, kept)

    def forget_all_but(self, tags: list[bytes]) -> None:
        """Forget all deliveries but these, without resolving them."""
        self.unsettled = {tag: self.unsettled[tag] for tag in tags}
        self.outcomes = {tag: self.outcomes[tag] for tag in tags if tag in self.outcomes}

    def give_up(self, forwarder: Core) -> None:
        """Resolve the parked deliveries, like those of a lost link that may not be resumed.

        If there are very many, the last ones are resolved in later turns.
        """
        if not self.unsettled:
            return
        unsettled, self.unsettled = self.unsettled, {}
        self.outcomes.clear()
        is_source = isinstance(self.link, OutgoingLink)

        def resolve(delivery: Delivery) -> None:
            if not is_source:
                delivery.suspended = None
                forwarder.settlement.sender_lost(delivery)
            elif not delivery.settled:
                outcome = source_outcomes.settle_lost(forwarder.settlement, delivery)
                delivery.address.current_counters().count_outcome(outcome)

        forwarder.turn.deferred.go_through(unsettled.values(), resolve)


def search(
    terminus: MovedTerminus | None, unsettled: Unsettled, link: Link
) -> Iterator[Delivery | None]:
    """Yield the deliveries of a link, as `Unsettled.search` does.

    Before that, the deliveries of earlier links of its terminus are moved to the link.
    """
    if terminus is not None and terminus.moving is not None:
        # not `yield from`, which would close the steps together with this generator
        for _ in terminus.moving.steps:
            yield None
    yield from unsettled.search(link)


class SuspendedTermini:
    """Termini of a router that have no link; none stays longer than `limit_s` (0: none stays).

    `next_expiry` is when to call `expire`, on the turn's clock; 0 while that is not needed.
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
        """Return the number of deliveries that are parked for links that may be resumed.

        A delivery whose outcome is known counts twice, until its sender has been told.
        """
        return sum(len(each.unsettled) + len(each.outcomes) for each in self._termini.values())

    def grant(
        self, link: Link, address: Address | None, asked: Source | Target, resumed: Terminus | None
    ) -> Terminus | None:
        """Return the terminus for a source or target that a peer requests.

        If `resumed` is given, that is the terminus, and gets the policy and timeout requested now.
        Returns None if the terminus ends with its link.
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
        """Return the policy and timeout to grant; for "never" the longest timeout."""
        policy = asked.expiry_policy
        is_ordinary = policy is Policy.SESSION_END and not asked.timeout
        if is_ordinary or not self.limit_s or not self.names.is_tracked(link):
            return Policy.LINK_DETACH, 0
        if policy is Policy.NEVER:
            return Policy.LINK_DETACH, self.limit_s
        return policy, min(asked.timeout, self.limit_s)

    def find(self, link: Link) -> Terminus | None:
        """Return the suspended terminus of a link with the name of `link`, or None."""
        return self._termini.get(key_of(link)) if self._termini else None

    @overload
    def recovered(self, link: OutgoingLink) -> Source | None: ...

    @overload
    def recovered(self, link: IncomingLink) -> Target | None: ...

    def recovered(self, link: Link) -> Source | Target | None:
        """Return the source or target of a link reattached without one (section 2.6.3)."""
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
        """Charge the peer for a terminus, or end it if the charge would exceed the limit."""
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
        """Return the terminus to end if there are too many: the oldest of the user with most."""
        greediest = max(self._by_user.values(), key=len)
        return next(iter(greediest))

    def take(self, terminus: Terminus) -> None:
        """Remove a terminus because it has a link again."""
        self._release(terminus)
        self._forget(terminus)
        terminus.expires_at = 0.0
        self.resumed += 1

    def end(self, forwarder: Core, terminus: Terminus) -> None:
        """Remove a terminus that has expired or is of no use, and resolve its deliveries."""
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
        """Park deliveries of an ended session; start the timeouts of termini that end with it."""
        for terminus in list(self._of.get(session, ())):
            if not terminus.is_parked:
                terminus.park_in_turns(self.turn.deferred)
            if terminus.policy is Policy.SESSION_END:
                self._count_down(forwarder, terminus)

    def connection_closed(self, forwarder: Core, connection: Connection) -> None:
        """Start the timeouts of termini that end with a connection, because it is closed."""
        for terminus in list(self._of.get(connection, ())):
            if terminus.policy is Policy.CONNECTION_CLOSE:
                self._count_down(forwarder, terminus)

    def expire(self, forwarder: Core) -> None:
        """End the termini that have expired; if very many have, the last ones in later turns."""
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

        self.turn.deferred.go_through(expired, end, at_once=EXPIRED_AT_ONCE)

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
    """Note the source or target that the peer is sent, for a later reattach without one."""
    if terminus is not None:
        terminus.granted = granted
