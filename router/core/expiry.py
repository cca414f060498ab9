"""Messages whose ttl ends while they wait (section 3.2.1): one look at the queues, when it is time.

Nothing is polled for a message: the backlog knows the earliest moment at which something that
waits expires, and only then are the queues walked. A message that is taken out of its queue later
than that, but before this look, is found expired there (`Forwarder.serve`).
"""

from __future__ import annotations

from router.core import dead_letters
from router.core.address import MULTICAST
from router.core.forward import Forwarder
from router.core.waiting import WaitingQueue


def expire(forwarder: Forwarder) -> None:
    """Give up whatever has expired by now; called when `backlog.next_expiry` has come."""
    forwarder.backlog.next_expiry = 0.0
    for address in forwarder.table.all_addresses():
        _expire_queue(forwarder, address.waiting)
        if address.treatment == MULTICAST:
            for consumer in address.consumers:
                _expire_queue(forwarder, consumer.waiting)


def _expire_queue(forwarder: Forwarder, waiting: WaitingQueue) -> None:
    backlog = forwarder.backlog
    now = forwarder.turn.now
    expired = waiting.take_out(lambda each: each.deadline != 0 and each.deadline <= now)
    for delivery in waiting:
        deadline = delivery.deadline
        if deadline and (backlog.next_expiry == 0 or deadline < backlog.next_expiry):
            backlog.next_expiry = deadline
    for delivery in expired:
        dead_letters.give_up(forwarder, delivery)
