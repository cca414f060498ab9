"""Reasons why messages do not flow: why a sender has no credit, or a receiver gets no messages.

The reasons are derived on request from the state that forwarding and credit use. A `Survey` derives
them for many links at one moment, and examines each address only once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum
from itertools import islice
from typing import Any

import attrs

from router.core.addresses.related import is_exchange, receiving_addresses
from router.core.deliveries import across, sides
from router.core.deliveries.credit import has_too_much_unsettled, receiver_room, room_of
from router.core.forwarding.forward import Forwarder
from router.core.model.address import (
    CLOSEST,
    HERE,
    MULTICAST,
    OWN_TREE,
    Address,
    Consumer,
    Producer,
    gets_multicast_from,
)
from router.core.model.split_table import SplitTable
from router.core.network.far_ends import FarEnd, far_end_of
from router.core.routers.unreachable import why_unreachable
from router.engine.link import IncomingLink, Link

# How many of a receiver's waiting deliveries are examined for their size.
LONGEST_CHECK = 100
# How many receivers and senders of an address are examined; if there are more, the first
# ones stand for all.
MOST_EXAMINED = 1000
# The rest of the work on an address takes as long as examining this many receivers.
WORK_OF_AN_ADDRESS = 16
# How many of the routers that an address waits for are named.
MOST_NAMED = 3


class Reason(StrEnum):
    """Reason why no messages flow on a link or at an address; the values are a stable interface."""

    # of an address, and of its senders
    NO_CONSUMER = "no_consumer"
    NO_CREDIT = "no_credit"
    SHARED = "shared"
    # of one sender
    UNSETTLED = "unsettled"
    WAITING = "waiting"
    SESSION_FULL = "session_full"
    CONNECTION_FULL = "connection_full"
    MEMORY_FULL = "memory_full"
    NOT_READ = "not_read"
    # of one receiver, and of an address if it applies to the receivers that have credit
    DRAINED = "drained"
    WINDOW_CLOSED = "window_closed"
    CONGESTED = "congested"
    IN_MESSAGE = "in_message"
    TOO_LARGE = "too_large"
    RESUMING = "resuming"
    # of a sender or receiver: the link is not attached, or is being detached
    DETACHED = "detached"


MEANINGS = {
    Reason.NO_CONSUMER: "the address has no receiver",
    Reason.NO_CREDIT: "no receiver of the address has given credit",
    Reason.SHARED: "other senders hold all the credit that the receivers have given",
    Reason.UNSETTLED: "too many of its deliveries are unsettled, or in doubt since it resumed",
    Reason.WAITING: "the limit for its deliveries that wait in the router has been reached",
    Reason.SESSION_FULL: "waiting deliveries of its session fill the session window",
    Reason.CONNECTION_FULL: "waiting deliveries of its connection fill connectionBufferBytes",
    Reason.MEMORY_FULL: "waiting deliveries fill half of memoryLimitBytes",
    Reason.NOT_READ: "the peer does not read the router's output",
    Reason.DRAINED: "the receiver has drained its credit",
    Reason.WINDOW_CLOSED: "the peer's session window is closed",
    Reason.CONGESTED: "the output buffer is full: the socket accepts no more data",
    Reason.IN_MESSAGE: "a message has been sent in part, and the rest of it has not arrived",
    Reason.TOO_LARGE: "all waiting messages are larger than the receiver's max-message-size",
    Reason.RESUMING: "the receiver is first sent the deliveries that its link resumes",
    Reason.DETACHED: "the link is not attached",
}
"""Description of each reason."""

_WITH_CREDIT = frozenset(
    (Reason.WINDOW_CLOSED, Reason.CONGESTED, Reason.IN_MESSAGE, Reason.TOO_LARGE)
)


@attrs.frozen
class AddressState:
    """State of an address, with the reasons why messages do not flow.

    If the address has very many links, only the first of them are examined.
    """

    # why the address's senders get no further credit; None if the receivers have room
    credit_reason: Reason | None
    # why a message that arrives now has to wait; None if it can be sent
    flow_reason: Reason | None
    # how many receivers are blocked for each reason; None counts those that are not blocked
    receivers: dict[Reason | None, int]
    senders: int
    # how many more deliveries the receivers can take; for multicast, the slowest receiver decides
    room: int
    # the credit that senders have
    held: int
    # how many deliveries or copies wait in the router
    waiting: int
    # other routers whose receivers cause the reasons; a few of them, if there are many
    far: tuple[FarEnd, ...] = ()
    # whether no receiver here causes the reasons
    are_all_far: bool = False
    # text about the router in the address's name, if that router is unreachable
    absent: str | None = None

    def describe(self, reason: Reason) -> str:
        """Describe a reason, naming the other routers whose receivers cause it."""
        if reason is Reason.NO_CONSUMER and self.absent is not None:
            return f"{MEANINGS[reason]}: {self.absent}"
        if reason not in (self.credit_reason, self.flow_reason) or not self.far:
            return MEANINGS[reason]
        return _words(reason, self.far, are_all_far=self.are_all_far)


@attrs.define
class Survey:
    """Survey of links and addresses at one moment, to be used within one turn only."""

    forwarder: Forwarder
    # how many receivers and senders were examined; an address counts as several
    examined: int = 0
    _states: SplitTable[tuple[int, int, int], AddressState] = attrs.field(
        factory=SplitTable, repr=False
    )

    def address(self, address: Address, side: int = HERE, tree: int = OWN_TREE) -> AddressState:
        """Return the state of an address for messages that come from a side of the network.

        For a multicast, `tree` is the multicast tree along which the messages come.
        """
        where = id(address), side, tree
        state = self._states.get(where)
        if state is None:
            state = _look_at(address, side, tree)
            ends = len(address.consumers) + len(address.producers)
            self.examined += WORK_OF_AN_ADDRESS + min(ends, MOST_EXAMINED)
            if Reason.NO_CONSUMER in (state.credit_reason, state.flow_reason):
                missing = why_unreachable(self.forwarder.network, address.name)
                state = attrs.evolve(state, absent=missing)
            self._states[where] = state
        return state

    def link(self, link: Link) -> Reason | None:
        """Return why no message can pass on a link now, or None if one can.

        A sender or receiver that merely has no messages is not blocked.
        """
        if not link.is_attached() or link.owner is None:
            return Reason.DETACHED
        if isinstance(link, IncomingLink):
            return self._sender(link, link.owner)
        return blocked_reason(link.owner)

    def describe(self, link: Link) -> str | None:
        """Describe why `link` is blocked, naming the router that it waits for, if any.

        Returns None if the link is not blocked.
        """
        reason = self.link(link)
        if reason is None:
            return None
        if not isinstance(link, IncomingLink):
            return describe_receiver_reason(link, reason)
        if link.is_routed:
            # its credit is what the receiver at the other end of the routed link gives
            if link.credit and not link.drain:
                return MEANINGS[reason]
            return describe_receiver_reason(link.terminus.other(link), reason)
        producer = link.owner
        if producer is None or producer.address is None:
            return MEANINGS[reason]
        return self._state_for(producer).describe(reason)

    def _state_for(self, producer: Producer) -> AddressState:
        assert producer.address is not None
        return self.address(producer.address, producer.side, producer.tree)

    def links_blocked(self, links: Iterable[Link]) -> Counter[tuple[bool, Reason]]:
        """Count the blocked links by direction and reason.

        The direction is True for links on which the peer sends.
        """
        blocked: Counter[tuple[bool, Reason]] = Counter()
        for link in links:
            reason = self.link(link)
            if reason is not None:
                blocked[isinstance(link, IncomingLink), reason] += 1
        return blocked

    def _sender(self, link: IncomingLink, producer: Producer) -> Reason | None:
        if link.credit and not link.drain:
            return self._frames(link)
        if link.is_routed:
            # its credit is what the receiver at the other end of the routed link gives
            other = link.terminus.other(link).owner
            return (other and blocked_reason(other)) or Reason.NO_CREDIT
        if has_too_much_unsettled(link) or producer.capacity == 0:
            return Reason.UNSETTLED
        if producer.address is None:
            return Reason.WAITING if producer.waiting >= producer.capacity else None
        # the remaining reason is that other senders hold the credit
        return self._state_for(producer).credit_reason or Reason.SHARED

    def _frames(self, link: IncomingLink) -> Reason | None:
        """Return why frames of a sender that has credit are held back, or None if they are not."""
        session = link.session
        connection = session.connection
        unsent = connection.settings.unsent_limit_bytes
        if unsent and connection.outbox.output.size() > unsent:
            return Reason.NOT_READ
        if session.window.size > 0:
            return None
        if connection.held_back:
            return Reason.CONNECTION_FULL
        if self.forwarder.turn.is_pressed:
            return Reason.MEMORY_FULL
        return Reason.SESSION_FULL


def blocked_reason(consumer: Consumer) -> Reason | None:
    """Return why a receiver cannot take a delivery now, or None if it can."""
    link = consumer.link
    session = link.session
    reason = None
    if consumer.resuming is not None:
        reason = Reason.RESUMING
    elif link.credit == 0:
        reason = Reason.DRAINED if link.drain else Reason.NO_CREDIT
    elif session.remote_incoming_window <= 0:
        reason = Reason.WINDOW_CLOSED
    elif session.outbox.congested:
        reason = Reason.CONGESTED
    elif link.current is not None:
        reason = Reason.IN_MESSAGE
    elif consumer.waiting and _is_too_large(consumer):
        reason = Reason.TOO_LARGE
    return reason


def _is_too_large(consumer: Consumer) -> bool:
    """Return whether the deliveries that wait for a receiver are all too large for it.

    Only the first `LONGEST_CHECK` deliveries are examined.
    """
    limit = consumer.link.max_message_size
    return all(delivery.size > limit for delivery in islice(consumer.waiting, LONGEST_CHECK))


def describe_receiver_reason(link: Link, reason: Reason) -> str:
    """Describe why a receiver cannot take a delivery, naming the router that its link leads to."""
    far = far_end_of(link)
    return MEANINGS[reason] if far is None else _words(reason, (far,), are_all_far=True)


def _words(reason: Reason, far: tuple[FarEnd, ...], *, are_all_far: bool) -> str:
    named = " and ".join(map(str, far))
    if reason is not Reason.NO_CREDIT:
        return f"{MEANINGS[reason]}: {named}"
    if are_all_far:
        return " and ".join(each.lacks for each in far)
    return f"{MEANINGS[reason]}, nor has {named}"


def receivers_for(address: Address, side: int, tree: int) -> list[Consumer]:
    """Return the consumers for messages that come from a side of a network, along a tree.

    All of these consumers get a multicast; any other message goes to one of them.
    """
    if not address.remote_ends:
        return address.consumers
    if address.treatment == MULTICAST:
        # placeholder for any sender on that side
        nobody: Any = None
        sender = Producer(nobody, None, 0)
        sender.side, sender.tree = side, tree
        return [each for each in address.consumers if gets_multicast_from(each, sender)]
    serving = list(sides.serving(address, side))
    if address.treatment != CLOSEST or not serving:
        return serving
    nearest = min(each.cost for each in serving)
    return [each for each in serving if each.cost == nearest]


def _look_at(address: Address, side: int, tree: int) -> AddressState:
    found = receiving_addresses(address)
    if found and found != [address]:
        if is_exchange(address):
            # messages that the exchange forwards are sent from here
            side, tree = HERE, OWN_TREE
        # the receivers at those addresses decide, and of several addresses the slowest one
        states = [_look_at_place(each, side, tree) for each in found]
        slowest = min(states, key=lambda state: state.room)
        return attrs.evolve(slowest, senders=len(address.producers), held=_held(address))
    return _look_at_place(address, side, tree)


def _look_at_place(address: Address, side: int, tree: int) -> AddressState:
    consumers = receivers_for(address, side, tree)[:MOST_EXAMINED]
    receivers = Counter(map(blocked_reason, consumers))
    if address.resuming:
        receivers[Reason.RESUMING] += len(address.resuming)
    waiting = len(address.waiting)
    if address.treatment == MULTICAST:
        waiting += sum(len(each.waiting) for each in address.consumers[:MOST_EXAMINED])
        is_open = len(receivers) == 1 and receivers[None] > 0
    else:
        is_open = receivers[None] > 0
    room = _room(address, consumers, side)
    reason = _reason(address, consumers, receivers)
    far: list[FarEnd] = []
    are_all_far = False
    if room <= 0 or not is_open:
        blocked = [each for each in consumers if blocked_reason(each) is reason]
        far = [each for each in (far_end_of(one.link) for one in blocked) if each is not None]
        are_all_far = len(far) == len(blocked)
    return AddressState(
        credit_reason=None if room > 0 else reason,
        flow_reason=None if is_open else reason,
        receivers=dict(receivers),
        senders=len(address.producers),
        room=max(0, room),
        held=_held(address),
        waiting=waiting,
        far=tuple(far[:MOST_NAMED]),
        are_all_far=are_all_far,
    )


def _held(address: Address) -> int:
    """Return the credit that the senders of an address hold."""
    return sum(producer.link.credit for producer in address.producers[:MOST_EXAMINED])


def _room(address: Address, consumers: list[Consumer], side: int) -> int:
    """Return how many more deliveries from `side` these consumers of an address can take."""
    if not address.remote_ends and len(address.consumers) <= MOST_EXAMINED:
        return receiver_room(address)
    if address.remote_ends and address.treatment != MULTICAST:
        return across.room(address, side)
    if address.treatment != MULTICAST:
        return sum(map(room_of, consumers)) - len(address.waiting)
    return min((max(0, room_of(each) - each.waiting.count) for each in consumers), default=0)


def _reason(
    address: Address, consumers: list[Consumer], receivers: Counter[Reason | None]
) -> Reason:
    """Return the reason why deliveries do not leave an address at present."""
    if not consumers:
        return Reason.RESUMING if address.resuming else Reason.NO_CONSUMER
    if address.treatment == MULTICAST:
        # the slowest receiver decides for all
        return blocked_reason(min(consumers, key=_left)) or Reason.WAITING
    with_credit = Counter({each: receivers[each] for each in receivers if each in _WITH_CREDIT})
    if with_credit:
        return with_credit.most_common(1)[0][0]
    if receivers[None]:
        # these receivers are about to be served
        return Reason.WAITING
    return Reason.NO_CREDIT if receivers[Reason.NO_CREDIT] else Reason.DRAINED


def _left(consumer: Consumer) -> tuple[bool, int]:
    """Return a sort key for slowness: blocked receivers first, then by the credit left."""
    return blocked_reason(consumer) is None, int(consumer.link.credit) - len(consumer.waiting)
