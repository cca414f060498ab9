"""When more waits than the router may hold: whoever has most waiting loses what came last.

Windows see to it that this is rare (docs/decisions/0004): it takes many peers at once, or some that
turn from small frames to large ones, while nobody takes what they send. Nobody is kept from saying
what could let something leave, so what is too much is given up instead, honestly: what has not been
sent is released, and what was half sent is aborted and modified with delivery-failed.
"""

from __future__ import annotations

from typing import Any

from router.amqp.constants import Descriptor
from router.core import parting, verdicts
from router.core.address import MULTICAST, Address
from router.core.forward import Forwarder
from router.core.intake import PART_HELD
from router.core.redelivery import PART_KEPT
from router.core.waiting import WaitingQueue

RELEASED = int(Descriptor.RELEASED)
MODIFIED = int(Descriptor.MODIFIED)
# This part of the limit is freed at once: the queues are not walked for each message too many.
PART_FREED = 8


def set_limit(forwarder: Forwarder, limit_bytes: int) -> None:
    """From now on the router may hold so much; what is too much by then goes as the turn ends."""
    forwarder.backlog.set_limit(limit_bytes)
    forwarder.redelivery.limit_bytes = limit_bytes // PART_KEPT
    forwarder.intake.limit_bytes = limit_bytes // PART_HELD


def shed(forwarder: Forwarder) -> int:
    """Give up deliveries until less waits than may; called when it is more. Returns how many."""
    limit = forwarder.backlog.limit_bytes
    addresses = list(forwarder.table.all_addresses())
    holdings = {
        id(connection): int(connection.held_bytes)
        for address in addresses
        for connection in _connections(address)
    }
    level = fair_level(list(holdings.values()), limit - limit // PART_FREED)
    count = 0
    for address in addresses:
        if address.treatment == MULTICAST:
            for consumer in address.consumers:
                verdict = parting.verdict_of_unsent(consumer)
                count += _shed_queue(forwarder, consumer.waiting, level, verdict)
        else:
            count += _shed_queue(forwarder, address.waiting, level, (RELEASED, b""))
    for address in addresses:
        for consumer in address.consumers:
            delivery = consumer.link.current
            if delivery is not None and _is_too_much(delivery, level):
                delivery.address.counters.shed += 1
                parting.abort(forwarder, delivery)
                if parting.speaks_for_others(consumer):
                    forwarder.settle(delivery, MODIFIED, verdicts.LOST)
                else:
                    forwarder.settle_lost(delivery)
                count += 1
    return count


def fair_level(holdings: list[int], room: int) -> int:
    """How much each may keep, so that all together keep no more than `room`.

    Who has less than that keeps all of it, and what it leaves over is the others'.
    """
    left = room
    ascending = sorted(holdings)
    for at, held in enumerate(ascending):
        fair = left // (len(ascending) - at)
        if held > fair:
            return fair
        left -= held
    return room


def _queues(address: Address) -> list[WaitingQueue]:
    if address.treatment == MULTICAST:
        return [consumer.waiting for consumer in address.consumers]
    return [address.waiting]


def _connections(address: Address) -> list[Any]:
    """Those that brought something which waits at the address or is half sent from it."""
    found = [each.incoming.session.connection for queue in _queues(address) for each in queue]
    for consumer in address.consumers:
        delivery = consumer.link.current
        if delivery is not None:
            found.append(delivery.incoming.session.connection)
    return found


def _is_too_much(delivery: Any, level: int) -> bool:
    return bool(delivery.held_bytes and delivery.incoming.session.connection.held_bytes > level)


def _shed_queue(
    forwarder: Forwarder, waiting: WaitingQueue, level: int, verdict: tuple[int, bytes]
) -> int:
    """Release what is least urgent and came last, as long as its connection has too much."""
    kept = []
    count = 0
    deliveries = list(waiting)
    waiting.clear()
    for delivery in reversed(deliveries):
        if _is_too_much(delivery, level):
            _give_up(forwarder, delivery, *verdict)
            count += 1
        else:
            kept.append(delivery)
    waiting.extend(reversed(kept))
    return count


def _give_up(forwarder: Forwarder, delivery: Any, outcome: int, state: bytes) -> None:
    address = delivery.address
    address.counters.shed += 1
    if delivery.settled:
        address.counters.dropped_presettled += 1
        delivery.incoming.dropped_presettled += 1
    forwarder.count_out(delivery)
    forwarder.note_credit(address, None)
    forwarder.backlog.drop(delivery)
    delivery.discarded = True
    forwarder.settle(delivery, outcome, state)
