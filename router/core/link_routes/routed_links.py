"""Routed links: a peer's link and the router's own link to a container, joined into one.

The attach is passed on in full, and so is the container's answer. From then on flows, transfers and
dispositions of one end are passed on to the other unchanged. The two links are attached to an
address that no other link uses, so their deliveries take the same code path as all others.
`routed_detach` handles the loss of one end. Nothing here runs per message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from router.amqp.encoded import decode_map
from router.amqp.performatives import Attach, Error, Target
from router.core.link_routes import routed_detach
from router.core.model.address import ROUTED, Address, Consumer, Producer
from router.core.model.own_links import OwnLink
from router.engine import attaching
from router.engine.link import UNLIMITED, IncomingLink, Link, OutgoingLink
from router.engine.states import LinkState, SessionState
from router.errors import AmqpError, Scope

if TYPE_CHECKING:
    from router.amqp.encoded import EncodedMap
    from router.amqp.performatives import Detach
    from router.amqp.reading_flow import FlowFrame
    from router.amqp.types import DecodedMap
    from router.core.addresses.access import Access
    from router.core.addresses.link_names import ForwardedName
    from router.core.ports import Core
    from router.engine.session import Session

MAX_CREDIT = 0xFFFFFFFF
# Condition and description are Dispatch's; programs compare them.
LINK_EXPIRATION = "qd:link-expiration"
LINK_EXPIRATION_WORDS = "Requested link expiration not allowed"


def check_lifetime(forwarder: Core, link: Link) -> None:
    """Raise `AmqpError` if a container's terminus would outlive the link, and that is not allowed.

    The error has link scope. `LinkRoutes.allows_resumable` says whether termini may outlive links.
    """
    if (
        routed_detach.survives(link, link.remote_attach)
        and not forwarder.link_routes.allows_resumable
    ):
        raise AmqpError(LINK_EXPIRATION, LINK_EXPIRATION_WORDS, Scope.LINK)


def with_address(link: Link, frame: Attach, address: str | None) -> Attach:
    """Return a copy of an attach with another address for the container's node.

    The attach itself is returned if it names no address, or if `address` is None.
    """
    if address is None or _address_of(link, frame) in (None, address):
        return frame
    if isinstance(link, IncomingLink):
        assert isinstance(frame.target, Target)
        return attrs.evolve(frame, target=attrs.evolve(frame.target, address=address))
    assert frame.source is not None
    return attrs.evolve(frame, source=attrs.evolve(frame.source, address=address))


class RoutedLink(OwnLink):
    """Pair of a peer's link, `peer`, and the router's own link to a container, `link`.

    `address` is the internal address that connects the two links; it is None until the container
    has attached its end. `is_lost` is True once one of the links has ended.
    """

    def __init__(self, peer: Link, frame: Attach) -> None:
        super().__init__(frame)
        self.peer = peer
        self.address: Address | None = None
        self.is_lost = False
        # content of the receiver's detach, once it has received all that its lost sender has sent
        self.ending: routed_detach.FinalDetach | None = None
        # the router that the container is at, if that is another one
        self.leads_to: str | None = None
        # whether the peer has closed the link, not merely detached it
        self.closes = True
        # the link's name at containers that are connected here
        self.holding: ForwardedName | None = None
        self._early_flow_extras: tuple[bool, DecodedMap | EncodedMap | None] | None = None

    @property
    def ends(self) -> tuple[IncomingLink, OutgoingLink]:
        """Return the link on which the router receives, and the link on which it sends."""
        peer: Any = self.peer
        own: Any = self.link
        return (peer, own) if isinstance(peer, IncomingLink) else (own, peer)

    def other(self, link: Link) -> Link | None:
        """Return the other link of the pair; None if the router has not attached it yet."""
        return self.link if link is self.peer else self.peer

    def available(self) -> int:
        """Return how many messages the sender announced as available, less those received since."""
        return int(self.ends[0].available())

    def new_tag(self) -> bytes:
        """Raise NotImplementedError, because deliveries on routed links keep their tags."""
        raise NotImplementedError

    # Attaching.

    def attached(self, forwarder: Core) -> None:
        """Pass the container's answer to the attach on to the peer, and connect the two links."""
        own = self.link
        assert own is not None
        peer = self.peer
        incoming, outgoing = self.ends
        self.address = address = Address(_name_of(peer), ROUTED)
        for end in (incoming, outgoing):
            end.is_routed = True
            end.terminus = self
        # the two peers agree with each other on limits and settle modes; but a policy may limit the
        # size of messages
        access: Access | None = incoming.session.connection.access
        incoming.max_message_size = 0 if access is None else access.max_message_size
        incoming.settles_second = False
        outgoing.max_message_size = UNLIMITED
        outgoing.presettles = False
        outgoing.delivery_count = outgoing.initial_count = incoming.delivery_count
        # its credit is decided by the receiver
        producer = Producer(incoming, address, MAX_CREDIT)
        producer.low_mark = -1
        incoming.owner = producer
        outgoing.owner = Consumer(outgoing, address)
        address.add_producer(producer)
        address.add_consumer(outgoing.owner)
        forwarder.routed.enter(self)
        forwarder.table.enter_routed(address)
        remote = own.remote_attach
        told = forwarder.link_routes.peer_address(peer, _address_of(peer, remote))
        answer = attrs.evolve(with_address(peer, remote, told), name=peer.name)
        try:
            attaching.answer(peer, answer)
        except AmqpError as error:
            # the container's answer may not fit into the peer's frames
            self.refuse(forwarder, error)
            self.detach(error=error)
            return
        own.flow_extras, self._early_flow_extras = self._early_flow_extras, None
        forwarder.credit.note(address, None)

    def over(self, forwarder: Core, error: Error | None, closed: bool) -> None:
        """Refuse the peer's link if the container has refused it, or was lost before answering."""
        if self.address is None and not self.is_lost:
            if self.has_no_peer(error):
                refusal = routed_detach.connection_lost()
            else:
                assert error is not None
                refusal = _wired(error)
                forwarder.link_routes.refused(self.peer, refusal.condition, refusal.description)
            self.refuse(forwarder, refusal)

    def has_no_peer(self, error: Error | None) -> bool:
        """Return whether the container's session or connection has ended, not only its link.

        If only the link has ended, `error` is the error in the container's detach.
        """
        assert self.session is not None
        if error is None:
            return True
        state = self.session.state
        if self.link is None:
            return bool(state != SessionState.MAPPED)
        return bool(self.link.state == LinkState.DETACHED and state != SessionState.END_RCVD)

    def refuse(self, forwarder: Core, error: AmqpError) -> None:
        """Refuse the peer's attach with this error."""
        self.is_lost = True
        routed_detach.unregister(forwarder, self)
        routed_detach.retire_address(forwarder, self)
        attaching.refuse(self.peer, error)

    # Flows.

    def flow_received(self, session: Session, link: Link, frame: FlowFrame) -> None:
        """Pass the fields of a flow, except credit, on to the other end.

        Until the peer's attach is answered, the fields are kept, and a receiver's credit is stored
        in `link`.
        """
        more = self._more(session, link, frame)
        if self.address is not None:
            other = self.other(link)
            if more is not None and not self.is_lost and other is not None:
                other.flow_extras = more
            return
        if more is not None:
            self._early_flow_extras = more
        if isinstance(link, OutgoingLink) and frame.has_link_credit:
            link.credit = frame.link_credit
            link.drain = link.drain_due = frame.drain

    def take_over_early_flow(self, other: RoutedLink) -> None:
        """Copy the flow that the link `other` received before its attach was answered.

        This link replaces `other`.
        """
        self._early_flow_extras = other._early_flow_extras

    def _more(
        self, session: Session, link: Link, frame: FlowFrame
    ) -> tuple[bool, DecodedMap | EncodedMap | None] | None:
        properties = None
        if frame.properties_end:
            octets = memoryview(session.connection.cursor.octets)
            properties = decode_map(bytes(octets[frame.properties_at : frame.properties_end]))
        if isinstance(link, IncomingLink):
            awaits = self.address is not None and self.ends[1].drain_due
            is_news = awaits or frame.available != link.announced_available
        else:
            # the sender answers each drain, even one that changes nothing
            is_news = frame.drain
        if not frame.echo and properties is None and not is_news:
            return None
        before = self._early_flow_extras
        other = self.other(link)
        if self.address is not None and other is not None:
            before = other.flow_extras
        echo = bool(frame.echo) or (before is not None and before[0])
        return echo, properties

    # Detaching.

    def answers_detach(self, link: Link) -> bool:
        """Return whether the answer to the peer's detach has to wait for the container."""
        return link is self.peer and (self.awaits_answer or self.ending is not None)

    def detach_answered(self, forwarder: Core, link: Link, remote: Detach) -> bool:
        """Pass the container's answer to a detach on to the peer.

        Return False, without doing anything, if the answer is the peer's.
        """
        if link is self.peer:
            return False
        if self.awaits_answer:
            self.awaits_answer = False
            assert self.session is not None
            forwarder.idle_sessions.append(self.session)
            attaching.answer_detach(self.peer, bool(remote.closed), remote.error)
        return True

    def answer_lost(self, forwarder: Core) -> None:
        """Answer the peer's detach, because the container was lost before answering."""
        attaching.answer_detach(self.peer, self.closes, None)

    # Ending: `go_on` takes the place of a resumption for a consumer whose sender has ended.

    def go_on(self, forwarder: Core, consumer: Consumer) -> bool:
        """Send the remaining deliveries of a lost sender, then end the receiver's link.

        Returns False, because no new deliveries follow.
        """
        if consumer.link.owner is consumer:
            forwarder.queues.serve(consumer)
            routed_detach.end_if_done(forwarder, self)
        return False


class RoutedLinks:
    """Registry of a router's routed links."""

    def __init__(self) -> None:
        self._links: dict[RoutedLink, None] = {}
        # how many links were ever attached at another router, for their names
        self.hops = 0

    def __len__(self) -> int:
        return len(self._links)

    def enter(self, routed: RoutedLink) -> None:
        """Add a routed link whose ends are both attached."""
        self._links[routed] = None

    def leave(self, routed: RoutedLink) -> None:
        """Remove a routed link that has ended."""
        self._links.pop(routed, None)

    def addresses(self) -> list[Address]:
        """Return the internal addresses that connect the two links of each routed link."""
        return [each.address for each in self._links if each.address is not None]


def _wired(error: Error) -> AmqpError:
    """Return an error received from a peer as an exception, to be passed on unchanged."""
    return AmqpError(str(error.condition), error.description or "", Scope.LINK, error.info)


def _address_of(link: Link, frame: Attach) -> str | None:
    terminus = frame.target if isinstance(link, IncomingLink) else frame.source
    address = getattr(terminus, "address", None)
    return address if isinstance(address, str) else None


def _name_of(link: Link) -> str:
    return _address_of(link, link.remote_attach) or ""
