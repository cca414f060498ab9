"""Give up waiting messages when their ttl ends (section 3.2.1).

Waiting messages are not polled: `Backlog.deadlines` knows when the next message expires. If an
expired message is taken from its queue before `expire` runs, `QueueService.serve` notices it.
"""

from __future__ import annotations

from typing import Any

from router.core.deliveries import dead_letters
from router.core.forwarding.forward import Forwarder

# Seconds until an expired delivery that is in no queue yet is examined again.
AGAIN_S = 1.0


def expire(forwarder: Forwarder) -> None:
    """Give up all expired deliveries; call it when `backlog.deadlines.next` is reached.

    If very many expire at once, the last ones are given up in later turns.
    """
    deadlines = forwarder.backlog.deadlines
    due = deadlines.take_due(forwarder.turn.now)

    def look_at(found: tuple[int, Any]) -> None:
        number, delivery = found
        now = forwarder.turn.now
        if not deadlines.is_due(delivery, number, now):
            # it was given up or sent meanwhile, or has to wait a little longer
            return
        if delivery.waits_in is not None:
            delivery.waits_in.remove(delivery)
            dead_letters.expire(forwarder, delivery)
        elif delivery.chunks is not None and not delivery.started:
            deadlines.enter(delivery, now, now + AGAIN_S)

    found = ((number, delivery) for number, slot in due for delivery in slot)
    forwarder.turn.deferred.process_each(found, look_at)
