"""Find stuck receivers of multicast addresses, and drop them if the configuration says so.

The slowest receiver of a multicast decides how much its senders may send, and when they get an
outcome. A receiver is stuck while it accepts no messages although a copy or a sender waits, or
while it settles none of its deliveries. If the address's rule says so, a receiver is dropped when
it has been stuck for too long and holds up other receivers: its copies are settled as modified and
its link is closed with an error (docs/decisions/0084).

The receivers of all multicasts are checked one after another, a limited number each time that
timers are checked. Links to other routers are never dropped: each router drops only receivers that
are attached to itself. A link that this router attached by itself is not dropped either.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

import attrs

from router.amqp.constants import Condition
from router.core.deliveries import unsent
from router.core.diagnosis.blocking import MEANINGS, Reason, blocked_reason
from router.core.forwarding.forward import Forwarder
from router.core.model.address import HERE, MULTICAST, Address, Consumer
from router.core.model.waiting_queue import WaitingQueue
from router.engine import attaching
from router.engine.link import Link
from router.errors import AmqpError, Scope

# How often a round of checks begins, and how many steps of it are taken each time that timers are
# checked.
ROUND_S = 0.5
STEPS = 500
# How many addresses, or senders of a multicast, are passed in one step.
A_STEP = 50

# Reasons that are not the receiver's fault: it waits for the rest of a message, does not accept
# messages of that size, or is first sent the deliveries that its link resumes.
_NOT_ITS_OWN = frozenset((Reason.IN_MESSAGE, Reason.TOO_LARGE, Reason.RESUMING))
# The states of a receiver that could make progress.
_FIT = _NOT_ITS_OWN | {None}


class Inactivity(StrEnum):
    """Kind of a stuck receiver's inactivity: it accepts no messages, or settles none."""

    TAKES_NOTHING = "takes_nothing"
    SETTLES_NOTHING = "settles_nothing"


@attrs.define
class Progress:
    """Record of a receiver's progress at the last check, and since when it has made none.

    Times are in seconds on the turn's clock.
    """

    deliveries: int = 0
    settled: int = 0
    sent_bytes: int = 0
    takes_nothing_since: float | None = None
    settles_nothing_since: float | None = None

    def stuck_since(self) -> tuple[float, Inactivity] | None:
        """Return since when the receiver is stuck, and what it fails to do; None if not stuck.

        A receiver that neither accepts nor settles anything counts as `TAKES_NOTHING`, because it
        cannot settle what it does not accept. The time is then the earlier of
        `takes_nothing_since` and `settles_nothing_since`.
        """
        takes, settles = self.takes_nothing_since, self.settles_nothing_since
        if takes is None:
            return None if settles is None else (settles, Inactivity.SETTLES_NOTHING)
        return takes if settles is None else min(takes, settles), Inactivity.TAKES_NOTHING


@attrs.frozen
class DroppedReceiver:
    """Record of the receiver that was last dropped from an address."""

    at: float
    connection: int
    container: str
    link_name: str
    stuck_s: float
    text: str


class StuckReceivers:
    """Periodic check of the receivers of a router's multicasts, which drops stuck ones."""

    def __init__(self, forwarder: Forwarder) -> None:
        self._forwarder = forwarder
        self._now = 0.0
        self._next_round = 0.0
        self._round: Iterator[None] = iter(())
        # receivers to drop, at the end of this check: octets of a detach that was just written
        # would look like progress of the other receivers on the same connection
        self._doomed: list[Consumer] = []

    def tick(self, now: float) -> None:
        """Check the next receivers, and drop those that have been stuck for too long.

        Call it in a turn, each time that timers are checked; `now` is in seconds.
        """
        self._now = now
        self._go_on()
        doomed, self._doomed = self._doomed, []
        for consumer in doomed:
            # the receiver may have left or made progress since it was checked
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
        """Check each receiver of each multicast once; yield about once for each."""
        for number, address in enumerate(self._forwarder.table.addresses()):
            if number % A_STEP == 0:
                yield
            if address.treatment != MULTICAST or not address.consumers:
                continue
            for _ in range(len(address.producers) // A_STEP):
                yield
            yield from self._look_at(address)

    def _look_at(self, address: Address) -> Iterator[None]:
        """Check the receivers of one multicast address; note those to drop in `_doomed`."""
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
            elif stuck_s < limit_s / 2 and blocked_reason(consumer) in _FIT:
                # this receiver is held up; those that have been stuck for long do not count
                holds_up_others = True
        if holds_up_others:
            self._doomed.extend(doomed)


def _has_waiting_sender(address: Address) -> bool:
    """Return whether a sender has no credit and so may be waiting for the slowest receiver."""
    senders = [address.producers]
    if address.related_addresses is not None:
        senders += [each.producers for each in address.related_addresses.fed_by.values()]
    return any(each.link.credit == 0 for producers in senders for each in producers)


def _has_receivers_elsewhere(address: Address) -> bool:
    """Return whether messages to an address may also go to receivers at other addresses or routers.

    Those receivers are also delayed if a receiver at this address is stuck, but this check does not
    know their state.
    """
    if address.related_addresses is not None and address.related_addresses.fed_by:
        return True
    return any(producer.side != HERE for producer in address.producers)


def stuck_since(consumer: Consumer) -> tuple[float, Inactivity] | None:
    """Return since when a receiver is stuck, and what it fails to do; None if it is not stuck."""
    return None if consumer.progress is None else consumer.progress.stuck_since()


def _may_be_dropped(consumer: Consumer) -> bool:
    session = consumer.link.session
    return consumer.side == HERE and session.owner is None and consumer.link.is_attached()


def note_progress(consumer: Consumer, is_wanted: bool, now: float) -> None:
    """Compare a receiver's progress with that at the last check, and note when it stopped.

    `is_wanted` says whether a sender waits for credit; `now` is in seconds.
    """
    link = consumer.link
    blocked = blocked_reason(consumer)
    current = link.current
    holds_up = (
        blocked is not None
        and blocked not in _NOT_ITS_OWN
        and (is_wanted or consumer.waiting.count > 0 or current is not None)
    )
    # a receiver cannot settle a message that it has not received in full
    has = link.unsettled - (current is not None and current.outgoing_open)
    if not holds_up and has == 0:
        consumer.progress = None
        return
    progress = consumer.progress
    if progress is None:
        progress = consumer.progress = Progress()
    connection = link.session.connection
    settled = link.deliveries - link.unsettled
    # octets that were written earlier may still be leaving, over a slow connection
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


def text_of(consumer: Consumer, lack: Inactivity) -> str:
    """Describe what a stuck receiver fails to do, and the reason if that is known."""
    if lack is Inactivity.SETTLES_NOTHING:
        return "it settles none of its deliveries"
    blocked = blocked_reason(consumer)
    return (
        "it accepts no transfers"
        if blocked is None
        else f"it accepts no transfers: {_WORDS[blocked]}"
    )


_WORDS = {**MEANINGS, Reason.NO_CREDIT: "it gives no credit"}


def drop(forwarder: Forwarder, consumer: Consumer, stuck_s: float, text: str) -> None:
    """Settle all copies of a receiver as modified, and close its link with an error.

    Copies that were already sent are settled as on any lost link: modified with delivery-failed, or
    with the source's default outcome. `stuck_s` is how many seconds the receiver was stuck, and
    `text` says why. Call it in a turn.
    """
    link, address = consumer.link, consumer.address
    connection = link.session.connection
    copies = consumer.waiting.count + link.unsettled
    waiting, consumer.waiting = consumer.waiting, WaitingQueue()
    unsent.settle_queue(forwarder, address, waiting, unsent.MODIFIED)
    address.counters.receivers_dropped += 1
    address.last_dropped = DroppedReceiver(
        forwarder.turn.now, connection.number, container_of(link), link.name, stuck_s, text
    )
    forwarder.credit.note(address, None)
    error = AmqpError(
        Condition.RESOURCE_LIMIT_EXCEEDED,
        f"the receiver was stuck for {stuck_s:.0f} s ({text}); dropped with {copies} deliveries",
        Scope.LINK,
    )
    attaching.detach(link, True, error)


def container_of(link: Link) -> str:
    """Return the container-id of a link's peer."""
    opened = link.session.connection.remote_open
    return "" if opened is None else str(opened.container_id)
