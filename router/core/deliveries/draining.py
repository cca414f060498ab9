"""Drains: send a draining receiver all available messages, including those that senders have.

A drain asks the sender of a link to send all available messages and then use up the credit (section
2.6.7). In a router usually no message waits for a receiver without credit, because senders get
credit only when receivers give some (`credit`). A receiver that polls by draining would therefore
never get a message. So if a drain gives the address's senders new credit, they get a short time to
use it; otherwise the drain ends immediately (docs/decisions/0031).
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

# How much time senders get, in seconds: more than the round trip of most networks. Because timers
# are checked at this interval, a drain may take twice as long.
PATIENCE_S = 0.25
# How many drains one call of `finish` ends.
MOST_FINISHED = 1000
# How many links can be examined in the time that it takes to process a frame of a message.
LINKS_A_FRAME = 4
# With more links than this, sharing an address's credit takes several turns (`credit`).
MOST_ASKED = 2048


def answer(forwarder: Core, consumer: Consumer) -> None:
    """Answer the drain of a receiver for which no message waits, by using up the credit.

    If the drain gives senders new credit, the receiver's credit is used up only after PATIENCE_S.
    """
    if consumer.link.is_routed:
        # the sender at the other end answers
        forwarder.credit.note(consumer.address, None)
        return
    now = forwarder.turn.now
    ends_at = forwarder.queues.drains.get(consumer)
    if forwarder.distribution.pending_copies.is_at(consumer.address):
        # a copy for the receiver may still be made
        forwarder.queues.drains[consumer] = now + PATIENCE_S
    elif ends_at is None and _ask(forwarder, consumer):
        forwarder.queues.drains[consumer] = now + PATIENCE_S
    elif ends_at is None or ends_at <= now:
        forwarder.queues.drains.pop(consumer, None)
        link = consumer.link
        link.session.use_up_credit(link)


def finish(forwarder: Core) -> None:
    """End the drains that have given senders enough time.

    Call it regularly while there are drains. Each call ends a limited number of them.
    """
    now = forwarder.turn.now
    drains = forwarder.queues.drains
    for consumer, ends_at in list(islice(drains.items(), MOST_FINISHED)):
        if ends_at > now:
            continue
        if _is_draining(consumer):
            # if a message is being sent, the drain ends after it
            forwarder.queues.serve(consumer)
        if drains.pop(consumer, None) is not None and _is_draining(consumer):
            # at the end of the queue, so that all are served even if there are very many
            drains[consumer] = ends_at


def _is_draining(consumer: Consumer) -> bool:
    link = consumer.link
    return link.owner is consumer and link.drain and link.credit > 0


def _ask(forwarder: Core, consumer: Consumer) -> bool:
    """Share the draining receiver's credit among senders; return whether any may get more."""
    address = consumer.address
    if (
        address.related_addresses is None
        and len(address.producers) + len(address.consumers) > MOST_ASKED
    ):
        # senders get some time in any case
        forwarder.credit.note(address, None)
        return len(address.producers) > 0
    senders = related.producers(address)
    # a peer may drain with each of its flows
    links = len(senders) + len(address.consumers)
    consumer.link.session.connection.deduct_work(links // LINKS_A_FRAME)
    before = _held(senders)
    if address.related_addresses is None and address.remote_ends == 0:
        replenish_at_once(address)
    elif address.related_addresses is None:
        across.replenish_across(address)
    else:
        # with very many destinations it is not known yet whether senders get credit
        return related_credit.replenish(forwarder, [address]) or _held(senders) > before
    return _held(senders) > before


def _held(senders: list[Producer]) -> int:
    return sum(producer.link.credit for producer in senders)
