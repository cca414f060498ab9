"""Attach links: accept an attach and add the link to its address, or refuse it with the reason.

`detach` handles links that leave. Nothing here runs per message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from router.amqp.constants import Condition, SenderSettleMode
from router.amqp.performatives import Coordinator, Rejected, Source, Target
from router.amqp.types import Symbol
from router.core.addresses import nodes, phases, sources, tenants
from router.core.addresses.access import tenant_of
from router.core.addresses.table import address_name
from router.core.deliveries import fallbacks, redelivery, source_outcomes
from router.core.links import (
    admission,
    azure_clients,
    cbs,
    control_links,
    detach,
    resuming,
    resumption,
    route_links,
    stealing,
    suspended,
)
from router.core.model import own_links
from router.core.model.address import HERE, MESH, NO_TREE, Consumer, Producer
from router.core.routers.names import MANAGEMENT_NODE
from router.engine import attaching, beginning, opening
from router.engine.events import (
    ConnectionClosed,
    LinkAttached,
    LinkAttachReceived,
    LinkDetached,
    LinkRefused,
    OpenReceived,
    SessionBegun,
    SessionEnded,
)
from router.engine.link import IncomingLink, OutgoingLink
from router.engine.states import LinkState
from router.errors import AmqpError, Scope

if TYPE_CHECKING:
    from router.core.model.address import Address
    from router.core.ports import Core
    from router.engine.connection import Connection
    from router.engine.link import Link

_EMPTY: Final = Source()


def event_received(forwarder: Core, connection: Connection, event: object) -> None:
    """Handle the events that concern links; refuse an open that is redirected or not allowed."""
    if isinstance(event, LinkAttachReceived):
        attach_received(forwarder, connection, event.link)
    elif isinstance(event, LinkDetached):
        admission.link_ended(event.link)
        forwarder.reply_nodes.link_ended(event.link)
        detach.link_lost(forwarder, event.link, event)
        own_links.link_detached(forwarder, event)
    elif isinstance(event, LinkRefused):
        admission.link_ended(event.link)
        forwarder.reply_nodes.link_ended(event.link)
    elif isinstance(event, LinkAttached):
        own_links.link_attached(forwarder, event.link)
    elif isinstance(event, SessionBegun):
        own_links.session_begun(forwarder, event.session)
    elif isinstance(event, SessionEnded):
        forwarder.suspended.session_ended(forwarder, event.session)
        own_links.session_ended(forwarder, event)
    elif isinstance(event, ConnectionClosed):
        forwarder.suspended.connection_closed(forwarder, connection)
        forwarder.reply_nodes.connection_closed(connection)
        if connection.access is not None:
            connection.access.closed()
    elif isinstance(event, OpenReceived):
        refusal = None
        if forwarder.may_redirect(connection):
            refusal = forwarder.table.redirects.error_for_connection(event.remote_open.hostname)
        if refusal is None:
            refusal = forwarder.on_open(connection)
        if refusal is not None:
            opening.refuse(connection, refusal)


def opened_by_us(forwarder: Core, connection: Connection) -> None:
    """Decide about the peer of a connection that this router has opened; close it if refused."""
    refusal = forwarder.on_open(connection)
    if refusal is not None:
        opening.close(connection, refusal)


# Attaching.


def attach_received(forwarder: Core, connection: Connection, link: Link) -> None:
    """Accept a peer's attach and add the link to its address, or refuse it."""
    if forwarder.network.attach_received(link):
        return
    try:
        if control_links.is_control(link):
            forwarder.on_control(link)
            return
        claims_node = cbs.node_of(connection)
        if claims_node is not None and cbs.is_to_node(link):
            claims_node.attach_received(forwarder, link)
            return
        if not admission.admit(forwarder, link):
            return
        holder = stealing.link_to_replace(forwarder, link)
        route = forwarder.link_routes.route_of(link)
        if holder is not None and (route is not None or holder.is_routed):
            if route is None and not _has_terminus(link):
                raise AmqpError(
                    Condition.INVALID_FIELD,
                    "a link that is forwarded to a container cannot be recovered by its name: its "
                    "attach needs a source or target",
                    Scope.LINK,
                )
            # a terminus at a container is resumed there, so the old link has to end first
            stealing.close_stolen(forwarder, link, holder)
            holder = None
        if route is not None:
            route_links.forward(forwarder, link, route)
            return
        if _is_put_off(forwarder, link, holder):
            return
        if holder is not None:
            # the link may have been closed meanwhile
            holder = forwarder.link_names.holder(link)
        if isinstance(link, OutgoingLink):
            _accept_receiver(forwarder, link, holder)
        elif isinstance(link, IncomingLink):
            _accept_sender(forwarder, connection, link, holder)
    except AmqpError as error:
        if error.scope is not Scope.LINK:
            raise
        # Frames of its traceback refer to the error. Without the traceback, all of them are freed
        # now, and not by the garbage collector.
        attaching.refuse(link, error.with_traceback(None))
    else:
        stealing.take_over(forwarder, link, holder)


def decided(forwarder: Core, link: Link, refusal: AmqpError | None) -> None:
    """Continue an attach that was put off to a later turn: accept it, or refuse it if so decided.

    The link may have ended meanwhile: the peer may have detached it, or its connection may be lost.
    """
    if link.state != LinkState.ATTACH_RCVD:
        return
    try:
        if refusal is None:
            attach_received(forwarder, link.session.connection, link)
        else:
            attaching.refuse(link, refusal)
    except AmqpError as error:
        # the answer does not fit into the peer's frames; in a later turn nobody else handles that
        beginning.end(link.session, error)


def _has_terminus(link: Link) -> bool:
    """Return whether an attach names the terminus that is at the router."""
    remote = link.remote_attach
    if isinstance(link, OutgoingLink):
        return remote.source not in (None, _EMPTY)
    return remote.target is not None


def _is_put_off(forwarder: Core, link: Link, holder: Link | None) -> bool:
    """Return whether the attach of `link` is postponed to a later turn.

    That is the case if the link resumes very many deliveries: they have to be removed from their
    former session, over several turns, before the router's attach can name them.
    """
    found = resuming.park_for_resuming(forwarder, link, holder)
    if found is None:
        return False

    is_put_off: bool = found.once_parked(lambda: decided(forwarder, link, None))
    return is_put_off


def _accept_receiver(forwarder: Core, link: OutgoingLink, holder: Link | None) -> None:
    """Accept a link on which the peer receives; its source names the address."""
    remote = link.remote_attach
    source = remote.source
    if source in (None, _EMPTY):
        # the terminus may be recovered by the link's name (section 2.6.3); an empty target means an
        # anonymous relay
        source = forwarder.suspended.recovered(link) or source
    if source is None:
        raise AmqpError(Condition.INVALID_FIELD, "a receiver's attach needs a source", Scope.LINK)
    forwarder.sources.check(source)
    agreed = source_outcomes.agreed_terms(source)
    text, address = _enter(forwarder, link, source, is_sender=False)
    try:
        distribution_mode = forwarder.sources.mode(source, address)
    except AmqpError:
        nodes.link_left(forwarder, address, link)
        raise
    consumer = Consumer(link, address)
    connection = link.session.connection
    consumer.shows_passage = connection.settings.shows_annotations
    consumer.gets_copies = (
        forwarder.sources.refuses_filters and source.distribution_mode == sources.COPY
    )
    consumer.rejects_durable = (
        forwarder.sources.rejects_unconfirmed and remote.snd_settle_mode == SenderSettleMode.SETTLED
    )
    consumer.side = forwarder.network.side_of(connection)
    azure_clients.settle_as_azure(link)
    consumer.needs_header = azure_clients.needs_header(link)
    link.owner = consumer
    link.outcome_terms = agreed
    resumed = resuming.resume_terminus(forwarder, link, holder, address)
    link.terminus = forwarder.suspended.grant(link, address, source, resumed)
    told = resuming.unsettled_map(resumed, link)
    if resumed is None or told.unsettled is None:
        join_consumer(forwarder, consumer)
    else:
        consumer.resuming = resumption.compare(forwarder, resumed, consumer, told)
        address.resuming[consumer] = None
    # Filters that are ignored are not echoed: a peer sees in the answer which of them do not apply
    # (section 2.6.3). Messages that arrive settled are sent settled, so `unsettled` cannot be
    # promised (section 2.8.2).
    granted = Source(
        address=text,
        **suspended.lifetime(link.terminus),
        dynamic=source.dynamic,
        dynamic_node_properties=nodes.properties(source, address),
        distribution_mode=distribution_mode,
        default_outcome=source.default_outcome,
        outcomes=source_outcomes.granted_outcomes(agreed),
        capabilities=(*phases.granted_capabilities(source), *nodes.granted(source, address)),
    )
    suspended.remember(link.terminus, granted)
    mode = remote.snd_settle_mode
    if azure_clients.never_settles(link):
        mode = SenderSettleMode.SETTLED
    attaching.accept(
        link,
        granted,
        remote.target if remote.target is not None else Target(),
        snd_settle_mode=SenderSettleMode.MIXED if mode == SenderSettleMode.UNSETTLED else mode,
        unsettled=told.unsettled,
        incomplete_unsettled=told.is_incomplete,
    )
    if consumer.resuming is not None:
        go_on(forwarder, consumer)
    forwarder.credit.note(address, None)


def join_consumer(forwarder: Core, consumer: Consumer) -> None:
    """Add a consumer to its address; from now on it gets messages sent to the address."""
    address = consumer.address
    address.add_consumer(consumer)
    address.remote_ends += consumer.side != HERE
    address.keeps_octets = redelivery.keeps_messages(address)
    fallbacks.consumer_joined(forwarder, consumer)
    forwarder.network.consumer_joined(consumer)
    forwarder.credit.note(address, None)


def add_producer(forwarder: Core, producer: Producer) -> None:
    """Add a producer to its address; from now on the peer's messages go to the address."""
    address = producer.address
    if address is not None:
        address.add_producer(producer)
        address.remote_ends += producer.side != HERE
        forwarder.network.producer_joined(address, producer)
    forwarder.credit.note(address, producer)


def go_on(forwarder: Core, consumer: Consumer) -> None:
    """Send the deliveries that a consumer resumes, as far as there is room.

    After the last one the consumer joins its address.
    """
    earlier = consumer.resuming
    if earlier is not None and earlier.go_on(forwarder, consumer):
        consumer.resuming = None
        del consumer.address.resuming[consumer]
        join_consumer(forwarder, consumer)
        forwarder.queues.serve(consumer)


def _accept_sender(
    forwarder: Core, connection: Connection, link: IncomingLink, holder: Link | None
) -> None:
    """Accept a link on which the peer sends; a target without an address is an anonymous relay."""
    remote = link.remote_attach
    target = remote.target or forwarder.suspended.recovered(link)
    if isinstance(target, Coordinator):
        raise AmqpError(
            Condition.PRECONDITION_FAILED, "the router has no transaction coordinator", Scope.LINK
        )
    if target is None:
        raise AmqpError(Condition.INVALID_FIELD, "a sender's attach needs a target", Scope.LINK)
    capacity = connection.settings.link_capacity
    if target.address is None and not target.dynamic:
        text, address = None, None
    else:
        text, address = _enter(forwarder, link, target, is_sender=True)
    producer = Producer(link, address, capacity)
    producer.is_fallback = phases.is_fallback(target)
    access = connection.access
    producer.checks_user_id = access is not None and access.checks_user_id
    producer.splits_batches = azure_clients.splits_batches(link)
    azure_clients.tolerate_overdraft(link)
    link.returned_as = azure_clients.returned_as(link)
    if address is None and remote.source is not None:
        outcomes = remote.source.outcomes
        producer.lacks_rejected = bool(outcomes) and Rejected.NAME not in outcomes
    producer.side = link.side = forwarder.network.side_of(connection)
    if producer.side == MESH:
        # an edge's interior router has already sent its multicasts along its trees
        producer.tree = NO_TREE
    add_producer(forwarder, producer)
    link.owner = producer
    resumed = resuming.resume_terminus(forwarder, link, holder, address)
    link.terminus = forwarder.suspended.grant(link, address, target, resumed)
    awaited = 0 if resumed is None else resuming.await_resumed(forwarder, resumed, link)
    told = resuming.unsettled_map(resumed, link)
    granted = Target(
        address=text,
        **suspended.lifetime(link.terminus),
        dynamic=target.dynamic,
        dynamic_node_properties=nodes.properties(target, address),
        capabilities=(*phases.granted_capabilities(target), *nodes.granted(target, address)),
    )
    suspended.remember(link.terminus, granted)
    # Deliveries are settled in the sender's mode, whatever receivers do (docs/decisions/0033).
    attaching.accept(
        link,
        remote.source if remote.source is not None else Source(),
        granted,
        max_message_size=0 if access is None else azure_clients.max_message_size(access),
        rcv_settle_mode=azure_clients.settle_mode_for(link),
        unsettled=told.unsettled,
        incomplete_unsettled=told.is_incomplete,
        properties=azure_clients.properties_for(link),
    )
    if resumed is not None:
        # deliveries that the sender never resumes still count as unsettled
        in_doubt = len(resumed.unsettled) - awaited
        producer.capacity = min(capacity, max(0, suspended.MAX_UNSETTLED - in_doubt))
    if awaited:
        # transfers that resume need credit like others, though no receiver has to take them
        link.session.grant(link, awaited, False)


def _enter(
    forwarder: Core, link: Link, terminus: Source | Target, *, is_sender: bool
) -> tuple[str, Address]:
    """Find or create the address that a terminus names or requests.

    Return the address as text for the router's answer, and as an entry of the address table. Raise
    `AmqpError` at link scope if the address is redirected or unavailable, or if the peer may not
    use it.
    """
    if terminus.dynamic:
        kept = stealing.node_kept(forwarder, link, terminus)
        if kept is not None and terminus.address is not None:
            return terminus.address, kept
        return nodes.make(forwarder, link, terminus)
    asked = terminus.address or ""
    if not asked:
        raise AmqpError(Condition.INVALID_FIELD, "a source or target needs an address", Scope.LINK)
    connection = link.session.connection
    if azure_clients.is_entity_management(connection, address_name(asked)):
        text = MANAGEMENT_NODE
    else:
        text = tenants.inside(forwarder.table, connection, asked, is_sender=is_sender)
    tenant = tenant_of(connection)
    elsewhere = forwarder.table.redirect_link(text, asked, is_sender=is_sender, tenant=tenant)
    if elsewhere is not None:
        raise elsewhere
    is_own = connection.settings.is_own
    is_managed = forwarder.table.own_name(address_name(text)) == MANAGEMENT_NODE
    is_managed = is_managed and forwarder.table.is_own_node(MANAGEMENT_NODE)
    if is_managed and not (is_sender or is_own) and connection.settings.management != "none":
        return asked, forwarder.reply_nodes.make(forwarder, link, asked)
    is_answered = forwarder.table.is_own_node(text) or forwarder.network.is_answered_elsewhere(text)
    if not is_sender and not is_own and is_answered:
        raise AmqpError(
            Condition.NOT_ALLOWED, f"only the router itself may receive from {asked}", Scope.LINK
        )
    if not is_sender and not is_own:
        forwarder.network.check_receiver(connection, address_name(text))
    if forwarder.network.is_denied(connection, address_name(text)):
        raise AmqpError(
            Condition.NOT_ALLOWED,
            f"the connection is not allowed to use the management node {asked}",
            Scope.LINK,
        )
    name = address_name(text)
    phase = phases.phase_of(forwarder.table, name, terminus, is_sender=is_sender)
    if is_sender:
        phase = forwarder.network.phase_of(link, name, phase)
    takes_rest = not is_sender and not is_own and phases.is_fallback(terminus)
    address = None
    if forwarder.network.takes(link, text, is_sender=is_sender):
        address = forwarder.table.enter(text, phase, is_fallback=takes_rest)
    if address is None:
        # the description is Dispatch's, which programs compare; the address is in the info
        info = {Symbol("address"): asked}
        raise AmqpError(Condition.NOT_FOUND, "Node not found", Scope.LINK, info)
    return asked, address
