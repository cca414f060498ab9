"""Drains: give a draining receiver all available messages, including those of its senders.

In section 2.6.7 the sender of a drained link sends all available messages, then uses up the credit.
A router has no messages of its own: senders hold credit only where receivers do (`credit`), so
nothing waits for a receiver that had none. A receiver that only ever drains, in order to poll,
would never get a message if only waiting messages counted. So if a drain allows senders to send
more than before, they are given a moment to do so. If it does not, they have had that moment
before, and the drain ends at once (docs/decisions/0031).
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from router.core.addresses import related
from router.core.deliveries import across, related_credit
from router.core.deliveries.credit import replenish_at_once
from router.core.model.address import Consumer, Producer

if TYPE_CHECKING:
    from router.core.ports import Core

# How long senders have, in seconds: more than the round trip of most networks. Timers are checked
# at this interval too, so it may be twice as long.
PATIENCE_S = 0.25
# How many drains are ended at a time.
MOST_FINISHED = 1000
# How many links can be examined in the time of a frame that comes once per message.
LINKS_A_FRAME = 4
# With more links than these it takes several turns to share an address's credit (`credit`).
MOST_ASKED = 2048


def answer(forwarder: Core, consumer: Consumer) -> None:
    """Use up the credit of a draining receiver for which nothing waits, now or in a moment."""
    if consumer.link.is_routed:
        # the sender at the other end answers
        forwarder.credit.note(consumer.address, None)
        return
    now = forwarder.turn.now
    ends_at = forwarder.queues.drains.get(consumer)
    if forwarder.distribution.pending_copies.is_at(consumer.address):
        # a copy may be under way to it
        forwarder.queues.drains[consumer] = now + PATIENCE_S
    elif ends_at is None and _ask(forwarder, consumer):
        forwarder.queues.drains[consumer] = now + PATIENCE_S
    elif ends_at is None or ends_at <= now:
        forwarder.queues.drains.pop(consumer, None)
        link = consumer.link
        link.session.use_up_credit(link)


def finish(forwarder: Core) -> None:
    """End the drains whose senders had their moment; called now and then while there are any.

    If there are very many, the next ones end with the next call.
    """
    now = forwarder.turn.now
    drains = forwarder.queues.drains
    for consumer, ends_at in list(islice(drains.items(), MOST_FINISHED)):
        if ends_at > now:
            continue
        if _is_draining(consumer):
            # if a message is under way, the drain ends after it
            forwarder.queues.serve(consumer)
        if drains.pop(consumer, None) is not None and _is_draining(consumer):
            # at the end of the queue, so that each of very many is reached
            drains[consumer] = ends_at


def _is_draining(consumer: Consumer) -> bool:
    link = consumer.link
    return link.owner is consumer and link.drain and link.credit > 0


def _ask(forwarder: Core, consumer: Consumer) -> bool:
    """Grant senders the credit that the drain makes room for; return whether any may send more."""
    address = consumer.address
    if (
        address.related_addresses is None
        and len(address.producers) + len(address.consumers) > MOST_ASKED
    ):
        # senders get a moment even so
        forwarder.credit.note(address, None)
        return len(address.producers) > 0
    senders = related.producers(address)
    # a peer may drain with each of its flows
    links = len(senders) + len(address.consumers)
    consumer.link.session.connection.count_work(links // LINKS_A_FRAME)
    before = _held(senders)
    if address.related_addresses is None and address.remote_ends == 0:
        replenish_at_once(address)
    elif address.related_addresses is None:
        across.replenish_across(address)
    else:
        # with very many destinations the answer is not known yet
        return related_credit.replenish(forwarder, [address]) or _held(senders) > before
    return _held(senders) > before


def _held(senders: list[Producer]) -> int:
    return sum(producer.link.credit for producer in senders)
