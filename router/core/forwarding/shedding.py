"""Shed waiting deliveries beyond the memory limit, from the connections that hold the most.

Windows make this rare (docs/decisions/0004). It happens if no receiver takes messages while very
many peers send, or while peers change from small frames to large ones. The router does not stop
reading, because a peer's frames, such as flows, may be what lets messages leave. Instead it gives
up deliveries and informs their senders: unsent deliveries are released; partly sent ones are
aborted, and their outcome is modified with delivery-failed.

If very much waits, or very many addresses are in use, most of this work is done in later turns
(docs/decisions/0095-limits-of-memory-in-later-turns.md).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from router.amqp.constants import Descriptor
from router.core.deliveries import aborting, unsent
from router.core.deliveries.redelivery import PART_KEPT
from router.core.forwarding.forward import Forwarder
from router.core.forwarding.intake import PART_HELD
from router.core.model import router_outcomes
from router.core.model.address import MULTICAST, Address, Consumer
from router.core.model.waiting_queue import WaitingQueue
from router.engine.deferred import STEPS_A_ROUND

if TYPE_CHECKING:
    from router.engine.delivery import Delivery

RELEASED = int(Descriptor.RELEASED)
MODIFIED = int(Descriptor.MODIFIED)
# A search frees 1/PART_FREED of the limit, so that queues are not searched for each message.
PART_FREED = 8
# How many deliveries or addresses are examined in each step, and how many examinations giving up a
# delivery counts as.
EXAMINED_A_STEP = 128
WORK_OF_A_LOSS = 8
# Each step takes as long as this many ordinary ones. Half of the steps that all turns may take in a
# round of the event loop are left to other tasks.
WEIGHT = 4
LEFT_TO_OTHERS = STEPS_A_ROUND // 2
# If nothing could be shed, another search begins when more octets wait, or after this many seconds.
REST_S = 1.0


def set_limit(forwarder: Forwarder, limit_bytes: int) -> None:
    """Set the memory limit in octets; an excess is shed when the turn ends."""
    forwarder.backlog.set_limit(limit_bytes)
    forwarder.redelivery.limit_bytes = limit_bytes // PART_KEPT
    forwarder.intake.limit_bytes = limit_bytes // PART_HELD


class Shedder:
    """Part of the core that sheds deliveries when a router holds more octets than its limit.

    After each search for deliveries to shed, `report` is called with the count of those shed.
    """

    def __init__(self, forwarder: Forwarder, report: Callable[[int], None]) -> None:
        self._forwarder = forwarder
        self._report = report
        self._search: _Search | None = None
        # how many octets waited after a search that gave up nothing, and when that was
        self._left_bytes = 0
        self._ended_at = 0.0

    def tick(self) -> None:
        """Shed the deliveries beyond the limit; very many are shed over several turns.

        Call it at the end of each turn after which more octets wait than the limit allows.
        """
        deferred = self._forwarder.turn.deferred
        search = self._search
        if search is None and self._may_begin():
            self._search = search = _Search(self._forwarder, self._over)
            deferred.add(search)
        # deliveries must not come in faster than they are shed
        while search is not None and deferred.left > LEFT_TO_OTHERS:
            deferred.left -= WEIGHT
            if not search.step():
                return

    def finish(self) -> None:
        """Complete the current search without pauses, because the router stops."""
        search = self._search
        while search is not None and search.step():
            pass

    def _may_begin(self) -> bool:
        backlog = self._forwarder.backlog
        if backlog.held_bytes > self._left_bytes:
            return True
        return self._forwarder.turn.now - self._ended_at >= REST_S

    def _over(self, count: int) -> None:
        self._search = None
        self._left_bytes = 0 if count else self._forwarder.backlog.held_bytes
        self._ended_at = self._forwarder.turn.now
        self._report(count)


class _Search:
    """Deferred task that sheds deliveries of connections that hold more than their share."""

    def __init__(self, forwarder: Forwarder, over: Callable[[int], None]) -> None:
        self._forwarder = forwarder
        self._over = over
        self._addresses = forwarder.table.all_addresses()
        # how many octets one connection may keep
        self._level = 0
        self._count = 0
        self._is_over = False
        self._steps = self._searched()

    def step(self) -> bool:
        """Examine a few deliveries; return whether any are left."""
        if self._is_over:
            # `tick` has finished the search in other turns
            return False
        if sum(1 for _ in islice(self._steps, EXAMINED_A_STEP)) == EXAMINED_A_STEP:
            return True
        self._is_over = True
        self._over(self._count)
        return False

    def _searched(self) -> Iterator[None]:
        """Do the whole search; yield after each delivery or address examined."""
        limit = self._forwarder.backlog.limit_bytes
        level = FairLevel(limit - limit // PART_FREED)
        yield from self._add_up(level)
        while level.step():
            yield
        self._level = level.level
        for address in self._addresses:
            yield
            if address.treatment == MULTICAST:
                for consumer in list(address.consumers):
                    yield
                    if consumer.waiting.count:
                        verdict = unsent.verdict_for(consumer)
                        yield from self._shed_queue(consumer.waiting, verdict)
            elif address.waiting.count:
                yield from self._shed_queue(address.waiting, (RELEASED, b""))
        batches = self._forwarder.backlog.batches
        for batch in list(batches):
            yield
            # one that has been completed since is not given up
            if batch in batches and self._is_too_much(batch):
                self._lose(batch, RELEASED, b"")
                yield from _loss()
        for address in self._addresses:
            yield
            for consumer in list(address.consumers):
                yield
                delivery = consumer.link.current
                if delivery is not None and self._is_too_much(delivery):
                    self._abort(consumer, delivery)
                    yield from _loss()

    def _add_up(self, level: FairLevel) -> Iterator[None]:
        """Add to `level` the octets that each connection holds; yield after each delivery."""
        # references, not ids alone: a connection may be gone before the search is over
        found: dict[int, Any] = {}
        held = (_held(address) for address in self._addresses)
        for some in chain(held, [list(self._forwarder.backlog.batches)]):
            yield
            for delivery in some:
                yield
                if delivery is None:
                    continue
                connection = delivery.incoming.session.connection
                if id(connection) not in found:
                    found[id(connection)] = connection
                    level.add(int(connection.held_bytes))

    def _is_too_much(self, delivery: Delivery) -> bool:
        """Return whether a delivery's connection holds more than its share."""
        held_bytes = delivery.incoming.session.connection.held_bytes
        return bool(delivery.held_bytes and held_bytes > self._level)

    def _shed_queue(self, waiting: WaitingQueue, verdict: tuple[int, bytes]) -> Iterator[None]:
        """Shed those deliveries in a queue whose connections hold more than their share.

        The least urgent and latest deliveries are shed first.
        """
        for delivery in reversed(list(waiting)):
            yield
            # a delivery that has been taken since is not given up
            if self._is_too_much(delivery) and waiting.remove(delivery):
                self._give_up(delivery, *verdict)
                yield from _loss()

    def _give_up(self, delivery: Delivery, outcome: int, state: bytes) -> None:
        forwarder, address = self._forwarder, delivery.address
        forwarder.queues.note_dequeued(delivery)
        forwarder.credit.note(address, None)
        if delivery.discarded:
            # its sender has aborted it since it left its queue
            return
        self._lose(delivery, outcome, state)

    def _lose(self, delivery: Delivery, outcome: int, state: bytes) -> None:
        forwarder = self._forwarder
        counters = delivery.address.current_counters()
        counters.shed += 1
        if delivery.settled:
            counters.dropped_presettled += 1
            delivery.incoming.dropped_presettled += 1
        forwarder.backlog.drop(delivery)
        delivery.discarded = True
        forwarder.settlement.settle(delivery, outcome, state)
        self._count += 1

    def _abort(self, consumer: Consumer, delivery: Delivery) -> None:
        forwarder = self._forwarder
        delivery.address.current_counters().shed += 1
        aborting.abort(forwarder, delivery)
        if unsent.is_multicast_to_router(consumer):
            forwarder.settlement.settle(delivery, MODIFIED, router_outcomes.LOST)
        else:
            forwarder.settlement.settle_lost(delivery)
        self._count += 1


class FairLevel:
    """Computation of the fair share of `room`: each holder may keep up to `level` octets.

    The room that smaller holders leave is shared among the others.
    """

    def __init__(self, room: int) -> None:
        self.level = room
        self._left = room
        # a heap, because of very many holdings only the few smallest are examined
        self._holdings: list[int] = []

    def add(self, held: int) -> None:
        """Add a holder that has this many octets."""
        heapq.heappush(self._holdings, held)

    def step(self) -> bool:
        """Examine the smallest holding that is left; return whether to continue."""
        if not self._holdings:
            return False
        fair = self._left // len(self._holdings)
        held = heapq.heappop(self._holdings)
        if held > fair:
            self.level = fair
            return False
        self._left -= held
        return True


def _held(address: Address) -> Iterator[Any]:
    """Yield each delivery that waits at an address or is sent in part; None for idle consumers."""
    if address.treatment != MULTICAST:
        yield from list(address.waiting)
    for consumer in list(address.consumers):
        yield consumer.link.current
        if address.treatment == MULTICAST:
            yield from list(consumer.waiting)


def _loss() -> Iterator[None]:
    """Yield WORK_OF_A_LOSS times: giving up a delivery takes as long as that many steps."""
    for _ in range(WORK_OF_A_LOSS):
        yield
