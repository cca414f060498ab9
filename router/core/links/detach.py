"""Remove links from their addresses, and resolve the deliveries of lost links.

Deliveries that were not sent yet are released, those that were sent but are unsettled are modified
with delivery-failed, and those that were sent in part are aborted. If a terminus outlives its link
(`suspended`), its unsettled deliveries stay unsettled. Nothing here runs per message.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

from router.amqp import constants
from router.core.addresses import nodes, related
from router.core.deliveries import (
    aborting,
    credit,
    fallbacks,
    max_message_size,
    redelivery,
    sides,
    source_outcomes,
    unsent,
)
from router.core.link_routes import routed_detach
from router.core.links import resuming
from router.core.links.terminus import Terminus, search
from router.core.model import router_outcomes
from router.core.model.address import HERE, MULTICAST, Consumer, Producer
from router.core.model.waiting_queue import WaitingQueue
from router.core.routers import router_traffic
from router.engine.events import LinkDetached, LinkSuspended
from router.engine.link import OutgoingLink
from router.engine.unsettled import Unsettled

if TYPE_CHECKING:
    from router.core.ports import Core
    from router.engine.connection import Connection
    from router.engine.delivery import Delivery
    from router.engine.link import Link

MODIFIED = int(constants.Descriptor.MODIFIED)


def link_lost(forwarder: Core, link: Link, event: LinkDetached | None = None) -> None:
    """Handle a link that is detached, or lost with its session or connection, as `event` says."""
    if link.is_routed:
        routed_detach.link_lost(forwarder, link, event)
        return
    owner = link.owner
    if owner is None:
        return
    terminus: Terminus | None = link.terminus
    forwarder.link_names.leave(link)
    link.owner = None
    stays = terminus is not None and terminus.outlives(event)
    if isinstance(owner, Consumer):
        _consumer_lost(forwarder, owner, stays)
    else:
        _producer_lost(forwarder, owner, stays)
    if terminus is not None and event is not None and stays:
        news = LinkSuspended(link, len(terminus.unsettled) + link.unsettled)
        forwarder.observer.event_received(link.session.connection, news)
        forwarder.suspended.enter(forwarder, terminus, event)
    elif terminus is not None:
        terminus.give_up(forwarder)
    nodes.link_left(forwarder, owner.address, None if stays else link)


def _consumer_lost(forwarder: Core, consumer: Consumer, stays: bool) -> None:
    link = consumer.link
    address = consumer.address
    remove_consumer(forwarder, consumer)
    router_traffic.link_over(address.counters, link)
    is_between_routers = unsent.is_multicast_to_router(consumer)
    current = link.current
    if current is not None:
        # the rest of the delivery may still arrive, but is not sent to anyone
        link.current = None
        forwarder.backlog.drop(current)
        current.discarded = True
        if not current.outgoing_open:
            # the delivery was sent settled, but not in full
            failed = router_outcomes.LOST if is_between_routers else router_outcomes.DELIVERY_FAILED
            forwarder.settlement.settle(current, MODIFIED, failed)
    _resolve(forwarder, link, link.session.outgoing, current, stays, _Sent(forwarder, consumer))
    give_up_waiting(forwarder, consumer)


def _producer_lost(forwarder: Core, producer: Producer, stays: bool) -> None:
    link = producer.link
    remove_producer(forwarder, producer)
    if producer.address is not None:
        router_traffic.link_over(producer.address.counters, link)
    current = link.current
    _resolve(forwarder, link, link.session.incoming, current, stays, _Came(forwarder, link))
    if current is not None:
        link.current = None
        # the delivery that this one resumes is not given up
        current.parent = None
        forwarder.transfer_aborted(current)


class _Losing(Protocol):
    """Resolver of the deliveries of a lost link."""

    def lose(self, delivery: Delivery) -> None:
        """Resolve a delivery, unless it has been settled or belongs to another link by now."""


def _resolve(
    forwarder: Core,
    link: Link,
    unsettled: Unsettled,
    current: Delivery | None,
    stays: bool,
    losing: _Losing,
) -> None:
    """Resolve the unsettled deliveries of a lost link.

    `unsettled` holds the deliveries of the link's session. If there are very many, the last ones
    are resolved in later turns. If the terminus stays, only the incomplete delivery `current` is
    resolved.
    """
    if stays:
        if current is not None:
            # resolved in this turn, so that it is not parked with the others
            losing.lose(current)
        return
    if link.unsettled:
        link.session.connection.deduct_work(link.unsettled)
        found = search(link.terminus, unsettled, link)
        forwarder.turn.deferred.process_each(found, losing.lose)


class _Sent:
    """Resolver of unsettled deliveries that were sent to a receiver whose link is lost."""

    def __init__(self, forwarder: Core, consumer: Consumer) -> None:
        self._forwarder = forwarder
        self._link = consumer.link
        self._address = consumer.address
        self._is_between_routers = unsent.is_multicast_to_router(consumer)

    def lose(self, delivery: Delivery) -> None:
        """Settle a delivery for its sender, because the receiver is lost."""
        if not delivery.outgoing_open or delivery.outgoing is not self._link:
            # its receiver has settled or released it meanwhile
            return
        forwarder, address = self._forwarder, self._address
        self._link.session.close_outgoing(delivery)
        if self._is_between_routers:
            outcome = MODIFIED
            forwarder.settlement.settle(delivery, MODIFIED, router_outcomes.LOST)
        else:
            outcome = source_outcomes.settle_lost(forwarder.settlement, delivery)
        address.current_counters().count_outcome(outcome)


class _Came:
    """Resolver of unsettled deliveries from a sender whose link is lost."""

    def __init__(self, forwarder: Core, link: Link) -> None:
        self._forwarder = forwarder
        self._link = link

    def lose(self, delivery: Delivery) -> None:
        """Remove a delivery from the session of its sender, which can no longer settle it."""
        if delivery.incoming_open and delivery.incoming is self._link:
            self._link.session.close_incoming(delivery)
            self._forwarder.settlement.sender_lost(delivery)


def remove_consumer(forwarder: Core, consumer: Consumer) -> None:
    """Remove a consumer from its address, so that no new deliveries are sent to it."""
    address = consumer.address
    if address.remove_consumer(consumer):
        address.remote_ends -= consumer.side != HERE
        forwarder.network.consumer_left(consumer)
    elif consumer in address.resuming:
        del address.resuming[consumer]
        forwarder.network.address_changed(address)
    address.keeps_octets = redelivery.keeps_messages(address)


def give_up_waiting(forwarder: Core, consumer: Consumer) -> None:
    """Release the messages that no other consumer can take, after a consumer has left."""
    address = consumer.address
    if not address.consumers:
        fallbacks.last_consumer_left(forwarder, address)
    if related.is_being_moved(address):
        # the task that moves the waiting messages gives up the rest
        return
    if address.treatment == MULTICAST or not address.consumers:
        unsent.settle_queue(forwarder, address, consumer.waiting, unsent.verdict_for(consumer))
    else:
        if address.remote_ends:
            sides.receiver_lost(forwarder, address)
        max_message_size.receiver_lost(forwarder, address)


def discard_consumer(forwarder: Core, consumer: Consumer) -> None:
    """Remove a consumer from its address; nothing has been sent to the consumer yet."""
    remove_consumer(forwarder, consumer)
    give_up_waiting(forwarder, consumer)
    nodes.link_left(forwarder, consumer.address, None)


class _Leaving:
    """Last work of a consumer that leaves its address: to complete the current delivery.

    No new delivery begins.
    """

    def go_on(self, forwarder: Core, consumer: Consumer) -> bool:
        """Send more of the current delivery; return False, because no new one may begin."""
        forwarder.queues.serve(consumer)
        return False


_LEAVING = _Leaving()


def quiesce_consumer(forwarder: Core, consumer: Consumer) -> None:
    """Stop sending new deliveries to a consumer.

    The caller detaches the link once everything that was sent is settled.
    """
    address = consumer.address
    if consumer.place < 0:
        return
    remove_consumer(forwarder, consumer)
    give_up_waiting(forwarder, consumer)
    consumer.waiting = WaitingQueue()
    # the address stays in use until what was sent is settled
    consumer.resuming = _LEAVING
    address.resuming[consumer] = None
    forwarder.credit.note(address, None)


def quiesce(forwarder: Core, end: Producer | Consumer) -> None:
    """Stop new deliveries on one of the router's own links; those already begun are completed."""
    if isinstance(end, Consumer):
        quiesce_consumer(forwarder, end)
    elif end.link.is_attached():
        # so that the address gives it no credit either
        end.capacity = 0
        credit.revoke(end.link)


def remove_producer(forwarder: Core, producer: Producer) -> None:
    """Remove a producer from its address; the messages that it has sent stay at the address."""
    address = producer.address
    if address is not None:
        address.remove_producer(producer)
        address.remote_ends -= producer.side != HERE
        forwarder.network.producer_left(address, producer)
        forwarder.credit.note(address, None)


def transfer_aborted(forwarder: Core, delivery: Delivery) -> None:
    """Pass the abort of a delivery on to all receivers that were sent a part of the delivery."""
    if delivery.incoming.is_routed:
        routed_detach.aborted(forwarder, delivery)
        return
    if delivery.address is None:
        _count_unbegun(delivery)
        forwarder.intake.forget(delivery)
        resuming.transfer_aborted(forwarder, delivery)
    elif not delivery.discarded:
        delivery.address.counters.aborted += 1
    forwarder.distribution.pending_copies.stop(delivery)
    aborting.abort_all(forwarder, delivery)
    # the delivery used up credit, even if it was never forwarded
    forwarder.settlement.note_sender(delivery.incoming)


def _count_unbegun(delivery: Delivery) -> None:
    """Count an aborted delivery as ingress, although it was never forwarded."""
    producer = delivery.incoming.owner
    if producer is not None and producer.address is not None:
        producer.address.counters.ingress += 1
        producer.address.counters.aborted += 1


def release_all(forwarder: Core, connection: Connection) -> Iterator[None]:
    """Resolve the unsettled deliveries of a connection's receivers; yield after each link.

    Call this before an orderly close of the connection.
    """
    for session in list(connection.local_sessions.values()):
        for link in list(session.local_links.values()):
            if isinstance(link, OutgoingLink):
                link_lost(forwarder, link)
            yield
