"""Dead letters: move a waiting message to its dead-letter address when its ttl ends.

At the dead-letter address the message waits like any other, without a ttl, and a receiver there
decides its outcome. It is moved only once: a dead-letter address has no dead-letter address itself.
A message that cannot be moved, for example because the dead-letter address has no receiver, is
rejected.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from router.amqp.constants import Descriptor
from router.core.addresses import related
from router.core.deliveries import max_message_size
from router.core.model import router_outcomes
from router.core.model.address import Address, Consumer

if TYPE_CHECKING:
    from router.core.ports import Core
    from router.engine.delivery import Delivery

REJECTED = int(Descriptor.REJECTED)


def expire(forwarder: Core, delivery: Delivery) -> None:
    """Move an expired message to the dead-letter address, or reject it if that is impossible."""
    forwarder.credit.note(delivery.address, None)
    forwarder.outcomes.expired(delivery)
    if move(forwarder, delivery):
        return
    forwarder.queues.note_dequeued(delivery)
    forwarder.backlog.drop(delivery)
    delivery.discarded = True
    forwarder.settlement.settle(delivery, REJECTED, router_outcomes.EXPIRED)


def move(forwarder: Core, delivery: Delivery) -> bool:
    """Move an expired delivery to its dead-letter address; return whether that was possible.

    The delivery must no longer be in a queue.
    """
    table = forwarder.table
    name = table.dead_letter_of(delivery.address.name)
    if name is None:
        return False
    address = table.in_use(name, table.phase_of(name, is_sender=True))
    address = None if address is None else related.served_by(address)
    if address is None or max_message_size.is_too_large(address, delivery):
        return False
    least_busy = max_message_size.least_busy(address, delivery)
    if least_busy is None:
        # all receivers there are on the side that the delivery came from
        return False
    forwarder.backlog.remove_ttl(delivery)
    delivery.address = address
    address.counters.ingress += 1
    address.counters.bytes_in += delivery.held_bytes
    if delivery.settled:
        address.counters.presettled += 1
    forwarder.credit.note(address, None)
    # the delivery goes to one receiver, even if the address is multicast
    _take_in(forwarder, address, delivery, least_busy)
    return True


def _take_in(forwarder: Core, address: Address, delivery: Delivery, least_busy: Consumer) -> None:
    """Queue a delivery for a consumer that can take it now, or else for `least_busy`."""
    if address.remote_ends:
        delivery.lane = 0
        consumer = forwarder.distribution.choose_across(
            address, delivery.size, delivery.incoming.side, 0
        )
    else:
        consumer = forwarder.distribution.choose(address, delivery.size)
    if consumer is None:
        least_busy.waiting.append(delivery)
    else:
        consumer.waiting.append(delivery)
        forwarder.queues.serve(consumer)
