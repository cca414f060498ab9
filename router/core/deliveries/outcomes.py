"""Count outcomes and delays of deliveries, for each link and each address.

Equal outcomes often follow each other, because a receiver settles a range of one sender's
deliveries that arrived in one turn. Such a run is added to all counters together, when it ends
(docs/decisions/0041). A run ends with the turn at the latest, and before any link is added or
removed.
"""

from __future__ import annotations

from typing import Protocol

from router.amqp import codes
from router.core.deliveries import sampling
from router.core.deliveries.sampling import Sampler
from router.core.model import router_outcomes
from router.core.model.address import Address
from router.engine.delivery import Delivery
from router.engine.link import IncomingLink, OutgoingLink
from router.engine.outbox import Turn


class OutcomeObserver(Protocol):
    """Observer of outcomes; each call reports one or several deliveries."""

    def settled(
        self,
        incoming: IncomingLink,
        outgoing: OutgoingLink | None,
        code: int,
        age_s: float,
        count: int,
    ) -> None:
        """Note that `count` deliveries of the link `incoming` ended with the same outcome, `code`.

        `outgoing` is the link on which they were sent, or None if they were not sent or were
        copied. `age_s` is the time since they arrived.
        """

    def expired(self, incoming: IncomingLink, address: str, count: int) -> None:
        """Note that `count` deliveries expired before a receiver got them."""


class OutcomeCounter:
    """Counter of outcomes; consecutive deliveries with equal links and outcome count at once."""

    def __init__(self, turn: Turn) -> None:
        self.turn = turn
        self.incoming: IncomingLink | None = None
        self.outgoing: OutgoingLink | None = None
        self.address: Address | None = None
        self.code = 0
        self.arrived = 0.0
        self.count = 0
        # samples deliveries and records them, while a plugin asks for that; usually None
        self.sampler: Sampler | None = None
        # called for each run of outcomes while a plugin has subscribed; usually None
        self.observer: OutcomeObserver | None = None
        # link, address and number of expired deliveries that are not reported to the observer yet
        self.expired_in: IncomingLink | None = None
        self.expired_at: Address | None = None
        self.expired_count = 0

    def count_settled(self, delivery: Delivery, code: int) -> None:
        """Count the outcome of a settled delivery, both for its receiver and for its sender."""
        if delivery.sample is not None:
            self._record(delivery, code)
        if not delivery.incoming_open:
            # no sender awaits the outcome
            self.count_for_receiver(delivery, code)
        elif (
            delivery.arrived == self.arrived
            and delivery.incoming is self.incoming
            and delivery.outgoing is self.outgoing
            and code == self.code
        ):
            self.count += 1
        else:
            self.end_run()
            self.incoming = delivery.incoming
            self.outgoing = delivery.outgoing
            self.address = delivery.address
            self.arrived = delivery.arrived
            self.code = code
            self.count = 1

    def end_run(self) -> None:
        """End the current run: add its counts to its links and address."""
        if self.expired_count:
            self._end_expired()
        count = self.count
        if count:
            self.count = 0
            incoming, outgoing, address = self.incoming, self.outgoing, self.address
            assert incoming is not None
            assert outgoing is not None
            assert address is not None
            age_s = self.turn.now - self.arrived
            counters = address.counters
            counters.count_outcome(self.code, count)
            counters.count_told(self.code, age_s, count)
            outgoing.count_outcome(self.code, count)
            incoming.count_outcome(self.code, count)
            counters.count_delay(age_s, count)
            outgoing.count_delay(age_s, count)
            incoming.count_delay(age_s, count)
            if self.observer is not None:
                self.observer.settled(incoming, outgoing, self.code, age_s, count)
            # so that links that have ended are not kept in memory; no delivery matches None
            self.incoming = None
            self.outgoing = None
            self.address = None

    def count_for_receiver(self, delivery: Delivery, code: int) -> None:
        """Count a delivery's outcome for its receiver only."""
        if delivery.sample is not None:
            self._record(delivery, code)
        address = delivery.address
        counters = address.counters
        counters.count_outcome(code)
        link = delivery.outgoing
        if link is not None:
            link.count_outcome(code, 1)
            link.count_delay(self.turn.now - delivery.arrived, 1)

    def count_for_sender(self, delivery: Delivery, code: int) -> None:
        """Count a delivery's outcome for its sender only, if the sender awaits one."""
        if delivery.sample is not None:
            self._record(delivery, code)
        if delivery.incoming_open:
            age_s = self.turn.now - delivery.arrived
            link = delivery.incoming
            link.count_outcome(code, 1)
            if self.observer is not None:
                self.observer.settled(link, delivery.outgoing, code, age_s, 1)
            if delivery.address is not None:
                address = delivery.address
                counters = address.counters
                counters.count_told(code, age_s, 1)
                counters.count_delay(age_s, 1)
                link.count_delay(age_s, 1)

    def expired(self, delivery: Delivery) -> None:
        """Count a delivery that expired before a receiver got it."""
        address = delivery.address
        counters = address.counters
        counters.expired += 1
        if self.observer is not None and delivery.incoming is not None:
            if self.expired_at is not address or self.expired_in is not delivery.incoming:
                self._end_expired()
            self.expired_in = delivery.incoming
            self.expired_at = address
            self.expired_count += 1

    def _end_expired(self) -> None:
        """Report to the observer the expired deliveries that have been counted so far."""
        link, address, count = self.expired_in, self.expired_at, self.expired_count
        self.expired_in = None
        self.expired_at = None
        self.expired_count = 0
        if count and self.observer is not None:
            assert link is not None
            assert address is not None
            self.observer.expired(link, address.name, count)

    # Sampled deliveries.

    def _record(self, delivery: Delivery, code: int) -> None:
        """Record the outcome that the receiver of a sampled delivery gave."""
        if self.sampler is not None:
            self.sampler.ended(delivery, code, sampling.RECEIVER, None)

    def record_own_outcome(self, delivery: Delivery, code: int, state: bytes) -> None:
        """Record an outcome that the router itself has decided for a sampled delivery.

        `accepted` is recorded as decided by the receiver, because the router uses it only for
        messages that it has sent to a receiver as settled.
        """
        if self.sampler is None:
            return
        if code == codes.ACCEPTED:
            self.sampler.ended(delivery, code, sampling.RECEIVER, None)
        else:
            self.sampler.ended(delivery, code, sampling.ROUTER, router_outcomes.reason(code, state))

    def aborted(self, delivery: Delivery) -> None:
        """Record that the remaining frames of a sampled delivery will not arrive."""
        if delivery.sample is not None and self.sampler is not None:
            self.sampler.ended(delivery, sampling.ABORTED, sampling.NOBODY, None)
