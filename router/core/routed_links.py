"""Links that are routed: a peer's link, and one of the router's own to a container, as one.

The attach is passed on whole, and so is the container's answer; from then on what the one end says
the other one hears, credit for credit and word for word. The two hang on an address that nobody
else uses, so that their deliveries take the way that all others do. What becomes of them when one
end is lost is in `routed_loss`. None of this runs once a message.
"""

from __future__ import annotations

from typing import Any

import attrs

from router.amqp.encoded import decode_map
from router.amqp.performatives import Attach, Error
from router.core import routed_loss
from router.core.address import ROUTED, Address, Consumer, Producer
from router.core.own_links import OwnLink
from router.engine import attaching
from router.engine.link import UNLIMITED, IncomingLink, Link, OutgoingLink
from router.engine.states import LinkState, SessionState
from router.errors import AmqpError, Scope

MAX_CREDIT = 0xFFFFFFFF
# Dispatch's, as are the words, which programs compare.
LINK_EXPIRATION = "qd:link-expiration"
LINK_EXPIRATION_WORDS = "Requested link expiration not allowed"


def check_lifetime(forwarder: Any, link: Link) -> None:
    """Raise `AmqpError` at link scope where a terminus at a container would outlive its link, and
    may not.
    """
    if (
        routed_loss.survives(link, link.remote_attach)
        and not forwarder.link_routes.allows_resumable
    ):
        raise AmqpError(LINK_EXPIRATION, LINK_EXPIRATION_WORDS, Scope.LINK)


def readdressed(link: Link, frame: Attach, address: str | None) -> Attach:
    """An attach with another address at the container; one that names none stays as it is."""
    terminus: Any = frame.target if isinstance(link, IncomingLink) else frame.source
    if address is None or getattr(terminus, "address", None) in (None, address):
        return frame
    terminus = attrs.evolve(terminus, address=address)
    if isinstance(link, IncomingLink):
        return attrs.evolve(frame, target=terminus)
    return attrs.evolve(frame, source=terminus)


class RoutedLink(OwnLink):
    """What joins `peer`, a client's link, to `link`, the router's own to a container.

    `address` is where the two meet, None until the container has attached its end; `is_lost` once
    one of them is over.
    """

    def __init__(self, peer: Any, frame: Attach) -> None:
        super().__init__(frame)
        self.peer = peer
        self.address: Address | None = None
        self.is_lost = False
        # what the receiver is told once it has got all that its sender, which is over, has sent
        self.ending: Any = None
        # the router that the container is at, where that is another one
        self.leads_to: str | None = None
        # whether the peer has closed it, or merely detached
        self.closes = True
        # under which name it is known at containers that are here
        self.holding: Any = None
        self._told_early: Any = None

    @property
    def ends(self) -> tuple[Any, Any]:
        """The end that receives from its peer, and the one that sends."""
        own: Any = self.link
        if isinstance(self.peer, IncomingLink):
            return self.peer, own
        return own, self.peer

    def other(self, link: Any) -> Any:
        """The other end."""
        return self.link if link is self.peer else self.peer

    def available(self) -> int:
        """What the sender said is available, less what has come since."""
        return int(self.ends[0].available())

    def new_tag(self) -> bytes:
        """No delivery needs one: each has its sender's."""
        raise NotImplementedError

    # Attaching.

    def attached(self, forwarder: Any) -> None:
        """The container has attached its end: so is the peer's, by the same answer."""
        own: Any = self.link
        peer = self.peer
        incoming, outgoing = self.ends
        self.address = address = Address(_name_of(peer), ROUTED)
        for end in (incoming, outgoing):
            end.is_routed = True
            end.terminus = self
        # what these ask for is between the peers
        incoming.max_message_size = 0
        incoming.settles_second = False
        outgoing.max_message_size = UNLIMITED
        outgoing.presettles = False
        outgoing.delivery_count = outgoing.initial_count = incoming.delivery_count
        # how much it may have is up to its receiver
        producer = Producer(incoming, address, MAX_CREDIT)
        producer.low_mark = -1
        incoming.owner = producer
        outgoing.owner = Consumer(outgoing, address)
        address.add_producer(producer)
        address.add_consumer(outgoing.owner)
        forwarder.routed.enter(self)
        forwarder.table.enter_routed(address)
        remote = own.remote_attach
        told = forwarder.link_routes.told(peer, _address_of(peer, remote))
        answer = attrs.evolve(readdressed(peer, remote, told), name=peer.name)
        try:
            attaching.answer(peer, answer)
        except AmqpError as error:
            # it is not the container's fault that its answer fits into no frame of the peer's
            self.refuse(forwarder, error)
            self.detach(error=error)
            return
        own.told_more, self._told_early = self._told_early, None
        forwarder.note_credit(address, None)

    def over(self, forwarder: Any, error: Error | None, closed: bool) -> None:
        """The container has refused the link, or is lost before it has answered."""
        if self.address is None and not self.is_lost:
            if self.has_no_peer(error):
                refusal = routed_loss.connection_lost()
            else:
                assert error is not None
                refusal = _wired(error)
                forwarder.link_routes.refused(self.peer, refusal.condition, refusal.description)
            self.refuse(forwarder, refusal)

    def has_no_peer(self, error: Error | None) -> bool:
        """Whether the container's connection is what is over: its error is no answer."""
        assert self.session is not None
        if error is None:
            return True
        state = self.session.state
        if self.link is None:
            return bool(state != SessionState.MAPPED)
        return bool(self.link.state == LinkState.DETACHED and state != SessionState.END_RCVD)

    def refuse(self, forwarder: Any, error: AmqpError) -> None:
        """Nothing comes of the link, which its peer has attached, for this reason."""
        self.is_lost = True
        routed_loss.leave(forwarder, self)
        routed_loss.done(forwarder, self)
        attaching.refuse(self.peer, error)

    # Flows.

    def flow_received(self, session: Any, link: Any, frame: Any) -> None:
        """What one end's peer tells beside its credit is for the other's.

        A peer may give credit before its attach is answered.
        """
        more = self._more(session, link, frame)
        if self.address is not None:
            if more is not None and not self.is_lost:
                self.other(link).told_more = more
            return
        if more is not None:
            self._told_early = more
        if isinstance(link, OutgoingLink) and frame.has_link_credit:
            link.credit = frame.link_credit
            link.drain = link.drain_due = frame.drain

    def hear_early(self, other: RoutedLink) -> None:
        """What the peer has told while another was in the place of this."""
        self._told_early = other._told_early

    def _more(self, session: Any, link: Any, frame: Any) -> tuple[bool, Any] | None:
        properties = None
        if frame.properties_end:
            octets = memoryview(session.connection.cursor.octets)
            properties = decode_map(bytes(octets[frame.properties_at : frame.properties_end]))
        if isinstance(link, OutgoingLink):
            # its sender answers each drain, also one that changes nothing
            is_news = frame.drain
        else:
            awaits = self.address is not None and self.other(link).drain_due
            is_news = awaits or frame.available != link.told_available
        if not frame.echo and properties is None and not is_news:
            return None
        before = self.other(link).told_more if self.address is not None else self._told_early
        echo = bool(frame.echo) or (before is not None and before[0])
        return echo, properties

    # Detaching.

    def answers_detach(self, link: Any) -> bool:
        """Whether the answer to a peer's detach is the container's to give, and still to come."""
        return link is self.peer and (self.awaits_answer or self.ending is not None)

    def detach_answered(self, forwarder: Any, link: Any, remote: Any) -> bool:
        """An end has answered a detach; whether what it says is for its other end alone."""
        if link is self.peer:
            return False
        if self.awaits_answer:
            self.awaits_answer = False
            forwarder.idle_sessions.append(self.session)
            attaching.answer_detach(self.peer, bool(remote.closed), remote.error)
        return True

    def answer_lost(self, forwarder: Any) -> None:
        """The container is lost before it has answered a peer's detach."""
        attaching.answer_detach(self.peer, self.closes, None)

    # Ending: what a consumer that resumes does, this does for one whose sender is over.

    def go_on(self, forwarder: Any, consumer: Any) -> bool:
        """Send what is left; once nothing is, the receiver's link is over too. Never resumed."""
        if consumer.link.owner is consumer:
            forwarder.serve(consumer)
            routed_loss.end_if_done(forwarder, self)
        return False


class Routed:
    """All links that are routed now."""

    def __init__(self) -> None:
        self._links: dict[RoutedLink, None] = {}
        # those that were attached at another router, ever
        self.hops = 0

    def __len__(self) -> int:
        return len(self._links)

    def enter(self, routed: RoutedLink) -> None:
        """Both its ends are attached."""
        self._links[routed] = None

    def leave(self, routed: RoutedLink) -> None:
        """It is over."""
        self._links.pop(routed, None)

    def addresses(self) -> list[Address]:
        """Where their ends meet."""
        return [each.address for each in self._links if each.address is not None]


def _wired(error: Error) -> AmqpError:
    """An error of the wire, to be told to somebody else as it is."""
    return AmqpError(str(error.condition), error.description or "", Scope.LINK, error.info)


def _address_of(link: Any, frame: Attach) -> str | None:
    terminus: Any = frame.target if isinstance(link, IncomingLink) else frame.source
    address = getattr(terminus, "address", None)
    return address if isinstance(address, str) else None


def _name_of(link: Any) -> str:
    return _address_of(link, link.remote_attach) or ""
