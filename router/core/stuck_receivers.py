"""Stuck receivers of multicast addresses, and what becomes of them.

The slowest receiver of a multicast decides how much its senders may send, and when they hear an
outcome. A receiver is stuck while it takes nothing, although somebody waits for that, or settles
nothing of what it has. Where the address's rule says so it is dropped once that has lasted for too
long and there are others whom it holds up: its copies are settled as modified and its link is
closed with an error. (docs/decisions/0084)

All receivers of multicasts are looked at in rounds, a bounded number at each look at the clocks. A
link to another router or an edge stands for many receivers and is never dropped: the router that
those are connected to does that. Nor is a link that this router attached by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

import attrs

from router.amqp.constants import Condition, Descriptor
from router.core.address import HERE, MULTICAST, Address, Consumer
from router.core.blocking import MEANINGS, Reason, of_receiver
from router.core.forward import Forwarder
from router.engine import attaching
from router.engine.link import Link
from router.errors import AmqpError, Scope

MODIFIED = int(Descriptor.MODIFIED)
# How often all are looked at, if there is time for it, and so many steps are taken at a look.
ROUND_S = 0.5
STEPS = 500
# So many addresses that are no multicasts, or senders, are passed over in a step.
A_STEP = 50

# What is no fault of a receiver's: it waits for a sender, or gets first what its link resumes.
_NOT_ITS_OWN = frozenset((Reason.IN_MESSAGE, Reason.TOO_LARGE, Reason.RESUMING))
# The states of a receiver that could go on.
_FIT = _NOT_ITS_OWN | {None}


class Lack(StrEnum):
    """What a stuck receiver does not do."""

    TAKES_NOTHING = "takes_nothing"
    SETTLES_NOTHING = "settles_nothing"


@attrs.define
class Progress:
    """What a receiver had done when it was looked at last, and since when it lacks something."""

    deliveries: int = 0
    settled: int = 0
    sent_bytes: int = 0
    takes_nothing_since: float | None = None
    settles_nothing_since: float | None = None

    def stuck_since(self) -> tuple[float, Lack] | None:
        """Since when the receiver is stuck, by what has lasted longest, and what it does not do:
        who takes nothing cannot settle it, either.
        """
        takes, settles = self.takes_nothing_since, self.settles_nothing_since
        if takes is None:
            return None if settles is None else (settles, Lack.SETTLES_NOTHING)
        return takes if settles is None else min(takes, settles), Lack.TAKES_NOTHING


@attrs.frozen
class Dropped:
    """The last receiver that an address dropped."""

    at: float
    connection: int
    container: str
    link_name: str
    stuck_s: float
    text: str


class StuckReceivers:
    """Looks at the receivers of a router's multicasts, and drops those that it is to drop."""

    def __init__(self, forwarder: Forwarder) -> None:
        self._forwarder = forwarder
        self._now = 0.0
        self._next_round = 0.0
        self._round: Iterator[None] = iter(())
        # those that are to be dropped by the end of this look: what is said to them then would
        # look like progress of their connections
        self._doomed: list[Consumer] = []

    def look(self, now: float) -> None:
        """Go on for a little; to be called in a turn, about as often as clocks are looked at."""
        self._now = now
        self._go_on()
        doomed, self._doomed = self._doomed, []
        for consumer in doomed:
            # it may be gone, or have gone on, since it was looked at
            stuck = stuck_since(consumer)
            if consumer.link.owner is consumer and stuck is not None:
                stuck_s = now - stuck[0]
                if stuck_s >= consumer.address.drop_after_s:
                    drop(self._forwarder, consumer, stuck_s, text_of(consumer, stuck[1]))

    def _go_on(self) -> None:
        for _ in range(STEPS):
            try:
                next(self._round)
            except StopIteration:
                if self._now < self._next_round:
                    return
                self._next_round = self._now + ROUND_S
                self._round = self._walk()

    def _walk(self) -> Iterator[None]:
        """Look at each receiver once; a step is as much as looking at one of them."""
        for number, address in enumerate(self._forwarder.table.addresses()):
            if number % A_STEP == 0:
                yield
            if address.treatment != MULTICAST or not address.consumers:
                continue
            for _ in range(len(address.producers) // A_STEP):
                yield
            yield from self._look_at(address)

    def _look_at(self, address: Address) -> Iterator[None]:
        """Look at the receivers of a multicast."""
        is_wanted = _has_waiting_sender(address)
        limit_s = address.drop_after_s
        doomed = []
        holds_up_others = _has_receivers_elsewhere(address)
        for consumer in list(address.consumers):
            yield
            if consumer.link.owner is not consumer:
                continue
            if _may_be_dropped(consumer):
                note_progress(consumer, is_wanted, self._now)
            stuck = stuck_since(consumer)
            stuck_s = 0.0 if stuck is None else self._now - stuck[0]
            if limit_s and stuck_s >= limit_s:
                doomed.append(consumer)
            elif stuck_s < limit_s / 2 and of_receiver(consumer) in _FIT:
                # one that got stuck at about the same time does not count
                holds_up_others = True
        if holds_up_others:
            self._doomed.extend(doomed)


def _has_waiting_sender(address: Address) -> bool:
    """Whether a sender has no credit, and so may wait for the slowest receiver."""
    senders = [address.producers]
    if address.ties is not None:
        senders += [each.producers for each in address.ties.fed_by.values()]
    return any(each.link.credit == 0 for producers in senders for each in producers)


def _has_receivers_elsewhere(address: Address) -> bool:
    """Whether what is sent here may also be for receivers at other addresses or routers, of which
    nothing is known here: they are held up together with those that are here.
    """
    if address.ties is not None and address.ties.fed_by:
        return True
    return any(producer.side != HERE for producer in address.producers)


def stuck_since(consumer: Consumer) -> tuple[float, Lack] | None:
    """Since when a receiver is stuck, and what it lacks; None where it is not stuck."""
    return None if consumer.progress is None else consumer.progress.stuck_since()


def _may_be_dropped(consumer: Consumer) -> bool:
    session = consumer.link.session
    return consumer.side == HERE and session.owner is None and consumer.link.is_attached()


def note_progress(consumer: Consumer, is_wanted: bool, now: float) -> None:
    """Compare what a receiver has done with what it had done before.

    `is_wanted` says whether a sender waits for credit.
    """
    link = consumer.link
    blocked = of_receiver(consumer)
    current = link.current
    holds_up = (
        blocked is not None
        and blocked not in _NOT_ITS_OWN
        and (is_wanted or consumer.waiting.count > 0 or current is not None)
    )
    # nobody can settle what has not come whole
    has = link.unsettled - (current is not None and current.outgoing_open)
    if not holds_up and has == 0:
        consumer.progress = None
        return
    progress = consumer.progress
    if progress is None:
        progress = consumer.progress = Progress()
    connection = link.session.connection
    settled = link.deliveries - link.unsettled
    # what was written before may be under way yet, over a slow line: nothing can be said to it
    is_moving = connection.outbox.output.size() > 0 and connection.sent_bytes != progress.sent_bytes
    if not holds_up or is_moving or link.deliveries != progress.deliveries:
        progress.takes_nothing_since = None
    if has == 0 or is_moving or settled != progress.settled:
        progress.settles_nothing_since = None
    if holds_up and progress.takes_nothing_since is None:
        progress.takes_nothing_since = now
    if has and progress.settles_nothing_since is None:
        progress.settles_nothing_since = now
    progress.deliveries = link.deliveries
    progress.settled = settled
    progress.sent_bytes = connection.sent_bytes


def text_of(consumer: Consumer, lack: Lack) -> str:
    """Say what a stuck receiver does not do, and why as far as that is known."""
    if lack is Lack.SETTLES_NOTHING:
        return "it settles nothing of what it has"
    blocked = of_receiver(consumer)
    return "it takes nothing" if blocked is None else f"it takes nothing: {_WORDS[blocked]}"


_WORDS = {**MEANINGS, Reason.NO_CREDIT: "it gives no credit"}


def drop(forwarder: Forwarder, consumer: Consumer, stuck_s: float, text: str) -> None:
    """Settle all copies of a receiver as modified, and close its link with an error; to be called
    in a turn.

    What was sent is modified with delivery-failed, as for any link that is lost. All this is done
    at once, whether or not the peer ever reads that its link is closed.
    """
    link, address = consumer.link, consumer.address
    connection = link.session.connection
    copies = consumer.waiting.count + link.unsettled
    while consumer.waiting.count:
        copy = consumer.waiting.popleft()
        forwarder.count_out(copy)
        forwarder.backlog.drop(copy)
        copy.discarded = True
        address.counters.count_outcome(MODIFIED)
        forwarder.settle(copy, MODIFIED, b"")
    address.counters.receivers_dropped += 1
    address.last_dropped = Dropped(
        forwarder.turn.now, connection.number, container_of(link), link.name, stuck_s, text
    )
    forwarder.note_credit(address, None)
    error = AmqpError(
        Condition.RESOURCE_LIMIT_EXCEEDED,
        f"stuck for {stuck_s:.0f} s, dropped with {copies} deliveries: {text}",
        Scope.LINK,
    )
    attaching.detach(link, True, error)


def container_of(link: Link) -> str:
    """Return the container-id of a link's peer."""
    opened = link.session.connection.remote_open
    return "" if opened is None else str(opened.container_id)
