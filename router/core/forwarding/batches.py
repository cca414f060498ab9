"""Forward the messages of a batch one by one, as Azure Service Bus and Event Hubs do.

A producer that `splits_batches` is one of their clients, which do not unpack a batch when they
receive one. So the messages are taken from the batch and forwarded as if each had been sent alone.
The sender gets one outcome for all of them, when the last one has its outcome: accepted only if
every message was accepted (`router_outcomes.worse_of`).

A batch may have very many messages. The sender's connection waits while they are forwarded, over
several turns if necessary, and until the batch is settled each of them is charged to the sender
like other state (docs/decisions/0121-batches.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import attrs

from router.amqp.batches import messages_in
from router.amqp.constants import Condition, Descriptor
from router.core.links.azure_clients import MAX_BATCH_BYTES
from router.core.model import router_outcomes
from router.engine.account import BATCHES, DELIVERY_BYTES
from router.engine.delivery import Delivery
from router.errors import AmqpError

if TYPE_CHECKING:
    from router.amqp.reading import TransferFrame
    from router.core.forwarding.forward import Forwarder
    from router.engine.account import Account
    from router.engine.link import IncomingLink

# The work of forwarding one message, as a number of frames (`Connection.deduct_work`), and how many
# are forwarded in a step of a later turn.
WORK: Final = 32
MESSAGES_A_STEP: Final = 8
# A step ends earlier if forwarding has deducted more work than this from the connection's turn.
WORK_A_STEP: Final = 128
REJECTED = int(Descriptor.REJECTED)
RELEASED = int(Descriptor.RELEASED)


class Batches:
    """Part of the core that takes batches apart; the forwarder calls it with each frame of them."""

    def __init__(self, forwarder: Forwarder) -> None:
        self._forwarder = forwarder
        # for batches that are not settled yet, or have messages that wait
        self._charges: dict[Delivery, _Charge] = {}
        # batches with messages that will be forwarded in later turns
        self.unfinished: dict[Delivery, _Splitting] = {}

    def take(self, delivery: Delivery, frame: TransferFrame) -> None:
        """Take a frame of a batch; once the batch is complete, forward its messages."""
        forwarder = self._forwarder
        link = delivery.incoming
        if not delivery.is_batch:
            # the first frame
            delivery.is_batch = True
            delivery.arrived = forwarder.turn.now
            address = link.owner.address
            delivery.address = forwarder.table.unused if address is None else address
            forwarder.settlement.note_sender(link)
        if delivery.size > MAX_BATCH_BYTES:
            self._refuse_large(delivery)
            return
        if frame.more or delivery.chunks is not None:
            forwarder.backlog.hold(delivery, frame.octets, frame.payload_at, frame.end)
            forwarder.backlog.batches[delivery] = None
            if frame.more:
                return
            octets = b"".join(delivery.chunks)
            forwarder.backlog.drop(delivery)
        else:
            octets = bytes(memoryview(frame.octets)[frame.payload_at : frame.end])
        splitting = _Splitting(forwarder, delivery, frame, octets)
        if not splitting.go_on():
            self.unfinished[delivery] = splitting
            splitting.defer()

    def give_up(self, delivery: Delivery) -> None:
        """Forward no more messages of a delivery, if it is a batch: its link is closing."""
        splitting = self.unfinished.get(delivery)
        if splitting is not None:
            splitting.give_up()

    def give_up_all(self) -> None:
        """Forward no more messages of any batch; those that were forwarded decide its outcome."""
        for splitting in list(self.unfinished.values()):
            splitting.give_up()

    def charge(self, delivery: Delivery) -> None:
        """Charge an unsettled batch for one more message, which is about to be added to it."""
        charge = self._charges.get(delivery)
        if charge is None:
            charge = self._charges[delivery] = _Charge(_account_of(delivery.incoming))
        charge.change(1)

    def settled(self, delivery: Delivery) -> None:
        """Release the charge for a delivery, if it is a batch: all its messages are settled."""
        charge = self._charges.pop(delivery, None)
        if charge is not None:
            charge.change(-charge.count)

    def settled_by_sender(self, delivery: Delivery) -> None:
        """Release the charge for a delivery, if it is a batch, except for messages that wait.

        If there are very many messages, that of the last ones is released in later turns.
        """
        charge = self._charges.get(delivery)
        if charge is not None:
            steps = self._release_each(delivery, charge, delivery.copies)
            self._forwarder.turn.deferred.run_steps(steps)

    def _release_each(
        self, batch: Delivery, charge: _Charge, messages: list[Delivery]
    ) -> Iterator[None]:
        for message in messages:
            if self._charges.get(batch) is not charge:
                # all messages were settled meanwhile
                return
            if message.waits_in is None:
                self._release(batch, charge)
            else:
                charge.waiting.add(message)
            yield None

    def left_queue(self, message: Delivery) -> None:
        """Release the charge for a message that waited, and whose sender has settled its batch."""
        batch = message.parent
        charge = self._charges.get(batch)
        if charge is not None and message in charge.waiting:
            charge.waiting.remove(message)
            self._release(batch, charge)

    def _release(self, batch: Delivery, charge: _Charge) -> None:
        charge.change(-1)
        if not charge.count:
            del self._charges[batch]

    def _refuse_large(self, delivery: Delivery) -> None:
        self._forwarder.backlog.drop(delivery)
        delivery.discarded = True
        problem = (
            f"a batch of messages may have {MAX_BATCH_BYTES} octets; "
            "send larger messages one by one"
        )
        verdict = router_outcomes.rejected(Condition.MESSAGE_SIZE_EXCEEDED, problem)
        self._forwarder.settlement.settle(delivery, REJECTED, verdict)


@attrs.define
class _Charge:
    """Charge for a number of messages of a batch."""

    account: Account
    count: int = 0
    # messages that waited when their sender had settled the batch
    waiting: set[Delivery] = attrs.field(factory=set)

    def change(self, by: int) -> None:
        """Charge for more messages, or release the charge for some."""
        self.count += by
        if by < 0:
            self.account.release(BATCHES, -by * DELIVERY_BYTES)
        else:
            self.account.charge(BATCHES, by * DELIVERY_BYTES)


def _account_of(link: IncomingLink) -> Account:
    account: Account = link.session.connection.account
    return account


class _Splitting:
    """Task of forwarding the messages of a batch; its connection waits until it is done."""

    def __init__(
        self, forwarder: Forwarder, delivery: Delivery, frame: TransferFrame, octets: bytes
    ) -> None:
        self._forwarder = forwarder
        self._delivery = delivery
        # a copy, because the input buffer is about to be overwritten
        self._frame = frame.with_payload(b"")
        # a later frame's flag means nothing, and would make each message resume a delivery
        self._frame.resume = False
        self._messages = messages_in(octets)
        self._size = len(octets)
        # octets of the batch that are charged to the connection
        self._charged = 0
        self._account = _account_of(delivery.incoming)
        self._is_over = False
        # the message that was forwarded last
        self._last: Delivery | None = None
        self.session = delivery.incoming.session
        # counts one message too many, so that the batch is not settled before all are forwarded
        delivery.open_copies = 1
        delivery.copies = []

    def go_on(self) -> bool:
        """Forward messages until the connection's turn ends; return whether all are forwarded."""
        connection = self.session.connection
        while not self._is_over:
            if self._must_wait() or not connection.try_deduct_work(WORK):
                connection.unfinished = self
                return False
            self._forward_next()
        return True

    def defer(self) -> None:
        """Continue in later turns, and read nothing more from the connection in this one."""
        self._charged = self._size
        self._account.charge(BATCHES, self._charged)
        connection = self.session.connection
        connection.turn_end = connection.frames_received
        self._forwarder.turn.deferred.add(self)

    def step(self) -> bool:
        """Forward a few messages in a later turn; return whether others remain."""
        connection = self.session.connection
        least = connection.turn_end - WORK_A_STEP
        for _ in range(MESSAGES_A_STEP):
            # a message to many receivers deducts work
            if self._is_over or self._must_wait() or connection.turn_end < least:
                break
            self._forward_next()
        if not self._is_over:
            # copies of a message to very many receivers may have taken this place
            connection.unfinished = self
        return not self._is_over

    def give_up(self) -> None:
        """Forward no more messages, and count those that are left as released."""
        if not self._is_over:
            self._refuse_rest(RELEASED, b"")

    def _must_wait(self) -> bool:
        """Return whether the last message is still being copied to very many receivers."""
        copies = self._forwarder.distribution.pending_copies
        is_being_copied: bool = self._last is not None and copies.is_copying(self._last)
        return is_being_copied

    def _forward_next(self) -> None:
        delivery = self._delivery
        link = delivery.incoming
        if link.owner is None or link.close_error is not None:
            # it was lost, or is being detached, perhaps because of a message in the batch
            self.give_up()
            return
        if delivery.settled and link.session.window.affordable() <= 0:
            # so many wait that its sender could send no more of them one by one
            self._refuse_rest(RELEASED, b"")
            return
        excess = None if delivery.settled else self._account.refusal(DELIVERY_BYTES)
        try:
            octets = next(self._messages, None)
            if octets is not None and excess is not None:
                raise excess
        except AmqpError as error:
            verdict = router_outcomes.rejected(error.condition, error.description)
            self._refuse_rest(REJECTED, verdict)
            return
        if octets is None:
            self._end()
            return
        message = self._last = self._message(len(octets))
        if not delivery.settled:
            self._forwarder.batches.charge(delivery)
            delivery.copies.append(message)
            delivery.open_copies += 1
        self._forwarder.transfer_received(message, self._frame.with_payload(octets))

    def _message(self, size: int) -> Delivery:
        """Return a delivery for a message of this many octets."""
        batch = self._delivery
        message = Delivery.__new__(Delivery)
        message.incoming = batch.incoming
        # for errors, which name the delivery that the sender knows; receivers get other tags
        message.incoming_tag = batch.incoming_tag
        message.tag_size = batch.tag_size
        message.tag_word = batch.tag_word
        message.settled = batch.settled
        message.state = batch.state
        message.complete = True
        message.size = size
        if not batch.settled:
            message.parent = batch
        return message

    def _refuse_rest(self, code: int, state: bytes) -> None:
        """Forward no more messages, and count this outcome for those that are left."""
        delivery = self._delivery
        if delivery.settled:
            delivery.address.counters.dropped_presettled += 1
            delivery.incoming.dropped_presettled += 1
        else:
            rest = self._message(0)
            delivery.open_copies += 1
            self._forwarder.settlement.merge(rest, code, state)
        self._end()

    def _end(self) -> None:
        self._is_over = True
        if self._charged:
            self._account.release(BATCHES, self._charged)
        delivery = self._delivery
        self._forwarder.batches.unfinished.pop(delivery, None)
        if delivery.settled:
            delivery.copies = None
            return
        delivery.open_copies -= 1
        if delivery.open_copies == 0:
            self._forwarder.settlement.settle_merged(delivery)
