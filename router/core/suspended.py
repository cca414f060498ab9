"""Termini that outlive their links: what they remember of deliveries, and for how long.

A peer that asks for it, by a timeout or an expiry-policy (section 3.5.6), may detach a link, or
lose it with its session or connection, and attach it again: until then what it had not settled is
kept as it is, where otherwise it would be resolved at once. It is bounded: in time, by
`terminusTimeoutLimitSeconds`, and by how many termini may be without a link at once.

As long as its session lasts, deliveries of a link that is merely detached stay "live": they keep
their delivery-ids, and dispositions may name them (section 2.7.6). After that only their tags are
left. (docs/decisions/0035-suspended-links.md.)
"""

from __future__ import annotations

from typing import Any

from router.amqp.constants import TerminusExpiryPolicy
from router.core import nodes, terms
from router.core.link_names import LinkNames, key_of, user_of
from router.engine.account import SUSPENDED, SUSPENDED_BYTES, link_bytes
from router.engine.events import LinkDetached
from router.engine.link import Link, OutgoingLink
from router.engine.outbox import Turn
from router.engine.states import Settling

# A peer may attach under one name after the other, and leave each of them suspended.
MAX_SUSPENDED = 1000
# A sender may leave so many deliveries in doubt that it does not resume.
MAX_UNSETTLED = 65536
TAG_BYTES = 8
NO_STATE = 0
EMPTY = b""

Policy = TerminusExpiryPolicy


class Terminus:
    """A source or target of ours, with the policy and the timeout (seconds) that were granted.

    `link` is the one that it is attached by, or was last. `unsettled` are the deliveries that have
    no delivery-id while there is none, by delivery-tag, oldest first; `outcomes` the states of
    those that have been settled by their receivers meanwhile: (code, octets; empty without fields).
    """

    def __init__(self, link: Link, policy: TerminusExpiryPolicy, timeout_s: int) -> None:
        self.link = link
        self.policy = policy
        self.timeout_s = timeout_s
        self.address: Any = None
        self.unsettled: dict[bytes, Any] = {}
        self.outcomes: dict[bytes, tuple[int, bytes]] = {}
        # when it expires, once that can be said; 0 until then
        self.expires_at = 0.0
        # the source or target as its peer was told of it
        self.granted: Any = None
        # its deliveries have no delivery-ids any more
        self.is_parked = False
        self._tags_made = 0
        # what its peer is charged for it as long as it has no link, in octets
        self.charged = 0

    def outlives(self, event: LinkDetached | None) -> bool:
        """Whether it stays when its link goes like that."""
        if event is None or event.closed:
            return False
        return self.timeout_s > 0 or self.policy is not Policy.LINK_DETACH

    def new_tag(self) -> bytes:
        """A delivery-tag that no delivery of this terminus has had."""
        self._tags_made += 1
        return self._tags_made.to_bytes(TAG_BYTES, "big")

    def live(self) -> list[Any]:
        """The deliveries of its link that still have a delivery-id, oldest first."""
        session = self.link.session
        is_source = isinstance(self.link, OutgoingLink)
        found: list[Any] = (session.outgoing if is_source else session.incoming).of_link(self.link)
        return found

    def park(self) -> None:
        """Take the deliveries from the session that they had delivery-ids of.

        The one that is half way is left where it is: it cannot be resumed.
        """
        link, session = self.link, self.link.session
        self.is_parked = True
        deliveries = self.live()
        session.connection.count_work(len(deliveries))
        for delivery in deliveries:
            if delivery is link.current:
                continue
            if isinstance(link, OutgoingLink):
                session.close_outgoing(delivery)
                self.unsettled[delivery.tag] = delivery
            else:
                session.close_incoming(delivery)
                self._remember(delivery)

    def _remember(self, delivery: Any) -> None:
        """What came from a sender and is not settled; the mode of its link is (section 2.7.5)."""
        was_told, delivery.settling = delivery.settling == Settling.TOLD, int(Settling.FIRST)
        tag = delivery.incoming_tag
        if was_told and delivery.outcome == NO_STATE:
            # there is no receiver, and the sender has the router's own word for that
            return
        if delivery.address is None:
            # its sender resumed what is not known here: of that there is nothing
            return
        former = self.unsettled.get(tag)
        if former is not None:
            # whose tag should not have been used again: nobody can resume it any more
            former.suspended = None
            self.outcomes.pop(tag, None)
        if was_told:
            self.outcomes[tag] = (delivery.outcome, delivery.outcome_octets or EMPTY)
        delivery.suspended = self
        self.unsettled[tag] = delivery

    def settled(self, delivery: Any, code: int, octets: Any) -> None:
        """A delivery's outcome is known, and nobody is there to hear of it."""
        kept = bytes(octets) if len(octets) <= terms.MAX_KEPT_BYTES else EMPTY
        self.outcomes[delivery.incoming_tag] = (code, kept)

    def give_up(self, forwarder: Any) -> None:
        """Resolve what nobody will resume, as when a link is lost that may not be resumed."""
        unsettled, self.unsettled = self.unsettled, {}
        self.outcomes.clear()
        for delivery in unsettled.values():
            if isinstance(self.link, OutgoingLink):
                if not delivery.settled:
                    counters = delivery.address.counters
                    counters.count_outcome(terms.settle_lost(forwarder, delivery))
            else:
                delivery.suspended = None
                forwarder.sender_lost(delivery)


class Suspended:
    """The termini of a router that have no link; none stays longer than `limit_s`, 0 is not at all.

    `next_expiry` is when to call `expire`, in the turn's time; 0 while that is not needed.
    """

    def __init__(self, turn: Turn, names: LinkNames, limit_s: int) -> None:
        self.turn = turn
        self.names = names
        self.limit_s = limit_s
        self.next_expiry = 0.0
        # links that were taken up again
        self.resumed = 0
        self._termini: dict[tuple[str, str, bool], Terminus] = {}
        # the same by their users, the oldest first
        self._by_user: dict[tuple[bool, str], dict[Terminus, None]] = {}

    def __len__(self) -> int:
        return len(self._termini)

    def deliveries(self) -> int:
        """How many deliveries are remembered that no session knows, for links that may come back.

        One whose outcome is known counts once more, until its sender has heard it.
        """
        return sum(len(each.unsettled) + len(each.outcomes) for each in self._termini.values())

    def grant(
        self, link: Link, address: Any, asked: Any, resumed: Terminus | None
    ) -> Terminus | None:
        """What a peer that asks for this source or target gets; None where it ends with its link.

        That is the terminus that is resumed, if one is, with what is asked for now.
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

    def _allowed(self, link: Link, asked: Any) -> tuple[TerminusExpiryPolicy, int]:
        """The policy and the timeout that can be had; instead of "never", the longest there is."""
        policy = asked.expiry_policy
        is_ordinary = policy is Policy.SESSION_END and not asked.timeout
        if is_ordinary or not self.limit_s or not self.names.knows(link):
            return Policy.LINK_DETACH, 0
        if policy is Policy.NEVER:
            return Policy.LINK_DETACH, self.limit_s
        return policy, min(asked.timeout, self.limit_s)

    def find(self, link: Link) -> Terminus | None:
        """The terminus without a link whose name `link` has."""
        return self._termini.get(key_of(link)) if self._termini else None

    def recovered(self, link: Link) -> Any:
        """The source or target of a link that is attached again without one (section 2.6.3)."""
        found = self.find(link)
        return None if found is None else found.granted

    def enter(self, forwarder: Any, terminus: Terminus, event: LinkDetached) -> None:
        """Its link has gone, and it stays."""
        terminus.is_parked = False
        if event.lost or event.error is not None:
            terminus.park()
        self._termini[key_of(terminus.link)] = terminus
        self._by_user.setdefault(_user(terminus), {})[terminus] = None
        if terminus.policy is Policy.LINK_DETACH:
            self._count_down(forwarder, terminus)
        if key_of(terminus.link) in self._termini:
            self._charge(forwarder, terminus)
        if len(self._termini) > MAX_SUSPENDED:
            self.end(forwarder, self._one_too_many())

    def _charge(self, forwarder: Any, terminus: Terminus) -> None:
        """Charge the peer for a terminus, or end it where that would be too much."""
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
        """The oldest of the user who has most: nobody makes room for somebody else."""
        greediest = max(self._by_user.values(), key=len)
        return next(iter(greediest))

    def take(self, terminus: Terminus) -> None:
        """It has a link again."""
        self._release(terminus)
        self._forget(terminus)
        terminus.expires_at = 0.0
        self.resumed += 1

    def end(self, forwarder: Any, terminus: Terminus) -> None:
        """It expires, or is of no use any more."""
        self._release(terminus)
        self._forget(terminus)
        terminus.park()
        terminus.give_up(forwarder)
        nodes.left(forwarder, terminus.address, terminus.link)

    def _forget(self, terminus: Terminus) -> None:
        del self._termini[key_of(terminus.link)]
        user = _user(terminus)
        del self._by_user[user][terminus]
        if not self._by_user[user]:
            del self._by_user[user]

    def session_ended(self, forwarder: Any, session: Any) -> None:
        """Delivery-ids of that session mean nothing any more."""
        for terminus in self._of(lambda link: link.session is session):
            terminus.park()
            if terminus.policy is Policy.SESSION_END:
                self._count_down(forwarder, terminus)

    def connection_closed(self, forwarder: Any, connection: Any) -> None:
        """A connection is over, and its sessions before it."""
        for terminus in self._of(lambda link: link.session.connection is connection):
            if terminus.policy is Policy.CONNECTION_CLOSE:
                self._count_down(forwarder, terminus)

    def expire(self, forwarder: Any) -> None:
        """End what has expired by now."""
        now = self.turn.now
        for terminus in list(self._termini.values()):
            if terminus.expires_at and terminus.expires_at <= now:
                self.end(forwarder, terminus)
        pending = [each.expires_at for each in self._termini.values() if each.expires_at]
        self.next_expiry = min(pending, default=0.0)

    def end_all(self, forwarder: Any) -> None:
        """The router shuts down, and remembers nothing."""
        for terminus in list(self._termini.values()):
            self.end(forwarder, terminus)

    def _of(self, is_meant: Any) -> list[Terminus]:
        return [each for each in self._termini.values() if is_meant(each.link)]

    def _count_down(self, forwarder: Any, terminus: Terminus) -> None:
        if terminus.timeout_s == 0:
            self.end(forwarder, terminus)
            return
        terminus.expires_at = self.turn.now + terminus.timeout_s
        if not self.next_expiry or terminus.expires_at < self.next_expiry:
            self.next_expiry = terminus.expires_at


def _user(terminus: Terminus) -> tuple[bool, str]:
    return user_of(terminus.link.session.connection)


def lifetime(terminus: Terminus | None) -> dict[str, Any]:
    """What to answer of a source or target that outlives its link, or does not."""
    if terminus is None:
        return {"expiry_policy": Policy.LINK_DETACH}
    return {"expiry_policy": terminus.policy, "timeout": terminus.timeout_s}


def remember(terminus: Terminus | None, granted: Any) -> None:
    """This is what the peer is told of a terminus."""
    if terminus is not None:
        terminus.granted = granted
