"""Addresses with their producers, their consumers and the deliveries that wait.

`forward` and `credit` read and write these records for each message. `linking` decides which links
are on which list, and `table` names the addresses and decides how they are treated.
"""

from __future__ import annotations

from typing import Any

from router.core.model.counters import Counters
from router.core.model.size_limits import SizeLimits
from router.core.model.waiting import WaitingQueue
from router.engine.link import IncomingLink, OutgoingLink

# How deliveries are spread over an address's consumers (Dispatch's `distribution`).
CLOSEST = 0
BALANCED = 1
MULTICAST = 2
UNAVAILABLE = 3
# between the two ends of a link that is routed: what the one sends the other gets, and nobody else
ROUTED = 4

# Where in a network of routers an end of a link is. What comes from one side goes to the others:
# not back to the edge that it came from, nor from one router of the network to the next but along
# a way that is made for it. Each edge that is connected here is a side of its own, from
# `FIRST_EDGE` on.
HERE = 0
MESH = 1
FIRST_EDGE = 2
# of a tree of the network (`tree`): none, and the one whose root is this router
NO_TREE = -1
OWN_TREE = 0

# How urgent messages are (section 3.2.1), and how urgent those are that do not say.
PRIORITIES = 10
ORDINARY_PRIORITY = 4
# So many lanes there are for each priority: the first is for senders of small messages.
STRIPES = 5
# From this number on there is one more for each priority, for senders that settle before whoever
# receives does (rcv-settle-mode second).
SECOND_LANES = PRIORITIES * STRIPES
# Which lanes of the network (`network.lanes`) a consumer takes, as bits: all of them, as most do.
EVERY_LANE = 2**64 - 1
# What links take that have no max-message-size (section 2.7.3).
UNLIMITED = 2**64 - 1

# Where on its way through an address a message is: 0 as a rule, more behind a waypoint, up to
# `LAST_PHASE`; those who take what nobody else does are at `FALLBACK`, which is as far behind 0 as
# the letter F is (Dispatch's annotation has it so).
LAST_PHASE = 9
FALLBACK = 22
# Not a phase, but apart like one: what those send to the management of another router who may
# change things (`network.rights`); as far behind 0 as the letter C is.
CHANGERS = 19
# All of them: at most so many addresses have one name.
PHASES = (*range(LAST_PHASE + 1), FALLBACK, CHANGERS)


def key_of(name: str, phase: int) -> str:
    """Return the key of an address: its name, preceded by its phase where that is not 0.

    No name begins with a slash, so no client can name the address of another phase.
    """
    if phase == 0:
        return name
    if phase == CHANGERS:
        return f"/changers/{name}"
    return f"/fallback/{name}" if phase == FALLBACK else f"/phase {phase}/{name}"


class Address:
    """Address in use."""

    def __init__(
        self, name: str, treatment: int, *, redelivers: bool = True, phase: int = 0
    ) -> None:
        self.name = name
        self.phase = phase
        # what nothing else in use has
        self.key = key_of(name, phase)
        self.treatment = treatment
        self.counters = Counters()
        self.producers: list[Producer] = []
        self.consumers: list[Consumer] = []
        # how many of these have links that may be resumed once they are lost
        self.resumable = 0
        # those that are to get nothing yet but what their links resume, the first one first
        self.resuming: dict[Consumer, None] = {}
        # deliveries that no consumer could take yet
        self.waiting = WaitingQueue()
        # what its consumers' links take at most, of those that do not take messages of any size
        self.limits: SizeLimits | None = None
        # what rejects the messages that wait and have become too large for all (`sizes`)
        self.refusing: Any = None
        # what one consumer gives back may be offered to another; octets are kept for it once there
        # are several
        self.redelivers = redelivers
        self.keeps = False
        # where the next search for a consumer begins
        self.rotation = 0
        # something came for it in this turn, and how many had left before that (`Forwarder.sent`)
        self.is_moving = False
        self.egress_mark = 0
        # how many of its producers and consumers are on another side than `HERE`
        self.sided = 0
        # the lanes by which what is sent here goes to other routers, as bits; 0 where there is but
        # one way to each of them (`network.lanes`)
        self.lanes = 0
        # of whatever is sent here, and not -1: what its messages' headers say is not asked
        self.priority = -1
        # after how many seconds a stuck receiver is dropped (`stuck_receivers`); 0 for never
        self.drop_after_s = 0.0
        # the last one that was, None where none was
        self.last_dropped: Any = None
        # the other addresses that have to do with it; None for nearly all
        self.ties: Ties | None = None
        # what has taken over its counters, once it is no more in use
        self.heir: Counters | None = None
        # what of it passes on its way to another router (`network.transit`), and nothing else; None
        # where it is an address of this router's
        self.transit: Any = None
        # its producers' credit is to be looked at, at the end of the turn
        self.credit_due = False
        # what does that in later turns, while it is under way (`credit.Sharing`)
        self.sharing: Any = None
        # made for one link, `creator`, which may be suspended, and None once that is no more; its
        # `lifetime` policy says when it goes (`nodes`)
        self.is_dynamic = False
        self.creator: Any = None
        self.lifetime: Any = None

    def current_counters(self) -> Counters:
        """Return the address's counters, or their heir once it is no longer in use."""
        return self.counters if self.heir is None else self.heir

    def add_producer(self, producer: Producer) -> None:
        """Add a producer to the address."""
        producer.place = len(self.producers)
        self.producers.append(producer)

    def remove_producer(self, producer: Producer) -> bool:
        """Remove a producer in constant time; return whether it was on the list."""
        if producer.place < 0:
            return False
        last = self.producers.pop()
        if last is not producer:
            # the order among producers means nothing, so the last one fills the gap
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
        """Remove a consumer in constant time; return whether it was on the list."""
        if consumer.place < 0:
            return False
        last = self.consumers.pop()
        if last is not consumer:
            # who is next in turn may change, but everybody still has a turn
            self.consumers[consumer.place] = last
            last.place = consumer.place
        consumer.place = -1
        self.resumable -= consumer.is_resumable
        if consumer.limit != UNLIMITED and self.limits is not None:
            self.limits.remove(consumer.limit)
        return True

    def largest_taken(self) -> int:
        """Return the largest message size, in octets, that any consumer takes; 0 without one."""
        if not self.consumers:
            return 0
        if self.limits is None or self.limits.count < len(self.consumers):
            return UNLIMITED
        return self.limits.largest()


class Ties:
    """Related addresses of an address.

    `fallback` gets its messages while it has no other receiver, and `primary` is the address that
    this one is the fallback of. `exchange` routes what is sent here to other addresses. `fed_by`
    are the addresses whose exchanges may send to this one, by the bindings that lead here.
    """

    def __init__(self) -> None:
        self.fallback: Address | None = None
        self.primary: Address | None = None
        self.exchange: Any = None
        self.fed_by: dict[Any, Address] = {}
        # what shares credit among the address's senders over several turns (`tied_credit`)
        self.sharing: Any = None
        # what moves messages between the address and its fallback over several turns (`fallbacks`)
        self.moving: Any = None
        # its receivers are being served, one after the other, over several turns
        self.is_serving = False

    def is_needed(self) -> bool:
        """Return whether the address must exist although no link uses it."""
        return self.fallback is not None or self.exchange is not None or bool(self.fed_by)

    def is_none(self) -> bool:
        """Return whether the address has no related addresses any more."""
        return self.primary is None and not self.is_needed()


class Producer:
    """Link that sends to an address; `address` is None for an anonymous sender."""

    def __init__(self, link: IncomingLink, address: Address | None, capacity: int) -> None:
        self.link = link
        self.address = address
        self.capacity = capacity
        # where it stands on its address's list; -1 where it is not on it
        self.place = -1
        # at this much credit left its address is looked at again
        self.low_mark = 0
        # an anonymous sender's deliveries that wait somewhere
        self.waiting = 0
        # what it sends is never for those who take what is left
        self.is_fallback = False
        # where in a network it is, and the tree of routers along which a multicast comes by it
        self.side = HERE
        self.tree = OWN_TREE
        # which of several lanes of a network it has for itself, once it sends what is large
        self.stripe = -1
        # what it waits for until it gets credit: the link that had its name is being closed
        # (`stealing`); None as a rule
        self.awaits: Any = None
        # whether messages enter the network by it; -1 as long as nobody has asked (`sampling`)
        self.enters = -1


class Consumer:
    """Link that receives from an address.

    `waiting` is the address's own queue where any consumer may take a delivery, and this
    consumer's queue of copies where the address is multicast.
    """

    def __init__(self, link: OutgoingLink, address: Address) -> None:
        self.link = link
        self.address = address
        self.waiting = WaitingQueue() if address.treatment == MULTICAST else address.waiting
        # where it stands on its address's list, -1 where it is not on it; whether its link could be
        # resumed when it came there
        self.place = -1
        self.is_resumable = False
        # the largest message that its link took when it came to the address
        self.limit = UNLIMITED
        # messages leave with the router's own annotations
        self.shows_passage = False
        # it gets copies because it asked for them, and is not to get anything else (`sources`)
        self.browses = False
        # it confirms nothing, and so is not to get what is durable (`unconfirmed`)
        self.rejects_durable = False
        # where in a network it is; the tree of routers along which a multicast leaves by it; and
        # how far away those are who receive, as the sum of the costs of the way there
        self.side = HERE
        self.tree = NO_TREE
        self.cost = 0
        # what lanes it takes, and the links of all lanes to the same place, where there are others
        self.takes = EVERY_LANE
        self.beside: list[OutgoingLink] | None = None
        # how it fares as one of a multicast's receivers (`stuck_receivers`); None while all is well
        self.progress: Any = None
        # what its link resumes (`resuming`); until that is done it gets nothing else
        self.resuming: Any = None
        # the rest of what waits for it is sent in later turns (`dispensing`)
        self.is_later = False
        # whether it leads to a router that passes traces on; -1 as long as nobody has asked
        # (`trace_context`)
        self.passes_traces = -1


def spreads_to(consumer: Consumer, producer: Producer) -> bool:
    """Return whether a multicast from this producer is for this consumer too.

    Between routers a multicast follows one tree, that of the router where it came in.
    """
    if consumer.side == MESH:
        return consumer.tree >= 0 and consumer.tree == producer.tree
    return consumer.side == HERE or consumer.side != producer.side
