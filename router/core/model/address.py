"""Addresses with their producers, their consumers and the deliveries that wait.

`forward` and `credit` read and write these records for each message. `links.attach` decides which
links are on which list, and `table` names the addresses and decides how they are treated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from router.core.model.counters import Counters
from router.core.model.size_limits import SizeLimits
from router.core.model.waiting_queue import WaitingQueue
from router.engine.link import IncomingLink, OutgoingLink

if TYPE_CHECKING:
    from router.amqp.composite import Composite
    from router.core.ports import (
        DroppedReceiver,
        FallbackMove,
        Progress,
        Refusing,
        RelatedSharing,
        RepeatedTask,
        Resuming,
        TransitWay,
        Withholding,
    )
    from router.engine.link import Link

# How deliveries are distributed over an address's consumers (Dispatch's `distribution`). Modules
# that compare them for each message repeat them as C constants; a rule compares the copies.
CLOSEST = 0
BALANCED = 1
MULTICAST = 2
UNAVAILABLE = 3
# between the two ends of a routed link: messages from one end go only to the other
ROUTED = 4

# The side of a network of routers that an end of a link is on. Messages from one side go to the
# others: not back to the edge that they came from, and from one router of the network to the next
# only along a path made for them. Each edge that is connected here is a side of its own; these are
# numbered from `FIRST_EDGE` on.
HERE = 0
MESH = 1
FIRST_EDGE = 2
# values of `tree`: no tree of the network, and the tree whose root is this router
NO_TREE = -1
OWN_TREE = 0

# The number of message priorities (section 3.2.1), and the default priority.
PRIORITIES = 10
ORDINARY_PRIORITY = 4
# The number of lanes for each priority: the first is for senders of small messages.
LANES_PER_PRIORITY = 5
# From this number on there is one more lane for each priority, for senders that settle before the
# receiver does (rcv-settle-mode second).
SECOND_LANES = PRIORITIES * LANES_PER_PRIORITY
# Bit mask of all lanes of the network (`network.lanes`), which most consumers take.
EVERY_LANE = 2**64 - 1
# The size limit of links without a max-message-size (section 2.7.3).
UNLIMITED = 2**64 - 1

# Phases of a message on its way through an address: usually 0, more after a waypoint, up to
# `LAST_PHASE`. Fallback receivers are at `FALLBACK`, which is the distance from the digit 0 to the
# letter F (as in Dispatch's annotation).
LAST_PHASE = 9
FALLBACK = 22
# Not a phase, but separate like one: requests to another router's management from clients that may
# change things (`management_access`); the distance from the digit 0 to the letter C.
MANAGEMENT_WRITERS = 19
# All phases; one name can have an address in each of them.
PHASES = (*range(LAST_PHASE + 1), FALLBACK, MANAGEMENT_WRITERS)


def key_of(name: str, phase: int) -> str:
    """Return the key of an address: its name, preceded by its phase unless that is 0.

    No name begins with a slash, so no client can name the address of another phase.
    """
    if phase == 0:
        return name
    if phase == MANAGEMENT_WRITERS:
        return f"/changers/{name}"
    return f"/fallback/{name}" if phase == FALLBACK else f"/phase {phase}/{name}"


class Address:
    """Address in use, with its links, its waiting deliveries and its counters."""

    def __init__(
        self, name: str, treatment: int, *, redelivers: bool = True, phase: int = 0
    ) -> None:
        self.name = name
        self.phase = phase
        # unique among the addresses in use
        self.key = key_of(name, phase)
        self.treatment = treatment
        self.counters = Counters()
        self.producers: list[Producer] = []
        self.consumers: list[Consumer] = []
        # how many of the consumers have links that may be resumed after they are lost
        self.resumable = 0
        # consumers that for now get only the deliveries which their links resume, in order
        self.resuming: dict[Consumer, None] = {}
        # deliveries that no consumer could take yet
        self.waiting = WaitingQueue()
        # size limits of the consumers that have one
        self.limits: SizeLimits | None = None
        # task that rejects waiting messages too large for all consumers (`max_message_size`)
        self.refusing: Refusing | None = None
        # messages that one consumer releases may be offered to another; once there are several
        # consumers, the messages' octets are kept for that (`keeps_octets`)
        self.redelivers = redelivers
        self.keeps_octets = False
        # where the next search for a consumer begins
        self.rotation = 0
        # whether a delivery arrived in this turn, and how many had left by then (`Forwarder.sent`)
        self.is_active = False
        self.egress_mark = 0
        # how many of its producers and consumers are on a side other than `HERE`
        self.remote_ends = 0
        # the lanes on which messages go from here to other routers, as bits; 0 if there is only one
        # link to each of them (`network.lanes`)
        self.lanes = 0
        # the priority of all its messages, whatever their headers say; -1 if the headers decide
        self.priority = -1
        # seconds after which a stuck receiver is dropped (`stuck_receivers`); 0 for never
        self.drop_after_s = 0.0
        # the last receiver that was dropped, if any
        self.last_dropped: DroppedReceiver | None = None
        # its related addresses; None for nearly all
        self.related_addresses: RelatedAddresses | None = None
        # the counters that its own were added to, once it is no longer in use
        self.successor: Counters | None = None
        # its state if it only passes messages on to another router (`network.transit`); None for
        # this router's own addresses
        self.transit: TransitWay | None = None
        # whether its producers' credit has to be updated at the end of the turn
        self.credit_due = False
        # the task that updates the credit in later turns, while there is one (`credit.Sharing`)
        self.sharing: RepeatedTask | None = None
        # whether it was made for one link. That is the `creator`, which may be suspended, and is
        # None once the link is over; `lifetime` says when the node is deleted (`nodes`)
        self.is_dynamic = False
        self.creator: Link | None = None
        self.lifetime: Composite | None = None

    def current_counters(self) -> Counters:
        """Return the address's counters, or their successor if the address is no longer in use."""
        return self.counters if self.successor is None else self.successor

    def add_producer(self, producer: Producer) -> None:
        """Add a producer to the address."""
        producer.place = len(self.producers)
        self.producers.append(producer)

    def remove_producer(self, producer: Producer) -> bool:
        """Remove a producer in constant time; return whether the address had this producer."""
        if producer.place < 0:
            return False
        last = self.producers.pop()
        if last is not producer:
            # the order of producers does not matter, so the last one fills the gap
            self.producers[producer.place] = last
            last.place = producer.place
        producer.place = -1
        return True

    def add_consumer(self, consumer: Consumer) -> None:
        """Add a consumer to the address."""
        consumer.place = len(self.consumers)
        consumer.is_resumable = consumer.link.terminus is not None
        self.resumable += consumer.is_resumable
        consumer.limit = consumer.link.max_message_size
        if consumer.limit != UNLIMITED:
            if self.limits is None:
                self.limits = SizeLimits()
            self.limits.add(consumer.limit)
        self.consumers.append(consumer)

    def remove_consumer(self, consumer: Consumer) -> bool:
        """Remove a consumer in constant time; return whether the address had this consumer."""
        if consumer.place < 0:
            return False
        last = self.consumers.pop()
        if last is not consumer:
            # the rotation may change, but each consumer still gets its turn
            self.consumers[consumer.place] = last
            last.place = consumer.place
        consumer.place = -1
        self.resumable -= consumer.is_resumable
        if consumer.limit != UNLIMITED and self.limits is not None:
            self.limits.remove(consumer.limit)
        return True

    def largest_taken(self) -> int:
        """Return the largest size of messages that any consumer accepts; 0 without consumers."""
        if not self.consumers:
            return 0
        if self.limits is None or self.limits.count < len(self.consumers):
            return UNLIMITED
        return self.limits.largest()


class RelatedAddresses:
    """Record of an address's relations to other addresses.

    `fallback` gets the address's messages while the address has no other receiver; `primary` is the
    address whose fallback this one is. `exchange` routes messages sent to the address on to other
    addresses. `fed_by` holds, by binding, the addresses whose exchanges may send to this one.
    """

    def __init__(self) -> None:
        self.fallback: Address | None = None
        self.primary: Address | None = None
        self.exchange: Any = None
        self.fed_by: dict[Any, Address] = {}
        # task that shares credit among the address's senders over several turns (`related_credit`)
        self.sharing: RelatedSharing | None = None
        # task that moves messages between the address and its fallback in later turns (`fallbacks`)
        self.moving: FallbackMove | None = None
        # whether its receivers are being served, one after the other, over several turns
        self.is_serving = False

    def is_needed(self) -> bool:
        """Return whether the address must exist although no link uses it."""
        return self.fallback is not None or self.exchange is not None or bool(self.fed_by)

    def is_none(self) -> bool:
        """Return whether the address has no related addresses."""
        return self.primary is None and not self.is_needed()


class Producer:
    """Link that sends to an address; `address` is None for an anonymous sender."""

    def __init__(self, link: IncomingLink, address: Address | None, capacity: int) -> None:
        self.link = link
        self.address = address
        self.capacity = capacity
        # its index in its address's list; -1 if it is not there
        self.place = -1
        # when its credit falls to this, the credit for its address is checked again
        self.low_mark = 0
        # the number of an anonymous sender's deliveries that wait at any address
        self.waiting = 0
        # whether its messages must not go to fallback receivers
        self.is_fallback = False
        # its side of the network, and the tree of routers along which multicasts come from it
        self.side = HERE
        self.tree = OWN_TREE
        # its lane within each priority, once it sends large messages; -1 until then
        self.stripe = -1
        # the task that it waits for before it gets credit, while the link that had its name is
        # being closed (`stealing`); usually None
        self.awaits: Withholding | None = None
        # whether messages enter the network on its link; -1 until that is known (`sampling`)
        self.enters = -1
        # whether the user-id of its messages must be empty or the peer's own user
        self.checks_user_id = False
        # whether the messages of a batch are forwarded one by one (`batches`)
        self.splits_batches = False
        # for an anonymous sender: whether its source lists outcomes without rejected
        self.lacks_rejected = False


class Consumer:
    """Link that receives from an address.

    `waiting` is the address's own queue if any consumer may take a delivery, or this consumer's
    queue of copies if the address is multicast.
    """

    def __init__(self, link: OutgoingLink, address: Address) -> None:
        self.link = link
        self.address = address
        self.waiting = WaitingQueue() if address.treatment == MULTICAST else address.waiting
        # its index in its address's list, -1 if it is not there; whether its link was resumable
        # when it was added
        self.place = -1
        self.is_resumable = False
        # its link's max-message-size when it was added to the address
        self.limit = UNLIMITED
        # whether messages leave with the router's own annotations
        self.shows_passage = False
        # whether messages without a header get one (`missing_headers`)
        self.needs_header = False
        # whether it asked for copies; then it gets only these (`sources`)
        self.gets_copies = False
        # whether it gets no durable messages, because it confirms nothing (`unconfirmed_durable`)
        self.rejects_durable = False
        # its side of the network; the tree of routers along which multicasts leave on it; and the
        # distance of the receivers, as the sum of the costs of the path
        self.side = HERE
        self.tree = NO_TREE
        self.cost = 0
        # the lanes that it takes; the links of all lanes to the same router, if there are others
        self.lane_mask = EVERY_LANE
        self.sibling_lanes: list[OutgoingLink] | None = None
        # its progress as a multicast's receiver (`stuck_receivers`); None while all is well
        self.progress: Progress | None = None
        # deliveries that its link resumes (`resuming`); until these are done it gets no others
        self.resuming: Resuming | None = None
        # whether the rest of its waiting messages is sent in later turns (`queue_service`)
        self.is_later = False
        # whether it leads to a router that passes traces on; -1 until that is known
        # (`trace_context`)
        self.passes_traces = -1


def gets_multicast_from(consumer: Consumer, producer: Producer) -> bool:
    """Return whether a consumer gets a producer's multicast messages.

    Between routers a multicast follows one tree, that of the router where the message entered the
    network.
    """
    if consumer.side == MESH:
        return consumer.tree >= 0 and consumer.tree == producer.tree
    return consumer.side == HERE or consumer.side != producer.side
