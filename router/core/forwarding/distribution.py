"""Distribute deliveries to consumers: each to one receiver of an address, or as copies to several.

A multicast address gives a copy to each of its consumers. An exchange gives a copy to each address
that the message's subject leads to: to one of the receivers there, or to each if that address is
multicast. If only one address gets the message, the message itself is sent there, not a copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

from router.amqp import codes
from router.amqp.reading import TransferFrame
from router.amqp.section_scan import priority_in
from router.core.addresses import exchanges, related
from router.core.deliveries import max_message_size
from router.core.forwarding.queue_service import QueueService
from router.core.forwarding.relaying import Relay
from router.core.forwarding.settlement import Settler
from router.core.model.address import Address, Consumer, Producer, gets_multicast_from
from router.engine import tags
from router.engine.delivery import Delivery

if TYPE_CHECKING:
    from router.core.ports import Core

MULTICAST = 2
HERE = 0
CLOSEST = 0
# the same values as in `model.address`
ORDINARY = 4
LEVELS = 10
LANES_PER_PRIORITY = 5
SECOND_LANES = 50
# How many copies of a message are made in one turn; the rest follow later (`pending_copies`).
COPIES_AT_ONCE = 512


class Distributor:
    """Part of the core that chooses the consumers that a delivery goes to.

    The forwarder calls it once per message; dead letters, redelivery and similar code call `choose`
    and `choose_across` for messages that go to another receiver. Both methods are long on purpose,
    because calls are slow.
    """

    def __init__(self, core: Core, settlement: Settler, queues: QueueService, relay: Relay) -> None:
        self.core = core
        self.backlog = core.backlog
        self.settlement = settlement
        self.queues = queues
        self.relay = relay
        # sender of all messages that an exchange forwards, whichever link they arrived on
        nobody: Any = None
        self._from_here = Producer(nobody, None, 0)
        self.copies_at_once = COPIES_AT_ONCE
        # `PendingCopies`: messages of which not all copies are made yet; set by the forwarder
        self.pending_copies: Any = None

    def choose(self, address: Address, size: int) -> Consumer | None:
        """Return the consumer for a delivery of this many octets; None if no consumer has room.

        If the treatment is balanced, the consumer with the fewest unsettled deliveries is chosen;
        if it is closest, consumers are chosen in rotation.
        """
        consumers = address.consumers
        count = len(consumers)
        best = None
        fewest = 0
        at = address.rotation
        for _ in range(count):
            if at >= count:
                at = 0
            consumer = consumers[at]
            at += 1
            link = consumer.link
            session = link.session
            if session.can_send(link) and size <= link.max_message_size:
                if address.treatment == CLOSEST or link.unsettled == 0:
                    address.rotation = at
                    return consumer
                if best is None or link.unsettled < fewest:
                    best = consumer
                    fewest = link.unsettled
                    address.rotation = at
        return best

    def choose_across(self, address: Address, size: int, side: int, lane: int) -> Consumer | None:
        """Return the consumer for a delivery that comes from `side`; None if none has room.

        The consumer serves that side (`deliveries.sides`) and the lane (`network.lanes`). If the
        treatment is closest, only the nearest consumers count, even if none of them has room. If it
        is balanced, the one with the lowest sum of path cost and unsettled deliveries is chosen.
        """
        consumers = address.consumers
        count = len(consumers)
        best = None
        least = -1
        at = address.rotation
        chosen_at = at
        for _ in range(count):
            if at >= count:
                at = 0
            consumer = consumers[at]
            at += 1
            link = consumer.link
            if (
                consumer.side == side != HERE
                or not consumer.lane_mask >> lane & 1
                or size > link.max_message_size
            ):
                continue
            session = link.session
            value = consumer.cost
            if address.treatment == CLOSEST:
                if least < 0 or value < least:
                    least = value
                    best = None
                if value > least or best is not None or not session.can_send(link):
                    continue
            else:
                value += (
                    link.unsettled if consumer.sibling_lanes is None else unsettled_of(consumer)
                )
                if (least >= 0 and value >= least) or not session.can_send(link):
                    continue
                least = value
            best = consumer
            chosen_at = at
        if best is not None:
            address.rotation = chosen_at
        return best

    def lane_for(
        self, address: Address, delivery: Delivery, producer: Producer, frame: TransferFrame
    ) -> int:
        """Return the lane for a delivery to other routers, by its priority and its sender.

        Senders with rcv-settle-mode second have separate lanes. The lane is opened if necessary.
        """
        priority = address.priority
        if priority < 0:
            priority = ORDINARY if delivery.message_format else priority_in(frame)
        lane = (priority + LEVELS - ORDINARY) % LEVELS
        link = producer.link
        if link.settles_second:
            lane += SECOND_LANES
        else:
            stripe = producer.stripe
            if stripe < 0:
                stripe = 0
                if not delivery.complete:
                    stripe = self.take_stripe(address, producer)
            lane = lane * LANES_PER_PRIORITY + stripe
        if not address.lanes >> lane & 1:
            self.open_lane(address, lane)
        return lane

    def take_stripe(self, address: Address, producer: Producer) -> int:
        """Choose and return the stripe for a sender's large messages: one of a priority's lanes.

        While earlier deliveries of the sender are unsettled, return 0 and choose none, so that its
        messages do not overtake each other.
        """
        link = producer.link
        if link.unsettled + link.presettled > 1:
            return 0
        counts = [0] * LANES_PER_PRIORITY
        for each in address.producers:
            if each.stripe > 0:
                counts[each.stripe] += 1
        least = 1
        for stripe in range(2, LANES_PER_PRIORITY):
            if counts[stripe] < counts[least]:
                least = stripe
        producer.stripe = least
        return least

    def open_lane(self, address: Address, lane: int) -> bool:
        """Open a lane for an address (`Lanes.open`); return whether the address has lanes."""
        return self.core.network.outward.lanes.open(address, lane)

    def has_receiver(self, address: Address, side: int) -> bool:
        """Return whether an address has receivers for messages from `side`.

        If no consumer may get these messages, try to open a link to receivers at another router.
        """
        if address.remote_ends == 0 and address.consumers:
            return True
        if address.remote_ends and self.has_taker(address, 0, side):
            return True
        return self.open_route(address, side)

    def has_taker(self, address: Address, size: int, side: int) -> bool:
        """Return whether any consumer for messages from `side` accepts messages of this size."""
        for consumer in address.consumers:
            link = consumer.link
            if consumer.side == side != HERE:
                continue
            if size <= link.max_message_size:
                return True
        return False

    def open_route(self, address: Address, side: int) -> bool:
        """Open a link to receivers at another router; return whether there are such receivers."""
        return self.core.network.open_route(address, side)

    def fan_out(self, address: Address, delivery: Delivery, frame: TransferFrame) -> None:
        """Give a copy of a delivery to every consumer of a multicast address."""
        link = delivery.incoming
        producer = link.owner
        if producer.address is None:
            self.open_route(address, producer.side)
        if not address.consumers or (address.remote_ends and not self._spreads(address, producer)):
            self.no_destination(address, delivery)
            return
        copies: list[Delivery] = []
        # counts one copy too many, so that the delivery is not settled before all copies are made
        delivery.open_copies = 1
        consumers = address.consumers
        if len(consumers) > self.copies_at_once:
            self.pending_copies.copy(delivery, frame, iter([(address, producer)]), copies, address)
            return
        self.copy_to_each(address, consumers, delivery, frame, copies, producer)
        self._copied(address, delivery, copies)

    def _spreads(self, address: Address, producer: Producer) -> bool:
        """Return whether any consumer of an address gets a producer's multicast messages."""
        is_for_any = False
        for consumer in address.consumers:
            if gets_multicast_from(consumer, producer):
                is_for_any = True
                break
        return is_for_any

    def copy_to_each(
        self,
        address: Address,
        consumers: list[Consumer],
        delivery: Delivery,
        frame: TransferFrame,
        copies: list[Delivery],
        producer: Producer,
    ) -> None:
        """Give a copy of a delivery to each consumer whose side and size limit allow it.

        A settled delivery is not copied to a consumer without room, unless the copy is worth
        keeping. The copies made are appended to `copies`.
        """
        sided = address.remote_ends
        for consumer in consumers:
            if sided and not gets_multicast_from(consumer, producer):
                continue
            link = consumer.link
            if delivery.size > link.max_message_size:
                continue
            session = link.session
            has_room = consumer.waiting.count == 0 and session.can_send(link)
            if not has_room and delivery.settled and not self._is_worth_keeping(consumer, delivery):
                address.counters.dropped_presettled += 1
                link.dropped_presettled += 1
                continue
            copy = self._copy(address, delivery)
            copies.append(copy)
            if has_room:
                self.relay.start(consumer, copy, frame)
            else:
                self.backlog.hold(copy, frame.octets, frame.payload_at, frame.end)
                consumer.waiting.append(copy)
                self.queues.raise_priority(link, copy.priority)

    def copy_to_one(
        self, address: Address, delivery: Delivery, frame: TransferFrame, copies: list[Delivery]
    ) -> None:
        """Give a copy to one consumer of an address, or queue the copy until one has room.

        The copy is appended to `copies`. If it is too large for all receivers, no copy is made.
        """
        consumer = None
        lane = 0
        if address.remote_ends:
            link = delivery.incoming
            if address.lanes:
                lane = self.lane_for(address, delivery, link.owner, frame)
            consumer = self.choose_across(address, delivery.size, link.side, lane)
        elif address.waiting.count == 0:
            consumer = self.choose(address, delivery.size)
        if consumer is not None or not max_message_size.is_too_large(address, delivery):
            copy = self._copy(address, delivery)
            copy.lane = lane
            copies.append(copy)
            if consumer is not None:
                self.relay.start(consumer, copy, frame)
            else:
                self.backlog.hold(copy, frame.octets, frame.payload_at, frame.end)
                self.queues.wait(address, copy)

    def _copy(self, address: Address, delivery: Delivery) -> Delivery:
        copy = Delivery.__new__(Delivery)
        copy.incoming = delivery.incoming
        copy.arrived = delivery.arrived
        copy.address = address
        copy.message_format = delivery.message_format
        copy.passage = delivery.passage
        copy.settled = delivery.settled
        copy.complete = delivery.complete
        copy.size = delivery.size
        copy.state = delivery.state
        if delivery.sample is not None:
            copy.sample = delivery.sample.copied()
        tags.copy_tag(copy, delivery)
        copy.parent = delivery
        delivery.open_copies += 1
        return copy

    def _copied(self, address: Address, delivery: Delivery, copies: list[Delivery]) -> None:
        """Settle a delivery after all its copies have been made, or keep the list of copies."""
        delivery.open_copies -= 1
        if not copies and max_message_size.is_too_large(address, delivery):
            max_message_size.refuse(self.core, address, delivery)
            return
        if delivery.complete and (delivery.settled or delivery.open_copies == 0):
            if not delivery.settled:
                self.settlement.settle(delivery, delivery.outcome, delivery.outcome_octets)
            return
        delivery.copies = copies

    def _is_worth_keeping(self, consumer: Consumer, delivery: Delivery) -> bool:
        """Return whether to queue a settled copy for a receiver that has no room at the moment.

        It is queued if the receiver has credit for it and is not slow, and if the sender's window
        is not nearly used up.
        """
        link = consumer.link
        if consumer.waiting.count >= link.credit:
            return False
        current = link.current
        if consumer.side == HERE and (current is None or current.chunks is not None):
            # slow: frames that have arrived are not sent yet; other routers serve many receivers
            return False
        # an eighth stays free, so that other receivers still get the sender's frames
        window = delivery.incoming.session.window
        keeps: bool = window.held_frames < 7 * window.affordable()
        return keeps

    def follow_ties(
        self, address: Address, delivery: Delivery, producer: Producer, frame: TransferFrame
    ) -> Address | None:
        """Return the address that gets a message whose own address has a fallback or an exchange.

        The fallback gets it if only the fallback has receivers; an exchange's message goes to its
        only destination. Return None if this method has sent or queued the message itself.
        """
        exchange = None if address.related_addresses is None else address.related_addresses.exchange
        if exchange is not None:
            search = exchanges.destinations_of(address, frame)
            places: list[Address] = []
            for count, found in enumerate(search):
                if found is not None:
                    places.append(found)
                if count >= self.copies_at_once:
                    delivery.open_copies = 1
                    others = self._places(chain(places, search), address, producer)
                    self.pending_copies.copy(delivery, frame, others, [], address, count)
                    return None
            if len(places) > 1 or (places and places[0] is not address and places[0].remote_ends):
                delivery.open_copies = 1
                copies: list[Delivery] = []
                rest = iter(places)
                for place in rest:
                    count = len(copies) + 1
                    if place.treatment == MULTICAST:
                        count = len(copies) + len(place.consumers)
                    if count > self.copies_at_once:
                        others = self._places(chain((place,), rest), address, producer)
                        self.pending_copies.copy(
                            delivery, frame, others, copies, address, len(copies)
                        )
                        return None
                    if not place.is_active:
                        self.relay.note_active(place)
                    if place.treatment == MULTICAST:
                        # messages that an exchange forwards count as sent from here
                        sender = producer if place is address else self._from_here
                        self.copy_to_each(place, place.consumers, delivery, frame, copies, sender)
                    else:
                        self.copy_to_one(place, delivery, frame, copies)
                self._copied(place, delivery, copies)
                return None
            place = places[0] if places else address
        else:
            moving = None if address.related_addresses is None else address.related_addresses.moving
            if moving is not None and not producer.is_fallback:
                moving.wait_behind(delivery, producer, frame)
                return None
            place = related.served_by(address)
            if place is address or producer.is_fallback:
                return address
            address.counters.redirected += 1
        delivery.address = place
        if not place.is_active:
            self.relay.note_active(place)
        return place

    def _places(
        self, places: Iterable[Address | None], address: Address, producer: Producer
    ) -> Iterator[tuple[Address, Producer] | None]:
        """Yield each address with the producer that counts as the sender there, and each None."""
        from_here = self._from_here
        for place in places:
            if place is None:
                yield None
            else:
                yield place, producer if place is address else from_here

    # Called by `pending_copies` in later turns, like `copy_to_each` and `copy_to_one`.

    def follow_some(self, delivery: Delivery, copies: list[Delivery], frame: TransferFrame) -> None:
        """Pass a later frame of a delivery to some of its copies."""
        for copy in copies:
            copy.complete = delivery.complete
            copy.size = delivery.size
            copy.settled = delivery.settled
            if not copy.discarded:
                self.relay.follow(copy, frame)

    def count_copy_wait(self, copy: Delivery) -> None:
        """Count how long a copy that was made in a later turn waited before it was sent."""
        consumer = copy.outgoing.owner
        self.queues.count_wait(consumer, copy)

    def no_destination(self, address: Address, delivery: Delivery) -> None:
        """Release a message, because its address has no receiver."""
        address.counters.no_destination += 1
        if delivery.settled:
            address.counters.dropped_presettled += 1
            delivery.incoming.dropped_presettled += 1
        delivery.discarded = True
        self.settlement.settle(delivery, codes.RELEASED, b"")


def unsettled_of(consumer: Consumer) -> int:
    """Return how many deliveries are unsettled on a consumer's link and its sibling lanes."""
    count = 0
    for link in consumer.sibling_lanes or ():
        count += link.unsettled
    return count
