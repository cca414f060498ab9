"""End routed links: pass the detach or loss of one end on to the other end.

A detach is passed on unchanged. If one end is lost with its session or connection, the router
detaches the other end, with the same error as Dispatch. If the lost end is a container that
received deliveries, those that it did not settle are modified with delivery-failed, and those that
were not sent to it are released. No outcomes are sent if the container's terminus outlives the link
(docs/decisions/0047-routed-links-lost.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from router.amqp import constants
from router.amqp.constants import Condition, TerminusExpiryPolicy
from router.amqp.peek import PRIORITY
from router.amqp.performatives import Attach, Coordinator, Error
from router.amqp.types import Symbol
from router.core.model import router_outcomes
from router.core.routers import router_traffic
from router.engine import attaching
from router.engine.events import LinkDetached
from router.engine.link import IncomingLink
from router.errors import AmqpError, Scope

if TYPE_CHECKING:
    from router.core.link_routes.routed_links import RoutedLink
    from router.core.ports import Core
    from router.engine.delivery import Delivery
    from router.engine.link import Link

RELEASED = int(constants.Descriptor.RELEASED)
MODIFIED = int(constants.Descriptor.MODIFIED)
TRANSACTIONAL = int(constants.Descriptor.TRANSACTIONAL_STATE)
NO_STATE = 0
RECEIVED = int(constants.Descriptor.RECEIVED)
# Beginning of the state of a transfer that is posted in a transaction.
POSTED = b"\x00\x53\x34"
# Condition and description are Dispatch's; programs compare them.
LOST = "qd:routed-link-lost"
LOST_WORDS = "Connectivity to the peer container was lost"


@attrs.frozen
class FinalDetach:
    """Content of the detach for one end of a routed link whose other end has ended."""

    closed: bool
    error: AmqpError | None


def connection_lost(error: Error | None = None) -> AmqpError:
    """Return the error for one end of a routed link whose other end is lost.

    `error` is the reason of the loss, if it is known.
    """
    info = None
    if error is not None:
        info = {Symbol("condition"): error.condition}
        if error.description:
            info[Symbol("description")] = error.description
    return AmqpError(LOST, LOST_WORDS, Scope.LINK, info)


def survives(link: Link, frame: Attach) -> bool:
    """Return whether an attach declares that the container's terminus outlives the link."""
    terminus = frame.target if isinstance(link, IncomingLink) else frame.source
    return (getattr(terminus, "timeout", 0) or 0) > 0 or (
        getattr(terminus, "expiry_policy", None) is TerminusExpiryPolicy.NEVER
    )


def unregister(forwarder: Core, routed: RoutedLink) -> None:
    """Remove a routed link that has ended from the tables of the router."""
    forwarder.link_names.leave(routed.peer)
    forwarder.link_names.leave_forwarded(routed.holding, routed.peer)
    forwarder.link_routes.left(routed.peer)
    forwarder.routed.leave(routed)


def link_lost(forwarder: Core, link: Link, event: LinkDetached | None) -> None:
    """Handle the loss of one end of a routed link; `event` says how it was lost."""
    routed: RoutedLink = link.terminus
    _disown(link)
    if routed.is_lost:
        other = routed.other(link)
        if routed.ending is not None and other is not None and other.owner is None:
            # the receiver has left before it received all deliveries
            routed.ending = None
            routed.awaits_answer = False
            _drop_current(forwarder, link)
            _drop_waiting(forwarder, routed)
            _close_outgoing(forwarder, link)
            retire_address(forwarder, routed)
            attaching.answer_detach(routed.peer, routed.closes, None)
        return
    if routed.address is None:
        # the container has not answered
        if link is routed.peer:
            farewell = _farewell(routed, link, event)
            give_up(forwarder, routed, farewell)
        return
    routed.is_lost = True
    if link is not routed.peer and event is not None and not event.lost and event.error:
        error = event.error
        if error.condition != Condition.STOLEN:
            forwarder.link_routes.ended(routed.peer, str(error.condition), error.description or "")
    unregister(forwarder, routed)
    farewell = _farewell(routed, link, event)
    if link is routed.peer and event is not None and not event.lost and event.by_peer:
        # the container answers the detach
        routed.awaits_answer = True
        routed.closes = event.closed
    link.session.connection.deduct_work(link.unsettled)
    if isinstance(link, IncomingLink):
        _sender_lost(forwarder, routed, link, farewell)
    else:
        _receiver_lost(forwarder, routed, link, event, farewell)


def retire_address(forwarder: Core, routed: RoutedLink) -> None:
    """Retire the address of a routed link, once neither of its ends uses it."""
    if routed.address is not None:
        forwarder.outcomes.end_run()
        forwarder.table.leave_routed(routed.address)


def give_up(forwarder: Core, routed: RoutedLink, farewell: FinalDetach) -> None:
    """Detach the link to a container that has not answered, because the peer's link has ended."""
    routed.is_lost = True
    unregister(forwarder, routed)
    routed.detach(farewell.closed, farewell.error)


def _farewell(routed: RoutedLink, link: Link, event: LinkDetached | None) -> FinalDetach:
    """Return the content of the detach for the other end of a routed link that has lost `link`."""
    if event is not None and not event.lost:
        error = event.error
        if error is None:
            return FinalDetach(event.closed, None)
        if not event.by_peer and error.condition == Condition.STOLEN:
            # the link that now has the name takes over the container's terminus
            return FinalDetach(False, None)
        told = AmqpError(str(error.condition), error.description or "", Scope.LINK, error.info)
        return FinalDetach(event.closed, told)
    is_container = link is not routed.peer
    if is_container and isinstance(routed.peer.remote_attach.target, Coordinator):
        problem = (
            "the link to the transaction coordinator was lost: its transactions are rolled back"
        )
        return FinalDetach(True, AmqpError(Condition.TRANSACTION_ROLLBACK, problem, Scope.LINK))
    stays = routed.address is not None and _stays(routed)
    why = event.error if is_container and event is not None else None
    return FinalDetach(not stays, connection_lost(why))


def _stays(routed: RoutedLink) -> bool:
    """Return whether the terminus that the container has granted outlives the link."""
    return routed.link is not None and survives(routed.peer, routed.link.remote_attach)


# The sender's end.


def _sender_lost(forwarder: Core, routed: RoutedLink, link: Link, farewell: FinalDetach) -> None:
    """Send the lost sender's complete deliveries to the receiver, then detach the receiver.

    Deliveries for which the receiver has no credit are dropped.
    """
    current = link.current
    _close_incoming(forwarder, link)
    if current is not None:
        link.current = None
        aborted(forwarder, current)
    address, other = routed.address, routed.other(link)
    assert address is not None
    assert other is not None
    # there is no longer a sender to give credit to
    address.producers.clear()
    routed.ending = farewell
    consumer = other.owner
    if consumer is not None:
        forwarder.queues.serve(consumer)
        consumer.resuming = routed
    end_if_done(forwarder, routed)


def end_if_done(forwarder: Core, routed: RoutedLink) -> None:
    """Detach the receiver of a lost sender, once it has all deliveries for which it has credit."""
    farewell, address = routed.ending, routed.address
    if farewell is None or address is None:
        return
    link = routed.ends[1]
    waits = address.waiting.count > 0 and link.credit > 0
    if waits or link.current is not None:
        return
    routed.ending = None
    _drop_waiting(forwarder, routed)
    _close_outgoing(forwarder, link)
    _end(link, farewell)
    retire_address(forwarder, routed)


def aborted(forwarder: Core, delivery: Delivery) -> None:
    """Abort a delivery on a routed link.

    The receiver gets an aborted transfer even if no part of the delivery was sent to it before,
    because the delivery has used up one of the receiver's credits.
    """
    delivery.discarded = True
    producer = delivery.incoming.owner
    if delivery.address is None:
        if producer is None:
            return
        delivery.address = producer.address
        producer.address.counters.ingress += 1
        delivery.tag = delivery.incoming_tag
        delivery.priority = PRIORITY
        producer.address.waiting.append(delivery)
    address = delivery.address
    address.counters.aborted += 1
    forwarder.backlog.drop(delivery)
    if address.consumers:
        forwarder.queues.serve(address.consumers[0])


# The receiver's end.


def _receiver_lost(
    forwarder: Core,
    routed: RoutedLink,
    link: Link,
    event: LinkDetached | None,
    farewell: FinalDetach,
) -> None:
    """Resolve unsettled deliveries of a sender whose receiver is lost, then detach the sender."""
    sender = routed.other(link)
    assert sender is not None
    speaks = (
        sender is routed.peer
        and (event is None or event.lost)
        and farewell.closed
        and not isinstance(sender.remote_attach.target, Coordinator)
    )
    _drop_current(forwarder, link)
    _close_outgoing(forwarder, link)
    _LastWords(forwarder, routed, sender, farewell, speaks=speaks).begin()


class _LastWords:
    """Task that resolves deliveries of a sender whose receiver is lost, and detaches the sender.

    Outcomes are sent to the sender only if `speaks` is True: the receiver was a container, and was
    lost without a detach. If there are very many deliveries, the last ones are resolved in later
    turns. Messages that the sender sends meanwhile are resolved as well.
    """

    def __init__(
        self,
        forwarder: Core,
        routed: RoutedLink,
        sender: Link,
        farewell: FinalDetach,
        *,
        speaks: bool,
    ) -> None:
        self._forwarder = forwarder
        self._routed = routed
        self._sender = sender
        self._farewell = farewell
        self._speaks = speaks
        self._unsent: set[Delivery] = set()

    def begin(self) -> None:
        """Resolve all deliveries that are unsettled now."""
        self._unsent = set(_drop_waiting(self._forwarder, self._routed))
        deliveries = self._sender.session.incoming.search(self._sender)
        self._forwarder.turn.deferred.process_each(deliveries, self._resolve, self._end)

    def _resolve(self, delivery: Delivery) -> None:
        if delivery.incoming_open and delivery.incoming is self._sender:
            if self._speaks:
                _tell(self._forwarder, delivery, is_sent=delivery not in self._unsent)
            self._sender.session.close_incoming(delivery)

    def _end(self) -> None:
        if self._sender.unsettled:
            # the sender has sent more since the search began
            self.begin()
            return
        _drop_waiting(self._forwarder, self._routed)
        if self._routed.address is not None:
            self._routed.address.consumers.clear()
        _end(self._sender, self._farewell)
        retire_address(self._forwarder, self._routed)


def _tell(forwarder: Core, delivery: Delivery, *, is_sent: bool) -> None:
    """Send a sender the outcome of a delivery: modified if it was sent on, else released.

    No outcome is sent for a delivery in a transaction, or for one whose outcome was sent before.
    """
    if (delivery.state or b"").startswith(POSTED) or delivery.outcome not in (NO_STATE, RECEIVED):
        return
    link = delivery.incoming
    settles = int(link.attach.rcv_settle_mode) == 0
    code, octets = (MODIFIED, router_outcomes.DELIVERY_FAILED) if is_sent else (RELEASED, b"")
    delivery.address.counters.count_outcome(code)
    forwarder.outcomes.count_for_sender(delivery, code)
    link.session.send_state_to_sender(delivery, settles, code, octets, 0, len(octets))


def _drop_current(forwarder: Core, link: Link) -> None:
    current, link.current = link.current, None
    if current is not None:
        forwarder.backlog.drop(current)
        current.discarded = True


def _drop_waiting(forwarder: Core, routed: RoutedLink) -> list[Delivery]:
    address = routed.address
    dropped = []
    while address is not None and address.waiting.count:
        delivery = address.waiting.popleft()
        forwarder.backlog.drop(delivery)
        delivery.discarded = True
        dropped.append(delivery)
    return dropped


def _close_incoming(forwarder: Core, link: Link) -> None:
    session = link.session

    def close(delivery: Delivery) -> None:
        if delivery.incoming_open and delivery.incoming is link:
            session.close_incoming(delivery)

    forwarder.turn.deferred.process_each(session.incoming.search(link), close)


def _close_outgoing(forwarder: Core, link: Link) -> None:
    session = link.session

    def close(delivery: Delivery) -> None:
        if delivery.outgoing_open and delivery.outgoing is link:
            session.close_outgoing(delivery)

    forwarder.turn.deferred.process_each(session.outgoing.search(link), close)


def _disown(link: Link) -> None:
    """Separate a link from its address, and add the link's deliveries to the address's counters."""
    owner, link.owner = link.owner, None
    if owner is not None:
        router_traffic.link_over(owner.address.counters, link)


def _end(link: Link, farewell: FinalDetach) -> None:
    _disown(link)
    attaching.detach(link, farewell.closed, farewell.error)
