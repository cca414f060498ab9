"""Settlement: pass on dispositions between receivers and senders, and merge outcomes.

A receiver's delivery state is passed to the sender octet for octet; the router chooses an outcome
itself only if no receiver can (no destination, a lost link, an expired ttl). The outcomes of a
multicast's receivers are merged into one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from router.amqp import codes
from router.amqp.constants import Condition
from router.amqp.outcomes import MAX_KEPT_BYTES, kept_state
from router.amqp.reading_disposition import DispositionFrame
from router.core.deliveries import source_outcomes
from router.core.forwarding import settling_copies
from router.core.forwarding.credit_sharing import CreditSharing
from router.core.model import router_outcomes
from router.core.model.address import HERE, Producer
from router.engine.delivery import Delivery
from router.engine.link import IncomingLink
from router.engine.states import Settling
from router.errors import AmqpError, Scope

if TYPE_CHECKING:
    from router.core.ports import Core

TOLD = int(Settling.TOLD)
ROUTED = int(Settling.ROUTED)
FIRST = int(Settling.FIRST)
NULL = b"\x40"
# How many receivers get a sender's disposition in one turn; the rest follow (`settling_copies`).
COPIES_AT_ONCE = 512


class Settler:
    """Part of the core that settles deliveries with their senders and receivers.

    The engine calls it, through the forwarder, with the dispositions of peers. The rest of core
    calls `settle` and similar methods for outcomes that the router itself decides on.
    """

    def __init__(self, core: Core, credit: CreditSharing) -> None:
        self.core = core
        self.turn = core.turn
        self.redelivery = core.redelivery
        self.outcomes = core.outcomes
        self.credit = credit

    def outcome_received(self, delivery: Delivery, frame: DispositionFrame) -> None:
        """Pass a receiver's disposition of a delivery to its sender."""
        outgoing = delivery.outgoing
        if outgoing.outcome_terms is not None and source_outcomes.apply_terms(
            self, delivery, frame
        ):
            return
        if delivery.kept is not None and self.redelivery.handle_disposition(
            self.core, delivery, frame
        ):
            return
        count = 0 if frame.plain else frame.state_end - frame.state_at
        if delivery.settling:
            if delivery.settling == ROUTED:
                self._pass_on(delivery, frame, count)
            else:
                self._told_second(delivery, frame, count)
            return
        if not frame.settled:
            self._told_unsettled(delivery, frame, count)
            return
        if delivery.parent is not None:
            self.outcomes.count_for_receiver(delivery, frame.state_code)
            self._copy_settled(delivery, frame, count)
            return
        self.outcomes.count_settled(delivery, frame.state_code)
        self._tell_settled(delivery, frame, count)

    def _tell_settled(self, delivery: Delivery, frame: DispositionFrame, count: int) -> None:
        link = delivery.incoming
        session = link.session
        delivery.outcome = frame.state_code
        if link.returned_as is not None and codes.RELEASED <= frame.state_code <= codes.MODIFIED:
            state = link.returned_as
            session.send_state_to_sender(delivery, True, codes.REJECTED, state, 0, len(state))
        elif count == 0:
            session.settle_with_code(delivery, frame.state_code)
        else:
            session.send_state_to_sender(
                delivery, True, frame.state_code, frame.octets, frame.state_at, count
            )
        if link.credit == 0:
            self.note_sender(link)

    def _pass_on(self, delivery: Delivery, frame: DispositionFrame, count: int) -> None:
        """Pass a disposition from one end of a routed link to the other, unchanged."""
        code = frame.state_code
        if frame.settled:
            self.outcomes.count_settled(delivery, code)
        elif not delivery.incoming_open or self._is_old_news(delivery, frame):
            return
        delivery.outcome = code
        link = delivery.incoming
        session = link.session
        session.send_state_to_sender(
            delivery, frame.settled, code, frame.octets, frame.state_at, count
        )

    def _told_unsettled(self, delivery: Delivery, frame: DispositionFrame, count: int) -> None:
        """Handle an unsettled disposition of a receiver.

        If it has an outcome, the router settles with the receiver immediately. If it has another
        state, this state is passed to the sender.
        """
        is_outcome = codes.ACCEPTED <= frame.state_code <= codes.MODIFIED
        if is_outcome:
            self._settle_receiver(delivery, frame, count)
        if delivery.parent is not None:
            if is_outcome:
                self._copy_settled(delivery, frame, count)
        elif is_outcome:
            self.outcomes.count_for_sender(delivery, frame.state_code)
            self._tell_settled(delivery, frame, count)
        elif delivery.incoming_open and not self._is_old_news(delivery, frame):
            delivery.outcome = frame.state_code
            session = delivery.incoming.session
            session.send_state_to_sender(
                delivery, False, frame.state_code, frame.octets, frame.state_at, count
            )

    def _is_old_news(self, delivery: Delivery, frame: DispositionFrame) -> bool:
        """Return whether to withhold a state, which is not an outcome, from a congested sender.

        It is withheld if it is `received` or was passed on before. Otherwise a receiver could fill
        the senders' outputs by repeating a state for very many deliveries.
        """
        session = delivery.incoming.session
        return session.outbox.congested and (
            frame.state_code == codes.RECEIVED or frame.state_code <= delivery.outcome
        )

    def _told_second(self, delivery: Delivery, frame: DispositionFrame, count: int) -> None:
        """Handle a disposition for a delivery whose sender settles first (rcv-settle-mode second).

        The disposition is passed to the sender unsettled, whether the receiver has settled or not.
        If the receiver has not settled, the router settles with it when the sender settles.
        """
        code = frame.state_code
        is_outcome = codes.ACCEPTED <= code <= codes.MODIFIED
        was_told = codes.ACCEPTED <= delivery.outcome <= codes.MODIFIED
        counters = delivery.address.counters
        if is_outcome and was_told and code != delivery.outcome:
            if frame.settled:
                counters.count_outcome(delivery.outcome)
            link = delivery.outgoing
            error = AmqpError(
                Condition.ILLEGAL_STATE,
                "the outcome differs from the one in an earlier disposition of this delivery",
                Scope.LINK,
            )
            link.session.connection.fail_link(link, error)
            return
        if not delivery.incoming_open or (delivery.settling == TOLD and not was_told):
            # nothing else will settle it: its sender is lost, or got the router's own outcome
            if frame.settled:
                self.outcomes.count_for_receiver(delivery, code)
            else:
                self._settle_receiver(delivery, frame, count)
            return
        if was_told:
            if frame.settled:
                self.outcomes.count_for_receiver(delivery, code if is_outcome else delivery.outcome)
            return
        if frame.settled:
            if code == codes.NO_STATE or code == codes.RECEIVED:
                # Its outcome stays unknown, and the router may not settle first.
                counters.count_outcome(self.settle_lost(delivery))
                return
            self.outcomes.count_for_receiver(delivery, code)
        elif not is_outcome and self._is_old_news(delivery, frame):
            return
        delivery.outcome = code
        # for the unsettled maps of resumed links
        delivery.outcome_octets = None
        if 0 < count <= MAX_KEPT_BYTES:
            octets = memoryview(frame.octets)[frame.state_at : frame.state_end]
            delivery.outcome_octets = bytes(octets)
        if is_outcome or frame.settled:
            self.outcomes.count_for_sender(delivery, code)
            delivery.settling = TOLD
        session = delivery.incoming.session
        session.send_state_to_sender(delivery, False, code, frame.octets, frame.state_at, count)

    def _copy_settled(self, copy: Delivery, frame: DispositionFrame, count: int) -> None:
        """Merge the outcome of one receiver of a multicast into the outcome of the message."""
        if count and count > MAX_KEPT_BYTES and copy.parent.open_copies > 1:
            # the state is too large to be kept until the other receivers have settled
            count = 0
        state = b""
        if count:
            state = bytes(memoryview(frame.octets)[frame.state_at : frame.state_at + count])
        self.merge(copy, frame.state_code, state)

    def _settle_receiver(self, delivery: Delivery, frame: DispositionFrame, count: int) -> None:
        """Settle a delivery with its receiver if the disposition has an outcome."""
        if codes.ACCEPTED <= frame.state_code <= codes.MODIFIED:
            self.outcomes.count_for_receiver(delivery, frame.state_code)
            link = delivery.outgoing
            if link.omits_errors and frame.state_code == codes.REJECTED:
                count = 0
            session = link.session
            session.send_state_to_receiver(
                delivery, True, frame.state_code, frame.octets, frame.state_at, count
            )

    def note_sender(self, link: IncomingLink) -> None:
        """Mark a sender for a credit check at the end of the turn."""
        producer = link.owner
        if producer is not None:
            self.credit.note(producer.address, producer)

    def settle(self, delivery: Delivery, code: int, state: bytes) -> None:
        """Settle a delivery with its sender, with an outcome that the router decided on.

        `state` is empty if the outcome has no fields.
        """
        if delivery.sample is not None:
            self.outcomes.record_own_outcome(delivery, code, state)
        if delivery.kept is not None:
            self.redelivery.drop(delivery)
        if delivery.parent is not None:
            self.merge(delivery, code, state)
            return
        link = delivery.incoming
        session = link.session
        if delivery.settling:
            if delivery.settling != TOLD:
                delivery.settling = TOLD
                if code == codes.NO_STATE:
                    # the sender awaits an outcome, and no other is known
                    code, state = codes.MODIFIED, router_outcomes.DELIVERY_FAILED
                self.outcomes.count_for_sender(delivery, code)
                session.send_state_to_sender(delivery, False, code, state, 0, len(state))
            return
        self.outcomes.count_for_sender(delivery, code)
        if link.returned_as is not None and codes.RELEASED <= code <= codes.MODIFIED:
            code, state = codes.REJECTED, link.returned_as
        if state:
            session.send_state_to_sender(delivery, True, code, state, 0, len(state))
        else:
            session.settle_with_code(delivery, code)
        if link.credit == 0:
            self.note_sender(link)

    def settle_lost(self, delivery: Delivery) -> int:
        """Settle a delivery that was sent, but whose receiver will send no more dispositions.

        The outcome is modified with delivery-failed, unless the sender has already got another
        outcome. Return the code of the outcome.
        """
        if delivery.kept is not None:
            self.redelivery.drop(delivery)
        if delivery.settling == TOLD and codes.ACCEPTED <= delivery.outcome <= codes.MODIFIED:
            return delivery.outcome
        self.settle(delivery, codes.MODIFIED, router_outcomes.DELIVERY_FAILED)
        return codes.MODIFIED

    def sender_lost(self, delivery: Delivery) -> None:
        """Settle a delivery with its receiver, because its sender can no longer settle it.

        If the receiver has not sent an outcome yet, the delivery is settled when it does.
        """
        if delivery.kept is not None:
            self.redelivery.drop(delivery)
        if delivery.outgoing_open and codes.ACCEPTED <= delivery.outcome <= codes.MODIFIED:
            self.outcomes.count_for_receiver(delivery, delivery.outcome)
            session = delivery.outgoing.session
            session.send_state_to_receiver(delivery, True, codes.NO_STATE, b"", 0, 0)

    def merge(self, copy: Delivery, code: int, state: bytes) -> None:
        """Merge a copy's outcome into that of its message; the last copy settles the message.

        If the outcomes differ, the first in this order counts: rejected, lost between routers,
        accepted, modified, released. For the messages of a batch, `router_outcomes.worse_of` says
        which one counts.
        """
        parent = copy.parent
        copy.parent = None
        parent.open_copies -= 1
        if parent.is_batch and parent.open_copies and len(state) > MAX_KEPT_BYTES:
            # the state is too large to be kept until the other messages are settled
            state = b""
        # the first copy always counts, as it may have been settled without an outcome
        if parent.outcome_octets is None:
            parent.outcome = code
            parent.outcome_octets = state
        elif parent.is_batch:
            parent.outcome, parent.outcome_octets = router_outcomes.worse_of(
                parent.outcome, parent.outcome_octets, code, state
            )
        elif router_outcomes.rank(code, state) > router_outcomes.rank(
            parent.outcome, parent.outcome_octets
        ):
            parent.outcome = code
            parent.outcome_octets = state
        if parent.open_copies == 0:
            self.settle_merged(parent)

    def settle_merged(self, parent: Delivery) -> None:
        """Settle a message or batch with its sender, now that all its copies have an outcome."""
        if parent.is_batch:
            self.core.batches.settled(parent)
        parent.copies = None if parent.complete else parent.copies
        if parent.outcome == codes.MODIFIED and parent.incoming.side == HERE:
            parent.outcome_octets = router_outcomes.without_lost_mark(parent.outcome_octets)
        self.settle(parent, parent.outcome, parent.outcome_octets)

    def settlement_received(self, delivery: Delivery, frame: DispositionFrame) -> None:
        """Pass a sender's disposition, usually a settlement, to its receivers."""
        copies = delivery.copies if delivery.copies is not None else [delivery]
        code = frame.state_code
        count = 0 if frame.plain else frame.state_end - frame.state_at
        if code == codes.RECEIVED and delivery.settling != ROUTED:
            # this state is for transfers of deliveries that are resumed (section 3.4.1)
            if not frame.settled:
                return
            code = codes.NO_STATE
            count = 0
        if len(copies) > COPIES_AT_ONCE or (delivery.is_batch and delivery.copies):
            settling_copies.tell(self, delivery, frame, code, count)
        else:
            self.pass_to_receivers(copies, frame, code, count)
        if frame.settled:
            if delivery.is_batch:
                self.core.batches.settled_by_sender(delivery)
            if delivery.settling == FIRST:
                _keep_in_order(delivery.incoming.owner)
            if delivery.incoming.credit == 0:
                self.note_sender(delivery.incoming)

    def pass_to_receivers(
        self, copies: list[Delivery], frame: DispositionFrame, code: int, count: int
    ) -> None:
        """Pass a sender's disposition to the receivers of some deliveries or copies."""
        for copy in copies:
            if copy.outgoing is None or copy.discarded:
                copy.settled = copy.settled or frame.settled
                if code != codes.NO_STATE:
                    # the receiver gets the state when the delivery is sent
                    state = memoryview(frame.octets)[frame.state_at : frame.state_end]
                    copy.state = kept_state(bytes(state), code)
                    if copy.state is None and copy.settling == ROUTED:
                        copy.state = NULL
                continue
            if frame.settled and copy.kept is not None:
                self.redelivery.drop(copy)
            if frame.settled and copy.outgoing_open and copy.outcome:
                self.outcomes.count_for_receiver(copy, copy.outcome)
            session = copy.outgoing.session
            session.send_state_to_receiver(
                copy, frame.settled, code, frame.octets, frame.state_at, count
            )


def _keep_in_order(producer: Producer | None) -> None:
    """Keep a sender's large messages on the lane of its earlier messages (stripe 0).

    Call it when the sender has settled a delivery that may still be under way: on another lane,
    large messages could overtake this delivery. Nothing changes if a stripe was chosen before.
    """
    if producer is not None and producer.stripe < 0:
        producer.stripe = 0
