"""Grant credit to senders, according to the credit that receivers give (section 2.6.7).

At the end of a turn each address whose state has changed is examined once. The credit of its
receivers, less the messages that wait and the credit that its senders hold, is shared among the
senders. If nothing is left, a sender without credit still gets a credit of one, so that idle
senders that hold credit cannot starve it. Therefore one message for each sender may wait in the
router.

The links of an address that has very many are examined a few at a time, in later turns (`Sharing`,
docs/decisions/0093-credit-of-many-links.md).
"""

from __future__ import annotations

from router.core.model.address import Address, Consumer, Producer
from router.engine import serial
from router.engine.blocking import block
from router.engine.link import IncomingLink

# the same values as in `model.address`; typed in the .pxd file, for fast comparison
MULTICAST = 2
ROUTED = 4
HERE = 0
MESH = 1
OWN_TREE = 0
# A sender with this many unsettled deliveries gets no further credit.
UNSETTLED_LIMIT = 65536
# Credit for another router's messages that no longer have a receiver here.
CREDIT_WITHOUT_RECEIVER = 16
# Up to this many links of an address are examined in one turn; if it has more, A_STEP links are
# examined in each step of later turns.
AT_ONCE = 2048
A_STEP = 128
# Phases of a `Sharing`: add up the receivers' credit, add up the senders' credit, grant credit.
RECEIVERS = 0
HOLDINGS = 1
OFFERS = 2


def receiver_room(address: Address) -> int:
    """Return how many more deliveries the receivers of an address can take.

    If each delivery goes to one receiver, this is the sum of their credit, less the count of
    waiting deliveries. For multicast, where each receiver gets a copy, the slowest receiver
    decides.
    """
    total = 0
    slowest = -1
    for consumer in address.consumers:
        credit = room_of(consumer)
        total += credit
        if address.remote_ends and consumer.side == MESH and consumer.tree != OWN_TREE:
            # in a multicast, this link only takes messages that come from other routers
            continue
        left = max(0, credit - consumer.waiting.count)
        if slowest < 0 or left < slowest:
            slowest = left
    if address.treatment == MULTICAST:
        return max(0, slowest)
    return total - address.waiting.count


def room_of(consumer: Consumer) -> int:
    """Return how many deliveries a receiver can take, including those that wait for it."""
    link = consumer.link
    session = link.session
    credit = link.credit
    if session.outbox.congested and credit > 1:
        # One message ahead: the socket may be full because of another link. Once it has room, the
        # address of this link is examined again.
        credit = 1
        block(session, link)
    return credit


def has_too_much_unsettled(link: IncomingLink) -> bool:
    """Return whether a sender gets no credit because it has too many unsettled deliveries."""
    return link.unsettled >= UNSETTLED_LIMIT


def replenish(address: Address) -> None:
    """Share the receivers' credit among an address's senders, now or in later turns."""
    count = len(address.producers)
    if count == 0:
        return
    if count + len(address.consumers) <= AT_ONCE or address.remote_ends:
        replenish_at_once(address)
    elif address.sharing is not None:
        address.sharing.is_again_due = True
    else:
        address.sharing = Sharing(address)
        address.producers[0].link.session.outbox.turn.deferred.add(address.sharing)


def replenish_at_once(address: Address) -> None:
    """Share the receivers' credit among an address's senders, in this turn."""
    producers = address.producers
    count = len(producers)
    if count == 0:
        return
    if address.treatment == ROUTED:
        copy_credit(address)
        return
    if address.remote_ends and address.treatment == MULTICAST:
        replenish_trees(address)
        return
    room = receiver_room(address)
    if not address.consumers:
        for producer in producers:
            drain_sender(producer)
        return
    granted = 0
    for producer in producers:
        granted += producer.link.credit
    share = max(1, room // count)
    for producer in producers:
        granted += offer(producer, share, room, room - granted)


class Sharing:
    """Deferred task that does the work of `replenish_at_once` for an address with very many links.

    A message that is sent between two steps uses up one credit of its sender and one of its
    receiver, so the difference between the receivers' and the senders' total credit stays the same.
    If credit is to be shared again before the task has ended, the task begins again
    (`is_again_due`).
    """

    def __init__(self, address: Address) -> None:
        self.address = address
        self.is_again_due = False
        self.phase = RECEIVERS
        self.at = 0
        self.total = 0
        self.slowest = -1
        self.granted = 0
        self.room = 0
        self.share = 0

    def step(self) -> bool:
        """Examine the next few links; return whether any links are left."""
        address = self.address
        if address.remote_ends or address.related_addresses is not None:
            # the address's credit is now shared in another way
            if address.sharing is self:
                address.sharing = None
            return False
        if self.phase == RECEIVERS:
            self._add_receivers()
        elif self.phase == HOLDINGS:
            self._add_holdings()
        elif self._offer():
            if not self.is_again_due:
                address.sharing = None
                return False
            self.is_again_due = False
            self.phase = RECEIVERS
            self.at = 0
            self.total = self.granted = 0
            self.slowest = -1
        return True

    def _add_receivers(self) -> None:
        address = self.address
        consumers = address.consumers
        end = min(self.at + A_STEP, len(consumers))
        for at in range(self.at, end):
            consumer = consumers[at]
            credit = room_of(consumer)
            self.total += credit
            left = max(0, credit - consumer.waiting.count)
            if self.slowest < 0 or left < self.slowest:
                self.slowest = left
        self.at = end
        if end == len(consumers):
            self.at = 0
            # without receivers all credit is revoked
            self.phase = HOLDINGS if consumers else OFFERS

    def _add_holdings(self) -> None:
        address = self.address
        producers = address.producers
        end = min(self.at + A_STEP, len(producers))
        for at in range(self.at, end):
            producer = producers[at]
            self.granted += producer.link.credit
        self.at = end
        if end == len(producers):
            self.at = 0
            self.phase = OFFERS
            self.room = self.total - address.waiting.count
            if address.treatment == MULTICAST:
                self.room = max(0, self.slowest)
            self.share = max(1, self.room // max(1, end))

    def _offer(self) -> bool:
        address = self.address
        producers = address.producers
        is_served = len(address.consumers) > 0
        end = min(self.at + A_STEP, len(producers))
        for at in range(self.at, end):
            producer = producers[at]
            if is_served:
                left = self.room - self.granted
                self.granted += offer(producer, self.share, self.room, left)
            else:
                drain_sender(producer)
        self.at = end
        return end == len(producers)


def replenish_trees(address: Address) -> None:
    """Share the receivers' credit among the senders of a multicast address with several sides."""
    count = len(address.producers)
    if count == 0:
        return
    spread = TreeCredit(address)
    spread.add_receivers(0, len(address.consumers))
    spread.add_holdings(0, count)
    spread.offer(0, count)


class TreeCredit:
    """Computation of the credit that each sender of a multicast with several sides may hold.

    Messages that enter the network at a router follow that router's multicast tree. So the links of
    a tree limit only the credit of senders whose messages follow this tree. Receivers at this
    router or at an edge limit the credit of all senders.
    """

    def __init__(self, address: Address) -> None:
        self.address = address
        self.slowest = -1
        # the edge that has all receivers outside the network, or `HERE` if not all are at one edge
        self.only_side = -1
        self.granted = 0
        # by tree: what its slowest link can take, the credit of its senders, and their number
        self.trees: dict[int, int] = {}
        self.held: dict[int, int] = {}
        self.counts: dict[int, int] = {}

    def add_receivers(self, start: int, end: int) -> None:
        """Add the credit of the receivers from index `start` up to `end`."""
        consumers = self.address.consumers
        trees = self.trees
        for at in range(start, end):
            consumer = consumers[at]
            left = max(0, room_of(consumer) - consumer.waiting.count)
            if consumer.side == MESH:
                if consumer.tree >= 0:
                    trees[consumer.tree] = min(left, trees.get(consumer.tree, left))
                continue
            if self.only_side != consumer.side:
                self.only_side = consumer.side if self.only_side < 0 else HERE
            if self.slowest < 0 or left < self.slowest:
                self.slowest = left

    def add_holdings(self, start: int, end: int) -> None:
        """Add the credit that the senders from index `start` up to `end` hold."""
        producers = self.address.producers
        for at in range(start, end):
            producer = producers[at]
            tree, credit = producer.tree, producer.link.credit
            self.granted += credit
            self.held[tree] = self.held.get(tree, 0) + credit
            self.counts[tree] = self.counts.get(tree, 0) + 1

    def offer(self, start: int, end: int) -> None:
        """Grant the senders from index `start` up to `end` their share, or revoke their credit."""
        producers = self.address.producers
        for at in range(start, end):
            producer = producers[at]
            tree = producer.tree
            # without a receiver here or at an edge, only the links of the tree limit the credit
            room = self.slowest
            share = left = UNSETTLED_LIMIT
            if self.only_side != HERE and producer.side == self.only_side:
                room = -1
            if room >= 0:
                share = room // len(producers)
                left = room - self.granted
            if tree in self.trees:
                beyond = self.trees[tree]
                share = min(share, beyond // max(1, self.counts.get(tree, 1)))
                left = min(left, beyond - self.held.get(tree, 0))
                room = beyond if room < 0 else min(room, beyond)
            if room < 0 and tree > OWN_TREE:
                # the sender's router does not know yet that the last receiver has left: messages
                # that it sends are released
                room = left = share = CREDIT_WITHOUT_RECEIVER
            if room < 0:
                take_back(producer)
                continue
            given = offer(producer, max(1, share), room, left)
            self.granted += given
            self.held[tree] = self.held.get(tree, 0) + given


def offer(producer: Producer, share: int, room: int, left: int) -> int:
    """Grant a sender credit up to its `share`; return how much credit was added.

    `room` is how many deliveries the receivers can take, and `left` the part of `room` for which no
    sender holds credit. If `left` is 0, a sender without credit gets a credit of one. If `room` is
    0, nothing is granted.
    """
    link = producer.link
    held = link.credit
    target = min(share, producer.capacity, UNSETTLED_LIMIT - link.unsettled)
    producer.low_mark = target // 2
    if room <= 0:
        return 0
    give = 0
    if held * 2 <= target and held < target:
        give = min(target - held, left)
        if give <= 0:
            give = 1 if held == 0 else 0
    if give > 0 or link.drain:
        # there is a receiver again, so a sender that was being drained may keep its credit
        session = link.session
        session.grant(link, held + give, False)
    return give


def drain_sender(producer: Producer) -> None:
    """Drain a sender, because there is no receiver (section 2.6.7).

    If the router itself attached the link, for example to a broker, the link's credit is only
    revoked: a drain would make the broker send its messages first, although there is no receiver.
    """
    link = producer.link
    producer.low_mark = -1
    session = link.session
    if session.owner is not None:
        revoke(link)
    elif link.credit and not link.drain:
        session.grant(link, link.credit, True)


def take_back(producer: Producer) -> None:
    """Drain a sender without receivers, or revoke its credit if it is another router.

    Unlike a client, a router has no messages of its own, so there is nothing to drain.
    """
    if producer.side == HERE:
        drain_sender(producer)
    else:
        producer.low_mark = -1
        revoke(producer.link)


def revoke(link: IncomingLink) -> None:
    """Set a sender's credit to 0.

    Messages that are already on their way are still accepted.
    """
    if link.credit:
        # messages for credit revoked earlier may still arrive, too, but are within this limit
        link.overdraft = max(link.overdraft, link.credit)
        session = link.session
        session.grant(link, 0, False)


def replenish_anonymous(producer: Producer) -> None:
    """Grant an anonymous sender credit up to its capacity, less its count of waiting deliveries."""
    link = producer.link
    if not link.is_attached():
        return
    target = min(producer.capacity - producer.waiting, UNSETTLED_LIMIT - link.unsettled)
    producer.low_mark = producer.capacity // 2
    if link.credit * 2 <= target and link.credit < target:
        session = link.session
        session.grant(link, target, False)


def copy_credit(address: Address) -> None:
    """Copy credit and drain between the two ends of a routed link (section 2.6.7).

    Credit and drain go from the receiver to the sender, and the end of a drain goes back.
    Deliveries that were received but not forwarded yet have already used their credit. If the
    receiver reduces its credit, messages that are already on their way are still accepted.
    """
    if not address.consumers:
        return
    producer = address.producers[0]
    consumer = address.consumers[0]
    incoming = producer.link
    outgoing = consumer.link
    ahead = serial.ahead(outgoing.delivery_count, incoming.delivery_count)
    is_told = True
    if ahead and address.waiting.count == 0:
        # a drain is over: the sender has used up its credit
        outgoing.delivery_count = incoming.delivery_count
        outgoing.credit -= min(ahead, outgoing.credit)
        ahead = 0
        session = outgoing.session
        session.schedule_link_flow(outgoing)
    elif outgoing.flow_extras is not None:
        session = outgoing.session
        session.schedule_link_flow(outgoing)
    else:
        is_told = False
    if is_told and outgoing.credit == 0:
        outgoing.drain_due = False
    credit = max(0, outgoing.credit - ahead)
    held = incoming.credit
    if credit < held:
        incoming.overdraft += held - credit
    if credit != held or incoming.drain != outgoing.drain or incoming.flow_extras is not None:
        session = incoming.session
        session.grant(incoming, credit, outgoing.drain)
