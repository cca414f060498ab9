"""Resume a receiver's link: compare the two unsettled maps, and send the transfers that are due.

Comments in this module name the fourteen cases of the example in section 3.4.6. The router can send
a message again if its octets were kept (`redelivery`). For any other message the router's unsettled
map has `ALL_OF_IT`: nothing can be sent again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

import attrs

from router.amqp.composite import Composite, encode_composite
from router.amqp.constants import Descriptor
from router.amqp.encoded import entries_of
from router.amqp.performatives import Received
from router.amqp.revision import revise
from router.core.deliveries import router_annotations, source_outcomes
from router.core.links.resuming import (
    ALL_OF_IT,
    NO_STATE,
    OUTCOMES,
    UnsettledMap,
    state_to_receiver,
)
from router.core.links.terminus import Terminus
from router.core.model import router_outcomes
from router.core.model.address import Consumer
from router.engine import flows, rare_transfers
from router.engine.blocking import block
from router.engine.deferred import ITEMS_AT_ONCE, pop_items

if TYPE_CHECKING:
    from router.core.ports import Core
    from router.engine.delivery import Delivery

# How many entries of the receiver's map, and how many deliveries, are processed in the turn of the
# attach. Reading an entry takes longer than most other steps.
COMPARED_AT_ONCE = 256
ACCEPTED = int(Descriptor.ACCEPTED)
REJECTED = int(Descriptor.REJECTED)


@attrs.frozen
class Step:
    """Transfer that is due for a delivery, with the router's `state` of the delivery.

    A delivery that the transfer settles or aborts has already been removed from the router's
    unsettled map. If the link is lost before the transfer is sent, the receiver learns from the
    router's next attach that the delivery is gone.
    """

    delivery: Delivery
    state: Composite | None = None
    settled: bool = False
    aborted: bool = False
    resends: bool = False
    """True if the message is sent again: as the same delivery if `resumes`, else as a new one."""
    resumes: bool = True


class Resumption:
    """Task that sends the transfers which a resumed receiver's link gets before new deliveries.

    Until they have been sent, the consumer is not in its address's list of consumers. If one of the
    two unsettled maps is incomplete, the resumption lasts until the link is detached. If there are
    very many deliveries, they are compared over several turns, and transfers are sent meanwhile.
    """

    def __init__(
        self, forwarder: Core, terminus: Terminus, consumer: Consumer, told: UnsettledMap
    ) -> None:
        self.terminus = terminus
        self.steps: deque[Step] = deque()
        remote = consumer.link.remote_attach
        self.is_last = not told.is_incomplete and not remote.incomplete_unsettled
        self._forwarder = forwarder
        self._consumer = consumer
        self._link = consumer.link
        # the receiver's state of each delivery
        self._theirs: dict[bytes, object] = {}
        self._told = remote.unsettled
        self._knows_all = not remote.incomplete_unsettled
        self._is_compared = not terminus.unsettled
        # whether steps are being sent, and whether that began in the current call of `go_on`
        self._is_sending = False
        self._is_in_turn = False

    def compare(self) -> None:
        """Compare the maps for all deliveries; if there are very many, partly in later turns."""
        if not self._is_compared:
            at_once = COMPARED_AT_ONCE if self._told else ITEMS_AT_ONCE
            self._forwarder.turn.deferred.process_each(
                self._tags(), self._compare, self._compared, at_once
            )

    def _tags(self) -> Iterator[bytes | None]:
        """Read the receiver's unsettled map, then yield the tags of the deliveries to compare.

        None is yielded after each entry that was read, so that reading can be interrupted there and
        continued in a later turn.
        """
        for tag, state in entries_of(self._told):
            self._theirs[tag] = state
            yield None
        self._told = None
        yield from list(self.terminus.unsettled)

    def _compare(self, tag: bytes) -> None:
        unsettled = self.terminus.unsettled
        delivery = unsettled.get(tag)
        if delivery is None or self._is_over():
            return
        if delivery.settled:
            # its sender has settled it: the receiver finds that we do not have its tag
            del unsettled[tag]
        elif tag in self._theirs:
            step = _step_of_both(self._forwarder, delivery, self._theirs[tag])
            if step.settled or step.aborted:
                del unsettled[tag]
            self.steps.append(step)
        elif self._knows_all:
            if delivery.outcome in OUTCOMES:
                delivery.address.counters.count_outcome(delivery.outcome)
                del unsettled[tag]  # case 10
            elif delivery.kept is not None:
                self.steps.append(Step(delivery, resends=True, resumes=False))  # case 1
            else:
                del unsettled[tag]  # case 5
                _give_up(self._forwarder, delivery)

    def _is_over(self) -> bool:
        """Return whether the link has ended; its terminus then keeps the remaining deliveries."""
        return self._link.is_lost() or self.terminus.link is not self._link

    def _compared(self) -> None:
        self._is_compared = True
        theirs, self._theirs = self._theirs, {}
        if len(theirs) > COMPARED_AT_ONCE:
            self._forwarder.turn.deferred.forget(pop_items(theirs))
        # in the turn of the attach it is too early to send transfers
        self._go_on_later()

    def go_on(self, forwarder: Core, consumer: Consumer) -> bool:
        """Send transfers as far as there is room; return whether new deliveries may follow."""
        link = consumer.link
        session = link.session
        current = link.current
        if current is not None:
            if current.discarded:
                # its sender's link was stolen while the window was closed
                if session.remote_incoming_window <= 0:
                    block(session, link)
                    return False
                rare_transfers.abort(current)
            elif not forwarder.backlog.send(session, current):
                return False
            else:
                _sent(forwarder, current)
            link.current = None
        if self.steps and not self._is_sending and session.can_send(link):
            self._is_sending = self._is_in_turn = True
            forwarder.turn.deferred.process_each(self._sendable(), self._send, self._paused)
            self._is_in_turn = False
        is_done = self._is_compared and not self.steps and link.current is None
        if is_done and not self.is_last and link.drain and link.credit:
            session.use_up_credit(link)
        flows.answer_drain(link)
        return is_done and self.is_last

    def _sendable(self) -> Iterator[Step]:
        """Yield the transfers that are due, as long as there is room to send them."""
        link = self._link
        while self.steps and not self._is_over() and link.session.can_send(link):
            yield self.steps.popleft()

    def _send(self, step: Step) -> None:
        is_over = step.settled or step.aborted
        if is_over or self.terminus.unsettled.pop(step.delivery.tag, None) is not None:
            _send(self._forwarder, self._consumer, step.delivery, step)

    def _paused(self) -> None:
        """Note that all transfers have been sent, or that there is no room for more."""
        self._is_sending = False
        if not self._is_in_turn:
            self._go_on_later()

    def _go_on_later(self) -> None:
        """Continue in a later turn, unless the link has ended by then."""
        consumer = self._consumer
        if consumer.resuming is self and self._link.owner is consumer:
            self._forwarder.credit_received(self._link)


def compare(
    forwarder: Core, terminus: Terminus, consumer: Consumer, told: UnsettledMap
) -> Resumption:
    """Start comparing unsettled maps for a consumer, and return its resumption."""
    resumption = Resumption(forwarder, terminus, consumer, told)
    resumption.compare()
    return resumption


def _step_of_both(forwarder: Core, delivery: Delivery, theirs: object) -> Step:
    """Return the transfer for a delivery in both maps; `theirs` is its state at the receiver."""
    code = int(getattr(theirs, "CODE", NO_STATE))
    if delivery.outcome in OUTCOMES:
        ours = state_to_receiver(delivery)
        if code in OUTCOMES and code != delivery.outcome:
            return Step(delivery, ours)  # case 13: ours is the one that counts
        delivery.address.counters.count_outcome(delivery.outcome)
        if code == delivery.outcome:
            return Step(delivery, ours, settled=True)  # case 12
        return Step(delivery, aborted=True)  # cases 11 and 14
    if isinstance(theirs, Composite) and code in OUTCOMES:
        delivery.address.counters.count_outcome(code)
        octets = b"" if theirs == OUTCOMES[code] else encode_composite(theirs)
        forwarder.settlement.settle(delivery, code, octets)
        return Step(delivery, theirs, settled=True)  # cases 3 and 8
    if delivery.kept is not None:
        return Step(delivery, resends=True)  # cases 2 and 4: from the first octet on
    if isinstance(theirs, Received) and theirs.section_number >= ALL_OF_IT.section_number:
        return Step(delivery, ALL_OF_IT)  # case 6: the receiver has everything that it needs
    _give_up(forwarder, delivery)
    return Step(delivery, aborted=True)  # cases 7 and 9


def _give_up(forwarder: Core, delivery: Delivery) -> None:
    """Settle a delivery as failed: the receiver does not have it, and it cannot be sent again."""
    delivery.address.counters.count_outcome(
        source_outcomes.settle_lost(forwarder.settlement, delivery)
    )


def _send(forwarder: Core, consumer: Consumer, delivery: Delivery, step: Step) -> None:
    link = consumer.link
    session = link.session
    delivery.started = False
    octets = b""
    # if its sender has settled it since, or is lost, its octets are no longer kept
    is_gone = step.resends and delivery.kept is None
    if is_gone and not step.resumes:
        return
    if step.resends and not is_gone:
        octets = delivery.kept.octets
        if not step.resumes:
            delivery.tag = None
            left = _revised(forwarder, delivery)
            if left is None:
                forwarder.outcomes.expired(delivery)
                forwarder.settlement.settle(delivery, REJECTED, router_outcomes.EXPIRED)
                return
            octets = left
            session.begin_outgoing(link, delivery)
            delivery.address.counters.egress += 1
            delivery.address.egress_mark += 1
    if octets and consumer.shows_passage:
        octets = router_annotations.with_annotations(consumer, delivery, octets)
    sent = 0
    if step.resumes:
        is_settled = step.settled or delivery.settled
        sent = rare_transfers.resume(
            session, link, delivery, step.state, settled=is_settled,
            aborted=step.aborted or is_gone, payload=octets,
        )  # fmt: skip
    if sent < len(octets) and session.remote_incoming_window > 0:
        sent = session.send(delivery, octets, sent, len(octets), False)
    delivery.address.counters.bytes_out += sent
    if sent < len(octets):
        block(session, link)
        link.current = delivery
        forwarder.backlog.hold(delivery, octets, sent, len(octets))
        return
    if not (step.settled or step.aborted or is_gone):
        _sent(forwarder, delivery)


def _sent(forwarder: Core, delivery: Delivery) -> None:
    """Settle a delivery that was sent in full, if its link sends everything settled."""
    if not delivery.outgoing.presettles or delivery.settled:
        return
    counters = delivery.address.counters
    if delivery.outcome in OUTCOMES:
        # its sender has been told the outcome already
        counters.count_outcome(delivery.outcome)
        return
    counters.count_outcome(ACCEPTED)
    forwarder.settlement.settle(delivery, ACCEPTED, b"")


def _revised(forwarder: Core, delivery: Delivery) -> bytes | None:
    """Return the kept octets of a delivery, with the remaining ttl; None if the ttl has run out."""
    kept = delivery.kept
    if delivery.message_format:
        octets: bytes = kept.octets
        return octets
    elapsed_ms = int((forwarder.turn.now - kept.since) * 1000)
    return revise(kept.octets, elapsed_ms, failed=False, annotations=None)
