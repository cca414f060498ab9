"""Terminus that may outlive its link, with its unsettled deliveries.

While its session lasts, deliveries of a link that is merely detached stay "live": they keep their
delivery-ids, and dispositions may name them (section 2.7.6). After that they are identified by
their tags only, and called "parked". (docs/decisions/0035-suspended-links.md.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from router.amqp.constants import TerminusExpiryPolicy
from router.amqp.outcomes import MAX_KEPT_BYTES
from router.core.deliveries import source_outcomes
from router.engine.deferred import Deferred
from router.engine.events import LinkDetached
from router.engine.link import Link, OutgoingLink
from router.engine.states import Settling
from router.engine.unsettled import Unsettled

if TYPE_CHECKING:
    from router.amqp.performatives import Source, Target
    from router.core.model.address import Address
    from router.core.ports import Core, MovedTerminus, Moving
    from router.engine.delivery import Delivery

TAG_BYTES = 8
NO_STATE = 0


class Terminus:
    """Source or target of the router, with the granted expiry-policy and timeout (seconds).

    `link` is its present or last link. `unsettled` holds its parked deliveries by delivery-tag,
    oldest first. `outcomes` holds, by delivery-tag, the outcomes of parked deliveries that
    receivers have settled. Each of them is a code and an encoded state, which is empty for an
    outcome without fields.
    """

    def __init__(self, link: Link, policy: TerminusExpiryPolicy, timeout_s: int) -> None:
        self.link = link
        self.policy = policy
        self.timeout_s = timeout_s
        self.address: Address | None = None
        self.unsettled: dict[Any, Delivery] = {}
        self.outcomes: dict[Any, tuple[int, bytes]] = {}
        # deliveries whose sender has reused their tag, so that it cannot resume them
        self._superseded: list[Delivery] = []
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
        """Return whether the terminus outlives its link, which has ended as `event` says."""
        if event is None or event.closed:
            return False
        return self.timeout_s > 0 or self.policy is not TerminusExpiryPolicy.LINK_DETACH

    def new_tag(self) -> bytes:
        """Return a delivery-tag that no delivery of this terminus has had."""
        self._tags_made += 1
        return self._tags_made.to_bytes(TAG_BYTES, "big")

    def live(self) -> list[Delivery]:
        """Return the deliveries of the present link that still have delivery-ids, oldest first."""
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
        """Remove the deliveries from their session, so that they no longer have delivery-ids.

        An incomplete delivery stays in the session, because it cannot be resumed.
        """
        self.is_parked = True
        link, deliveries = self.link, self.live()
        link.session.connection.deduct_work(len(deliveries))
        for delivery in deliveries:
            self._park(delivery, link)

    def park_in_turns(self, deferred: Deferred, over: Callable[[], None] | None = None) -> None:
        """Do the work of `park` for the first deliveries now, and for the others in later turns.

        Then call `over`.
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
            link.session.connection.deduct_work(link.unsettled)
            found = search(self, self._unsettled(), link)
            deferred.process_each(found, lambda each: self._park(each, link), parked)
        else:
            parked()

    @property
    def is_being_parked(self) -> bool:
        """Return whether `park_in_turns` has begun and is not finished yet."""
        return self._parkings > 0

    def once_parked(self, act: Callable[[], None]) -> bool:
        """Call `act` when `park_in_turns` is finished.

        Returns False, and does nothing, if it is not running.
        """
        if not self.is_being_parked:
            return False
        self._once_parked.append(act)
        return True

    def _park(self, delivery: Delivery, link: Link) -> None:
        """Take a delivery out of the session of `link`, unless it has left the session by now."""
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
        """Keep a sender's unsettled delivery by its tag, unless the sender cannot resume it."""
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
            former.suspended = None
            self._superseded.append(former)
            self.outcomes.pop(tag, None)
        if was_told:
            self.outcomes[tag] = (delivery.outcome, delivery.outcome_octets or b"")
        delivery.suspended = self
        self.unsettled[tag] = delivery

    def settled(self, delivery: Delivery, code: int, octets: bytes) -> None:
        """Keep the outcome of a delivery that its sender may resume."""
        tag = delivery.incoming_tag
        if self.unsettled.get(tag) is delivery:
            kept = bytes(octets) if len(octets) <= MAX_KEPT_BYTES else b""
            self.outcomes[tag] = (code, kept)

    def forget_all_but(self, tags: list[bytes]) -> None:
        """Forget all deliveries except those with these tags, without resolving them."""
        self.unsettled = {tag: self.unsettled[tag] for tag in tags}
        self.outcomes = {tag: self.outcomes[tag] for tag in tags if tag in self.outcomes}

    def settle_superseded(self, forwarder: Core) -> None:
        """Settle, for their receivers, deliveries whose tags the sender has reused.

        If there are very many, the last ones are settled in later turns.
        """
        superseded, self._superseded = self._superseded, []
        if superseded:
            forwarder.turn.deferred.process_each(superseded, forwarder.settlement.sender_lost)

    def give_up(self, forwarder: Core) -> None:
        """Resolve the parked deliveries, like those of a lost link that may not be resumed.

        If there are very many, the last ones are resolved in later turns.
        """
        self.settle_superseded(forwarder)
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

        forwarder.turn.deferred.process_each(unsettled.values(), resolve)


def search(
    terminus: MovedTerminus | None, unsettled: Unsettled, link: Link
) -> Iterator[Delivery | None]:
    """Yield the deliveries of a link, as `Unsettled.search` does.

    The deliveries of the terminus's earlier links are moved to the link first.
    """
    if terminus is not None and terminus.moving is not None:
        # not `yield from`, which would close the steps together with this generator
        for _ in terminus.moving.steps:
            yield None
    yield from unsettled.search(link)
