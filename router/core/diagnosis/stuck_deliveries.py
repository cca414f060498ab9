"""Watch deliveries and links regularly: find stuck deliveries, and sample settlement rates.

A delivery is stuck if it has been unsettled for longer than `STUCK_S`. Until it is settled, it
counts as stuck on each of its two links. A scan of all sessions is spread over several checks, so
that a hundred thousand unsettled deliveries do not delay other work. Within a session the oldest
deliveries come first, so the scan of the session stops at the first one that is not old.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from router.engine import serial
from router.engine.connection import Connection
from router.engine.delivery import STUCK_INCOMING, STUCK_OUTGOING, Delivery
from router.engine.link import Link
from router.engine.session import Session
from router.engine.unsettled import Unsettled

# How many seconds a delivery has to be unsettled to count as stuck (as in Dispatch).
STUCK_S = 10.0
# The shortest time between the starts of two rounds, in seconds, and the number of steps at each
# check.
ROUND_S = 5.0
STEPS = 1000


class StuckDeliveries:
    """Periodic check of the links and deliveries of all `connections`, a few at each call."""

    def __init__(self, connections: Callable[[], Iterable[Connection]]) -> None:
        self._connections = connections
        self._now = 0.0
        self._next_round = 0.0
        self._round: Iterator[None] = iter(())

    def tick(self, now: float) -> None:
        """Continue the current scan, or begin the next one when it is due.

        Call it about as often as timers are checked.
        """
        self._now = now
        for _ in range(STEPS):
            try:
                next(self._round)
            except StopIteration:
                if now < self._next_round:
                    return
                self._next_round = now + ROUND_S
                self._round = self._walk()

    def _walk(self) -> Iterator[None]:
        """Examine all links and deliveries; yield after each step, such as one delivery.

        Connections may be lost between steps; the generator does not keep their links in memory.
        """
        for connection in self._connections():
            yield
            sessions = connection.local_sessions
            for channel in list(sessions):
                yield
                if channel in sessions:
                    yield from self._sample_all(sessions[channel].local_links)
                if channel in sessions:
                    yield from self._look_at(sessions[channel])

    def _sample_all(self, links: dict[int, Link]) -> Iterator[None]:
        for handle in list(links):
            link = links.get(handle)
            if link is not None:
                sample(link, self._now)
                # so that the reference is not kept until the next step
                del link
            yield

    def _look_at(self, session: Session) -> Iterator[None]:
        for unsettled, bit in (
            (session.incoming, STUCK_INCOMING),
            (session.outgoing, STUCK_OUTGOING),
        ):
            # stragglers are older than the others
            for number in list(unsettled.stragglers):
                yield
                self._is_old(unsettled.find(number), bit)
            for delivery in _in_order(unsettled):
                yield
                if not self._is_old(delivery, bit):
                    break

    def _is_old(self, delivery: Delivery | None, bit: int) -> bool:
        """Mark a delivery if it is stuck; return whether later deliveries have to be checked, too.

        `bit` is STUCK_INCOMING for the delivery's incoming link, STUCK_OUTGOING for its outgoing
        one.
        """
        if delivery is None or delivery.arrived == 0:
            # the delivery is settled, or its head has not been received yet
            return True
        if self._now - delivery.arrived <= STUCK_S:
            return False
        if not delivery.stuck & bit:
            delivery.stuck |= bit
            link = delivery.incoming if bit == STUCK_INCOMING else delivery.outgoing
            link.stuck += 1
        return True


def _in_order(unsettled: Unsettled) -> Iterator[Delivery | None]:
    """Yield unsettled deliveries, oldest first; yield None for each that has been settled.

    Deliveries may be settled between the steps.
    """
    number = unsettled.base
    while True:
        ahead = serial.distance(unsettled.base, number)
        if ahead < 0:
            # skip those that have been settled meanwhile
            number, ahead = unsettled.base, 0
        if ahead >= unsettled.span:
            return
        yield unsettled.find(number)
        number = serial.add(number, 1)


def sample(link: Link, now: float) -> None:
    """Record how many deliveries a link has settled by now; keep this and the previous record."""
    count = _settled(link)
    if link.samples is None:
        link.samples = (now, count, now, count)
    else:
        then, before, _, _ = link.samples
        link.samples = (now, count, then, before)


def settle_rate(link: Link, now: float) -> int:
    """Return how many deliveries per second a link has settled recently.

    The rate is measured since the older of the two records that `sample` keeps. As with Dispatch,
    released and modified deliveries do not count.
    """
    if link.samples is None:
        return 0
    _, _, then, before = link.samples
    return int((_settled(link) - before) / (now - then)) if now > then else 0


def without_credit_s(link: Link, now: float) -> float:
    """Return for how many seconds a link has had no credit; 0 if it has credit."""
    return 0.0 if link.credit else max(0.0, now - link.no_credit_since)


def is_blocked(link: Link, now: float) -> bool:
    """Return whether a link is blocked: without credit for longer than `STUCK_S`, as in Dispatch.

    The module `blocking` finds the reason.
    """
    return without_credit_s(link, now) > STUCK_S


def _settled(link: Link) -> int:
    return int(link.presettled + link.accepted + link.rejected)
