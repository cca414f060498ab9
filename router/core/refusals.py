"""What nobody gets, for something is wrong with it: its sender is told what."""

from __future__ import annotations

from typing import Any

from router.amqp.constants import Descriptor
from router.core import parting, verdicts
from router.core.address import Address
from router.errors import AmqpError, Scope

REJECTED = int(Descriptor.REJECTED)


def unaddressed(forwarder: Any, delivery: Any, verdict: bytes) -> None:
    """An anonymous sender's message has no address, or one that it cannot be sent to."""
    counters = forwarder.table.nowhere.counters
    counters.ingress += 1
    counters.bytes_in += delivery.size
    counters.no_destination += 1
    if delivery.settled:
        counters.presettled += 1
        counters.dropped_presettled += 1
        delivery.incoming.presettled += 1
        delivery.incoming.dropped_presettled += 1
    elif delivery.incoming_open:
        counters.count_told(REJECTED, 0.0, 1)
    delivery.discarded = True
    forwarder.settle(delivery, REJECTED, verdict)


def malformed(forwarder: Any, address: Address, delivery: Any) -> None:
    """A message that is none: its sender is told, its receivers see it aborted."""
    problem = forwarder.intake.problem
    condition = forwarder.intake.condition
    address.counters.malformed += 1
    delivery.discarded = True
    parting.abort_all(forwarder, delivery)
    if delivery.settled:
        # there is no outcome to tell it by
        link = delivery.incoming
        error = AmqpError(condition, problem, Scope.LINK)
        link.session.connection.fail_link(link, error)
    else:
        forwarder.settle(delivery, REJECTED, verdicts.rejected(condition, problem))
