"""Settle messages that wait for receivers that have left. None of this runs once per message."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

from router.amqp.constants import Descriptor
from router.core.addresses import nodes, related
from router.core.model import router_outcomes
from router.core.model.address import HERE, MULTICAST, Address, Consumer
from router.core.model.waiting_queue import WaitingQueue

if TYPE_CHECKING:
    from router.core.ports import Core
    from router.engine.delivery import Delivery

# Outcome to settle with: its code, and its encoded state, which is empty if it has no fields.
Verdict = tuple[int, bytes]

RELEASED: Final[Verdict] = (int(Descriptor.RELEASED), b"")
MODIFIED: Final[Verdict] = (int(Descriptor.MODIFIED), b"")
LOST_ON_THE_WAY: Final[Verdict] = (int(Descriptor.MODIFIED), router_outcomes.LOST)
# How many deliveries are settled in the turn in which the last receiver leaves.
GIVEN_UP_AT_ONCE = 512


def is_multicast_to_router(consumer: Consumer) -> bool:
    """Return whether a consumer is a multicast's link to another router."""
    return consumer.side != HERE and consumer.address.treatment == MULTICAST


def verdict_for(consumer: Consumer) -> Verdict:
    """Return the outcome for messages that waited only for a consumer that has left."""
    return LOST_ON_THE_WAY if is_multicast_to_router(consumer) else RELEASED


def settle(forwarder: Core, address: Address, verdict: Verdict, delivery: Delivery) -> None:
    """Settle a delivery that has left its queue without being sent."""
    forwarder.queues.note_dequeued(delivery)
    if delivery.discarded:
        # its sender has aborted it meanwhile
        return
    outcome, state = verdict
    forwarder.backlog.drop(delivery)
    delivery.discarded = True
    address.current_counters().count_outcome(outcome)
    forwarder.settlement.settle(delivery, outcome, state)


def settle_queue(
    forwarder: Core,
    address: Address,
    waiting: WaitingQueue,
    verdict: Verdict,
    and_then: Callable[[], None] = lambda: None,
) -> None:
    """Settle the deliveries in a queue that no longer has a consumer.

    If there are very many, the last ones are settled in later turns; if a new consumer attaches
    meanwhile, the remaining ones stay in the queue. `and_then` is called at the end, unless the
    queue was empty from the start.
    """

    def taken() -> Iterator[Delivery]:
        is_shared = waiting is address.waiting
        while waiting.count and not (
            is_shared and (address.consumers or related.is_being_moved(address))
        ):
            yield waiting.popleft()

    def over() -> None:
        if is_later:
            # its waiting messages kept the address in use
            nodes.link_left(forwarder, address, None)
        and_then()

    is_later = False
    if waiting.count:
        act = partial(settle, forwarder, address, verdict)
        forwarder.turn.deferred.process_each(taken(), act, over, GIVEN_UP_AT_ONCE)
        is_later = True
