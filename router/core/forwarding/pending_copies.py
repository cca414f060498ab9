"""Give copies of a message to very many receivers over several turns.

In the turn in which a frame is received, up to `Distributor.copies_at_once` receivers get it. The
others follow in later turns, message by message in the order of arrival. Until all have got it,
nothing more is read from the sender's connection (`Connection.unfinished`), so that no later frame
overtakes this one. If that connection is lost, the copies are still made
(docs/decisions/0092-copies-in-later-turns.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from router.amqp import constants
from router.amqp.reading import TransferFrame
from router.core.deliveries import max_message_size
from router.core.model import router_outcomes
from router.core.model.address import (
    HERE,
    MULTICAST,
    Address,
    Consumer,
    Producer,
    gets_multicast_from,
)
from router.engine.delivery import Delivery

if TYPE_CHECKING:
    from router.core.forwarding.forward import Forwarder

# How many copies are made in a step.
COPIES_A_STEP = 32
# Work of a copy in a turn of its connection, counted in frames (`Connection.deduct_work`): each may
# be for another connection, whose socket is written to.
WORK = 64
# Work of a step of an exchange's search for destinations, or of a copy for one receiver there,
# as a number of multicast copies.
PLACE = 4
RELEASED = int(constants.Descriptor.RELEASED)
MODIFIED = int(constants.Descriptor.MODIFIED)
# an address whose receivers get a message, and the message's sender there
Place = tuple[Address, Producer]


class PendingCopies:
    """Deferred task that copies messages to very many receivers, over several turns.

    The messages are copied one after another. Until a message is copied, nothing more is read from
    its sender's connection, and the turns of that connection do a part of the copying.
    """

    def __init__(self, forwarder: Forwarder) -> None:
        self._forwarder = forwarder
        # in order of arrival; a delivery has one entry at most, because its sender waits
        self._works: dict[Delivery, _Work] = {}
        # the number of messages for each address, and the work that is being done
        self._at: dict[Address, int] = {}
        self._active: _Work | None = None
        self._is_deferred = False

    def copy(
        self,
        delivery: Delivery,
        frame: TransferFrame,
        places: Iterator[Place | None],
        copies: list[Delivery],
        address: Address,
        made: int = 0,
    ) -> None:
        """Begin to copy a message to all receivers at some addresses; `frame` is its first frame.

        `places` yields these addresses, each with the producer that counts as the sender there.
        `copies` are the copies made so far, and `address` is the address that the message was sent
        to. `made` is the work already done for the message in this turn, as a number of copies.
        """
        delivery.copies = copies
        self._begin(_Copying(self._forwarder, delivery, frame, places, address), made)

    def follow(self, delivery: Delivery, frame: TransferFrame) -> None:
        """Begin to pass a later frame of a message to all its copies."""
        self._begin(_Following(self._forwarder, delivery, frame))

    def _begin(self, work: _Work, made: int = 0) -> None:
        forwarder = self._forwarder
        is_first = not self._works
        self._works[work.delivery] = work
        for address in work.addresses:
            self._at[address] = self._at.get(address, 0) + 1
        if is_first:
            for _ in range((forwarder.distribution.copies_at_once - made) // work.a_step):
                if not self._go_on():
                    return
        if not self._is_deferred:
            self._is_deferred = True
            forwarder.turn.deferred.add(self)
        connection = work.session.connection
        connection.unfinished = _Wait(self, work)
        # nothing more is read from the connection in this turn
        connection.turn_end = connection.frames_received

    def step(self) -> bool:
        """Make a few copies; return whether there are more to be made."""
        self._is_deferred = self._go_on()
        return self._is_deferred

    def go_on_for(self, work: _Work) -> bool:
        """Do `work` until its connection's turn ends; return whether the work is done."""
        connection = work.session.connection
        while self._works.get(work.delivery) is work:
            if not connection.try_deduct_work(WORK * work.a_step):
                return False
            self._go_on()
        return True

    def _go_on(self) -> bool:
        work = self._active
        if work is None:
            work = next(iter(self._works.values()), None)
            if work is None:
                return False
            self._activate(work)
        if not work.step():
            self._drop(work)
            work.end()
            if self._works:
                # the works may follow each other for many turns: grant credit between them
                self._forwarder.credit.share()
        return bool(self._works)

    def is_at(self, address: Address) -> bool:
        """Return whether a message that was sent to an address is still being copied."""
        return address in self._at

    def is_copying(self, delivery: Delivery) -> bool:
        """Return whether not all copies of a message are made yet."""
        return delivery in self._works

    def stop(self, delivery: Delivery) -> bool:
        """Stop copying a message, without settling it; return whether it was being copied."""
        work = self._works.get(delivery)
        if work is not None:
            self._drop(work)
        return work is not None

    def give_up(self, delivery: Delivery) -> None:
        """Stop copying a message; the copies made so far decide its outcome."""
        work = self._works.get(delivery)
        if work is not None:
            self._drop(work)
            work.give_up()

    def give_up_all(self) -> None:
        """Stop copying all messages; the copies made so far decide their outcomes."""
        for delivery in list(self._works):
            self.give_up(delivery)

    def _activate(self, work: _Work) -> None:
        """Begin the next work; until it is done, senders to its addresses get no new credit.

        How much of the receivers' credit the copies use is known only when all are made.
        """
        self._active = work
        for address in work.addresses:
            if address.credit_due:
                self._forwarder.credit.due.remove(address)
            # an address that counts as due is not added to the list
            address.credit_due = True

    def _drop(self, work: _Work) -> None:
        del self._works[work.delivery]
        for address in work.addresses:
            self._at[address] -= 1
            if not self._at[address]:
                del self._at[address]
            if work is self._active:
                address.credit_due = False
                self._forwarder.credit.note(address, None)
        if work is self._active:
            self._active = None


class _Wait:
    """Work that a connection has to wait for (`engine.connection.Unfinished`)."""

    def __init__(self, spreads: PendingCopies, work: _Work) -> None:
        self._spreads = spreads
        self._work = work
        self.session = work.session

    def go_on(self) -> bool:
        """Make copies; return whether all copies of this connection's message are made."""
        return self._spreads.go_on_for(self._work)


class _Work:
    """Task of giving one frame of a message to all its receivers, in steps."""

    def __init__(self, forwarder: Forwarder, delivery: Delivery, frame: TransferFrame) -> None:
        self.forwarder = forwarder
        self.delivery = delivery
        # the session whose connection waits; the delivery may move to another one (`resuming`)
        self.session: Any = delivery.incoming.session
        # a copy, because the input buffer is about to be overwritten
        payload = bytes(memoryview(frame.octets)[frame.payload_at : frame.end])
        self.frame = frame.with_payload(payload)
        self.addresses: set[Address] = set()
        self.a_step = min(COPIES_A_STEP, max(1, forwarder.distribution.copies_at_once))

    def step(self) -> bool:
        """Give the frame to a few receivers; return whether other receivers remain."""
        raise NotImplementedError

    def end(self) -> None:
        """Finish the work, once all receivers have the frame."""

    def give_up(self) -> None:
        """Finish the work without giving the frame to the remaining receivers."""


class _Copying(_Work):
    """Task of making a copy of a message for each receiver, when its first frame has arrived."""

    def __init__(
        self,
        forwarder: Forwarder,
        delivery: Delivery,
        frame: TransferFrame,
        places: Iterator[Place | None],
        address: Address,
    ) -> None:
        super().__init__(forwarder, delivery, frame)
        self._address = address
        self._places = places
        self._place = address
        self._sender: Producer | None = None
        # the receivers at `_place`, and how many of them have been served
        self._receivers: list[Consumer] = []
        self._at = 0
        # the largest message that any receiver takes, in octets; -1 while none is found
        self._most = -1
        self.addresses.add(address)
        sent_to = delivery.incoming.owner.address
        if sent_to is not None:
            self.addresses.add(sent_to)

    def step(self) -> bool:
        """Make a few copies; return whether more remain."""
        room = self.a_step
        while room > 0:
            some = self._receivers[self._at : self._at + room]
            if some:
                self._at += len(some)
                room -= len(some)
                self._give(some)
                continue
            try:
                place = next(self._places)
            except StopIteration:
                return False
            if place is not None:
                self._come_to(*place)
            if self._at == len(self._receivers):
                room -= PLACE
        return True

    def _come_to(self, place: Address, sender: Producer) -> None:
        self._place = place
        self._sender = sender
        if place.treatment == MULTICAST:
            # a snapshot: receivers that attach later get no copy
            self._receivers = list(place.consumers)
            self._at = 0
            return
        copies = self.delivery.copies
        count = len(copies)
        self.forwarder.distribution.copy_to_one(place, self.delivery, self.frame, copies)
        if not copies:
            self._most = max(self._most, max_message_size.largest(place))
        self._count_wait(count)

    def _give(self, some: list[Consumer]) -> None:
        assert self._sender is not None
        delivery, sender = self.delivery, self._sender
        copies = delivery.copies
        there = [each for each in map(self._now, some) if each is not None]
        if not copies:
            takers = there
            if self._place.remote_ends:
                takers = [each for each in there if gets_multicast_from(each, sender)]
            for each in takers:
                self._most = max(self._most, each.link.max_message_size)
        count = len(copies)
        self.forwarder.distribution.copy_to_each(
            self._place, there, delivery, self.frame, copies, sender
        )
        self._count_wait(count)

    def _now(self, consumer: Consumer) -> Consumer | None:
        """Return the consumer, or its successor if its link was stolen; None if it has left."""
        if consumer.place >= 0:
            return consumer
        holder = self.forwarder.link_names.holder(consumer.link)
        heir = None if holder is None else holder.owner
        if isinstance(heir, Consumer) and heir.address is consumer.address and heir.place >= 0:
            return heir
        return None

    def _count_wait(self, count: int) -> None:
        """Count the waiting time of the copies from index `count` on, if they had to wait."""
        forwarder = self.forwarder
        if self.delivery.arrived == forwarder.turn.now and self._place.is_active:
            return
        for copy in self.delivery.copies[count:]:
            if copy.outgoing is not None:
                forwarder.distribution.count_copy_wait(copy)

    def end(self) -> None:
        """Settle the message if its outcome is known, now that all copies are made."""
        delivery, copies = self.delivery, self.delivery.copies
        delivery.open_copies -= 1
        if not copies and self._most < 0:
            # all receivers have left
            delivery.copies = None
            self.forwarder.distribution.no_destination(self._address, delivery)
        elif not copies and delivery.size > self._most:
            delivery.copies = None
            max_message_size.reject(self.forwarder, delivery, self._most)
        elif delivery.settled:
            if delivery.complete:
                delivery.copies = None
        elif delivery.open_copies == 0:
            if delivery.complete:
                delivery.copies = None
            self._settle(delivery.outcome, delivery.outcome_octets or b"")

    def give_up(self) -> None:
        """Make no more copies; settle the message if all the copies made have an outcome."""
        delivery = self.delivery
        delivery.open_copies -= 1
        if delivery.open_copies == 0 and not delivery.settled:
            self._settle(delivery.outcome or RELEASED, delivery.outcome_octets or b"")

    def _settle(self, code: int, state: bytes) -> None:
        """Send the sender the merged outcome of the copies."""
        delivery = self.delivery
        if code == MODIFIED and delivery.incoming.side == HERE:
            state = router_outcomes.without_lost_mark(state) or b""
        self.forwarder.settlement.settle(delivery, code, state)


class _Following(_Work):
    """Task of giving a later frame of a message to all copies that exist."""

    def __init__(self, forwarder: Forwarder, delivery: Delivery, frame: TransferFrame) -> None:
        super().__init__(forwarder, delivery, frame)
        self._copies: list[Delivery] = delivery.copies
        self._at = 0

    def step(self) -> bool:
        """Pass the frame to a few copies; return whether others remain."""
        some = self._copies[self._at : self._at + self.a_step]
        self._at += len(some)
        self.forwarder.distribution.follow_some(self.delivery, some, self.frame)
        return self._at < len(self._copies)
