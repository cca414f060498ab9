"""Links come to addresses and leave them; what a lost link leaves behind is resolved here.

The contract: what was not sent yet is released, what was sent and is unsettled is modified with
delivery-failed, what was half sent is aborted. None of this runs once a message.
"""

from __future__ import annotations

from typing import Any

from router.amqp import constants
from router.amqp.constants import (
    Condition,
    SenderSettleMode,
    TerminusExpiryPolicy,
)
from router.amqp.performatives import Coordinator, Source, Target
from router.core import redelivery, sizes, stealing, terms, verdicts
from router.core.address import MULTICAST, Consumer, Producer
from router.engine import attaching, opening
from router.engine.events import LinkAttachReceived, LinkDetached, OpenReceived
from router.engine.link import IncomingLink, OutgoingLink
from router.errors import AmqpError, Scope

RELEASED = int(constants.Descriptor.RELEASED)
MODIFIED = int(constants.Descriptor.MODIFIED)


def event_received(forwarder: Any, connection: Any, event: Any) -> None:
    """Act on what concerns links, and on opens that are to be refused; the rest is for others."""
    if isinstance(event, LinkAttachReceived):
        attach_received(forwarder, connection, event.link)
    elif isinstance(event, LinkDetached):
        link_lost(forwarder, event.link)
    elif isinstance(event, OpenReceived):
        elsewhere = forwarder.table.redirects.of_connection(event.remote_open.hostname)
        if elsewhere is not None:
            opening.refuse(connection, elsewhere)


# Coming.


def attach_received(forwarder: Any, connection: Any, link: Any) -> None:
    """Accept a peer's attach and put the link on its address, or refuse it."""
    try:
        holder = stealing.holder_of(forwarder, link)
        if isinstance(link, OutgoingLink):
            _accept_receiver(forwarder, link)
        else:
            _accept_sender(forwarder, connection, link)
    except AmqpError as error:
        if error.scope is not Scope.LINK:
            raise
        attaching.refuse(link, error)
    else:
        stealing.take_over(forwarder, link, holder)


def _accept_receiver(forwarder: Any, link: OutgoingLink) -> None:
    """The peer receives: its source names the address."""
    remote = link.remote_attach
    source = remote.source
    if source is None:
        raise AmqpError(Condition.INVALID_FIELD, "a receiver needs a source", Scope.LINK)
    agreed = terms.agree(source)
    text, address = _enter(forwarder, link, source, is_sender=False)
    consumer = Consumer(link, address)
    consumer.shows_passage = link.session.connection.settings.shows_annotations
    link.owner = consumer
    link.terms = agreed
    address.consumers.append(consumer)
    address.keeps = redelivery.keeps(address)
    # What the router does not do (filters, browsing, termini that outlive their link) is not
    # echoed: a peer sees from the answer what it did not get (section 2.6.3). Messages that come
    # in settled go out settled, so `unsettled` cannot be promised (section 2.8.2).
    granted = Source(
        address=text,
        expiry_policy=TerminusExpiryPolicy.LINK_DETACH,
        dynamic=source.dynamic,
        default_outcome=source.default_outcome,
        outcomes=terms.told(agreed),
        capabilities=(),
    )
    mode = remote.snd_settle_mode
    attaching.accept(
        link,
        granted,
        remote.target if remote.target is not None else Target(),
        snd_settle_mode=SenderSettleMode.MIXED if mode == SenderSettleMode.UNSETTLED else mode,
    )
    forwarder.note_credit(address, None)


def _accept_sender(forwarder: Any, connection: Any, link: IncomingLink) -> None:
    """The peer sends: its target names the address, or none for an anonymous relay."""
    remote = link.remote_attach
    target = remote.target
    if isinstance(target, Coordinator):
        raise AmqpError(
            Condition.PRECONDITION_FAILED, "the router has no transaction coordinator", Scope.LINK
        )
    if target is None:
        raise AmqpError(Condition.INVALID_FIELD, "a sender needs a target", Scope.LINK)
    capacity = connection.settings.link_capacity
    if target.address is None and not target.dynamic:
        producer = Producer(link, None, capacity)
        granted = Target(expiry_policy=TerminusExpiryPolicy.LINK_DETACH)
    else:
        text, address = _enter(forwarder, link, target, is_sender=True)
        producer = Producer(link, address, capacity)
        address.producers.append(producer)
        granted = Target(
            address=text,
            expiry_policy=TerminusExpiryPolicy.LINK_DETACH,
            dynamic=target.dynamic,
        )
    link.owner = producer
    # Each is settled as its sender wishes, however its receiver is (docs/decisions/0033).
    attaching.accept(link, remote.source if remote.source is not None else Source(), granted)
    forwarder.note_credit(producer.address, producer)


def _enter(forwarder: Any, link: Any, terminus: Any, *, is_sender: bool) -> tuple[str, Any]:
    """The address that a terminus names or asks to be made, and the text to answer with."""
    if terminus.dynamic:
        kept = stealing.node_kept(forwarder, link, terminus)
        if kept is not None:
            return terminus.address, kept
        text, address = forwarder.table.enter_dynamic()
        address.creator = link
        return text, address
    text = terminus.address or ""
    if not text:
        raise AmqpError(Condition.INVALID_FIELD, "a source needs an address", Scope.LINK)
    elsewhere = forwarder.table.redirect_link(text, is_sender=is_sender)
    if elsewhere is not None:
        raise elsewhere
    address = forwarder.table.enter(text)
    if address is None:
        raise AmqpError(Condition.NOT_FOUND, f"node not found: {text}", Scope.LINK)
    return text, address


# Going.


def link_lost(forwarder: Any, link: Any) -> None:
    """A link is detached, or lost with its session or connection."""
    owner = link.owner
    if owner is None:
        return
    forwarder.link_names.leave(link)
    link.owner = None
    if isinstance(owner, Consumer):
        _consumer_lost(forwarder, owner)
    else:
        _producer_lost(forwarder, owner)
    address = owner.address
    if address is None:
        return
    if address.creator is link:
        _delete_node(address)
    forwarder.note_credit(address, None)
    forwarder.table.leave(address)


def _delete_node(address: Any) -> None:
    """A dynamic node goes with the link that asked for it; who else uses it is told."""
    address.is_dynamic = False
    address.creator = None
    gone = AmqpError(
        Condition.RESOURCE_DELETED, f"the dynamic node {address.name} is deleted", Scope.LINK
    )
    for owner in [*address.producers, *address.consumers]:
        attaching.detach(owner.link, True, gone)


def _consumer_lost(forwarder: Any, consumer: Consumer) -> None:
    link = consumer.link
    address = consumer.address
    session = link.session
    address.consumers.remove(consumer)
    address.keeps = redelivery.keeps(address)
    current = link.current
    if current is not None:
        # The rest of it may still come in; nobody is there to take it.
        link.current = None
        forwarder.backlog.drop(current)
        current.discarded = True
        if not current.outgoing_open:
            # sent as settled, and yet not taken
            forwarder.settle(current, MODIFIED, verdicts.DELIVERY_FAILED)
    session.connection.count_work(session.outgoing.span)
    for delivery in session.outgoing.of_link(link):
        session.close_outgoing(delivery)
        address.counters.count_outcome(terms.settle_lost(forwarder, delivery))
    if address.treatment == MULTICAST or not address.consumers:
        while consumer.waiting:
            delivery = consumer.waiting.popleft()
            forwarder.count_out(delivery)
            forwarder.backlog.drop(delivery)
            delivery.discarded = True
            address.counters.count_outcome(RELEASED)
            forwarder.settle(delivery, RELEASED, b"")
    else:
        sizes.receiver_lost(forwarder, address)


def _producer_lost(forwarder: Any, producer: Producer) -> None:
    link = producer.link
    session = link.session
    if producer.address is not None:
        producer.address.producers.remove(producer)
    current = link.current
    session.connection.count_work(session.incoming.span)
    for delivery in session.incoming.of_link(link):
        session.close_incoming(delivery)
        forwarder.sender_lost(delivery)
    if current is not None:
        link.current = None
        forwarder.transfer_aborted(current)


def abort(forwarder: Any, delivery: Any) -> None:
    """Give up a delivery whose rest will not come, wherever it is on its way."""
    delivery.discarded = True
    forwarder.backlog.drop(delivery)
    link = delivery.outgoing
    if link is None:
        address = delivery.address
        if address is not None:
            delivery.incoming.session.connection.count_work(len(address.waiting))
            for waiting in [address.waiting, *(c.waiting for c in address.consumers)]:
                if waiting.remove(delivery):
                    forwarder.count_out(delivery)
                    forwarder.note_credit(address, None)
                    break
            forwarder.table.leave(address)
        return
    consumer = link.owner
    if link.current is delivery and consumer is not None:
        # tells the receiver so, as soon as the window allows
        forwarder.serve(consumer)


# Room.


def serve_connection(forwarder: Any, connection: Any) -> None:
    """Let the links of a connection take what waits for them, beginning with another each time.

    One link may fill the socket again by itself; the next time the turn is another's.
    """
    consumers = [
        link.owner
        for session in connection.local_sessions.values()
        for link in session.local_links.values()
        if isinstance(link, OutgoingLink) and link.owner is not None
    ]
    if not consumers:
        return
    connection.count_work(len(consumers))
    start = connection.rotation % len(consumers)
    connection.rotation = start + 1
    for consumer in consumers[start:] + consumers[:start]:
        link = consumer.link
        # another may have taken what kept a drain from being answered
        if consumer.waiting or link.current is not None or link.drain:
            forwarder.serve(consumer)
        forwarder.note_credit(consumer.address, None)


def release_all(forwarder: Any, connection: Any) -> None:
    """Before a connection is closed for a shutdown: resolve what its receivers hold."""
    for session in list(connection.local_sessions.values()):
        for link in list(session.local_links.values()):
            if isinstance(link, OutgoingLink):
                link_lost(forwarder, link)
