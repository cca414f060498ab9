"""Abort deliveries whose remaining frames will not arrive, wherever they are in the router."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from router.core.ports import Core
    from router.engine.delivery import Delivery


def abort_all(forwarder: Core, delivery: Delivery) -> None:
    """Abort a delivery whose remaining frames will not arrive; if it was copied, abort all copies.

    If there are very many copies, the last ones are aborted in later turns.
    """
    copies = delivery.copies
    if copies is None:
        abort(forwarder, delivery)
        return
    # a peer may abort very often
    delivery.incoming.session.connection.deduct_work(len(copies))
    forwarder.turn.deferred.process_each(copies, partial(abort, forwarder))


def abort(forwarder: Core, delivery: Delivery) -> None:
    """Abort a waiting or partly sent delivery whose remaining frames will not arrive."""
    forwarder.outcomes.aborted(delivery)
    delivery.discarded = True
    forwarder.backlog.drop(delivery)
    link = delivery.outgoing
    if link is None:
        address = delivery.address
        if address is not None:
            if delivery.waits_in is not None and delivery.waits_in.remove(delivery):
                forwarder.queues.note_dequeued(delivery)
                forwarder.credit.note(address, None)
            forwarder.table.leave(address)
        return
    consumer = link.owner
    if link.current is delivery and consumer is not None:
        # this sends the abort to the receiver as soon as the window allows
        forwarder.queues.serve(consumer)
