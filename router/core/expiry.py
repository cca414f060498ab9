"""Messages whose ttl ends while they wait (section 3.2.1): one look at the queues, when it is time.

Nothing is polled for a message: the backlog knows the earliest moment at which something that
waits expires, and only then are the queues walked. A message that is taken out of its queue later
than that, but before this look, is found expired there (`Forwarder.serve`).
"""

from __future__ import annotations

from typing import Any

from router.core import dead_letters
from router.core.address import MULTICAST
from router.core.forward import Forwarder
from router.core.waiting import WaitingQueue


def expire(forwarder: Forwarder) -> None:
    """Give up whatever has expired by now; called when `backlog.next_expiry` has come.

    Of very many that expire at once, the last are given up in later turns.
    """
    forwarder.backlog.next_expiry = 0.0
    expired: list[Any] = []
    for address in forwarder.table.all_addresses():
        if address.waiting.count:
            _expire_queue(forwarder, address.waiting, expired)
        if address.treatment == MULTICAST:
            for consumer in address.consumers:
                if consumer.waiting.count:
                    _expire_queue(forwarder, consumer.waiting, expired)

    def give_up(delivery: Any) -> None:
        # it may have been given up since by who knew of it, such as its sender
        if not delivery.discarded:
            dead_letters.give_up(forwarder, delivery)

    forwarder.turn.deferred.go_through(expired, give_up)


def _expire_queue(forwarder: Forwarder, waiting: WaitingQueue, expired: list[Any]) -> None:
    backlog = forwarder.backlog
    expired.extend(waiting.take_expired(forwarder.turn.now))
    deadline = waiting.next_deadline
    if deadline and (backlog.next_expiry == 0 or deadline < backlog.next_expiry):
        backlog.next_expiry = deadline
