"""Control links: links on which connected routers exchange what they know about the network.

Each router attaches one sender, on a separate session, with the link name `qd.router.<its id>`. The
sender's target has the capability `qd.router` and no address, and its messages are sent settled.
Incoming messages are assembled (`message_end`), and never reach an address. Nothing here runs per
message of a client.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from router.amqp.constants import Condition, Descriptor, SenderSettleMode
from router.amqp.performatives import Attach, Error, Source, Target
from router.amqp.types import Symbol
from router.core.links.message_end import MessageEnd
from router.core.model.address import Producer
from router.core.model.own_links import OwnLink
from router.engine import attaching
from router.engine.delivery import Delivery
from router.engine.events import LinkDetached
from router.engine.link import IncomingLink, Link, OutgoingLink
from router.engine.settings import TURN_WORK
from router.errors import AmqpError, Scope

if TYPE_CHECKING:
    from router.core.ports import Core
    from router.engine.connection import Connection
    from router.engine.session import Session

CAPABILITY: Final = Symbol("qd.router")
NAME: Final = "qd.router."
# How many messages a peer may send before they are processed, and how large each may be.
CREDIT: Final = 32
# Work of receiving a message, counted in per-message frames (`Connection.deduct_work`): so much
# that a turn with a control message is a long one, which is no sign of an active client.
WORK: Final = TURN_WORK // 2 + 1
MAX_MESSAGE_BYTES: Final = 1 << 18
# About how many octets are sent in one `flush`, however large the credit is: a message is encoded
# only when it is sent.
FLUSH_BYTES: Final = 1 << 13
# How many messages may wait for a peer; if it does not take them in time, its link is lost.
MAX_QUEUED: Final = 1 << 17
MAX_QUEUED_TO_EDGE: Final = 1 << 12
ACCEPTED = int(Descriptor.ACCEPTED)

Octets = Callable[[], bytes]
"""Function that encodes a message, called once there is room for the message."""


class Watcher(Protocol):
    """Observer of a control link."""

    def control_received(self, control: ControlLink, octets: bytes) -> None:
        """Process a complete message; raise `AmqpError` at connection scope if it is invalid."""

    def control_lost(self, control: ControlLink, why: str) -> None:
        """Note that the control link has ended, because its sender or receiver has ended.

        This is called at most once.
        """


class ControlLink:
    """Pair of links, one in each direction, for control messages on one connection."""

    def __init__(self, connection: Connection, router: str, watcher: Watcher) -> None:
        self.connection = connection
        self.watcher = watcher
        self.queue: deque[Octets] = deque()
        self.is_over = False
        # whether the peer gets no more credit: because too many of its messages wait to be
        # processed, and because it has caused so much work that it has to rest
        self._is_full = False
        self._is_resting = False
        self.sent_messages = 0
        self.sent_octets = 0
        self.received_messages = 0
        self.received_octets = 0
        self._sender = _Sender(self, NAME + router)
        self._receiver: IncomingLink | None = None
        # the message that was sent in part: its delivery, its octets, and how many were sent
        self._rest: tuple[Delivery, bytes, int] | None = None

    def begin(self) -> None:
        """Attach this router's sender; raise `AmqpError` if the connection has no channel left."""
        self._sender.begin(self.connection)

    def attach_received(self, forwarder: Core, link: Link) -> None:
        """Accept the peer's sender, or raise `AmqpError` to refuse it."""
        if not isinstance(link, IncomingLink):
            raise AmqpError(
                Condition.NOT_ALLOWED,
                "the peer must attach a control link as a sender",
                Scope.LINK,
            )
        if self._receiver is not None:
            raise AmqpError(
                Condition.NOT_ALLOWED, "this connection already has a control link", Scope.LINK
            )
        self._receiver = link
        link.owner = producer = Producer(link, None, CREDIT)
        link.terminus = ControlEnd(self)
        remote = link.remote_attach
        source = remote.source if remote.source is not None else Source()
        target = Target(capabilities=(CAPABILITY,))
        attaching.accept(link, source, target, max_message_size=MAX_MESSAGE_BYTES)
        forwarder.credit.note(None, producer)

    def send(self, octets: Octets, most: int = MAX_QUEUED) -> None:
        """Queue a message, which `flush` sends when there is room.

        If `most` messages are already waiting, the control link is ended instead.
        """
        if len(self.queue) >= most:
            self.lose(f"the peer does not take control messages: {most} of them are waiting")
        elif not self.is_over:
            self.queue.append(octets)

    @property
    def is_full(self) -> bool:
        """Return whether so many messages of the peer wait that it gets no more credit."""
        return self._is_full

    @is_full.setter
    def is_full(self, is_full: bool) -> None:
        self._is_full = is_full
        self._set_capacity()

    @property
    def is_resting(self) -> bool:
        """Return whether the peer gets no credit because its messages have caused much work."""
        return self._is_resting

    @is_resting.setter
    def is_resting(self, is_resting: bool) -> None:
        self._is_resting = is_resting
        self._set_capacity()

    def _set_capacity(self) -> None:
        if self._receiver is not None and not self.is_over:
            # a flow of the peer must not get it any credit either
            self._receiver.owner.capacity = 0 if self._is_full or self._is_resting else CREDIT

    def go_on(self, forwarder: Core) -> None:
        """Give the peer credit again, because there is room for its messages."""
        self.is_full = False
        self._renew_credit(forwarder)

    def end_rest(self, forwarder: Core) -> None:
        """Give the peer credit again, because it has rested."""
        self.is_resting = False
        self._renew_credit(forwarder)

    def _renew_credit(self, forwarder: Core) -> None:
        if self._receiver is not None and not self.is_over:
            forwarder.credit.note(None, self._receiver.owner)

    @property
    def can_flush(self) -> bool:
        """Return whether `flush` can send anything now."""
        link = self._sender.link
        if self.is_over or not isinstance(link, OutgoingLink):
            return False
        session: Session = link.session
        if self._rest is not None:
            return session.remote_incoming_window > 0 and not session.outbox.congested
        return bool(self.queue) and bool(session.can_send(link))

    def flush(self) -> bool:
        """Send queued messages while there is room; return whether anything was sent.

        One call sends about FLUSH_BYTES at most.
        """
        link = self._sender.link
        if not isinstance(link, OutgoingLink) or self.is_over:
            return False
        session = link.session
        has_moved = False
        if self._rest is not None:
            delivery, octets, at = self._rest
            if session.remote_incoming_window <= 0 or session.outbox.congested:
                return False
            has_moved = True
            self._write(link, delivery, octets, at)
        most = self.sent_octets + FLUSH_BYTES
        while self.queue and self._rest is None and session.can_send(link):
            if self.sent_octets >= most:
                break
            octets = self.queue.popleft()()
            delivery = Delivery.__new__(Delivery)
            delivery.settled = delivery.complete = True
            session.begin_outgoing(link, delivery)
            self.sent_messages += 1
            self.sent_octets += len(octets)
            self._write(link, delivery, octets, 0)
            has_moved = True
        return has_moved

    def _write(self, link: Link, delivery: Delivery, octets: bytes, at: int) -> None:
        at = link.session.send(delivery, octets, at, len(octets), False)
        is_whole = at == len(octets)
        self._rest = None if is_whole else (delivery, octets, at)
        link.current = None if is_whole else delivery

    def lose(self, why: str) -> None:
        """End the control link, and report the reason to the watcher; later calls do nothing."""
        if self.is_over:
            return
        self.is_over = True
        self.queue.clear()
        self._rest = None
        self.watcher.control_lost(self, why)

    def received(self, octets: bytes) -> None:
        """Count an incoming message, and pass it to the watcher."""
        self.received_messages += 1
        self.received_octets += len(octets)
        self.connection.deduct_work(WORK)
        if not self.is_over:
            self.watcher.control_received(self, octets)

    @property
    def is_idle(self) -> bool:
        """Return whether nothing waits to be sent."""
        return not self.queue and self._rest is None


class _Sender(OwnLink):
    """Sender of this router on a control link."""

    # the connection ends with the link, and that is logged
    is_announced = True

    def __init__(self, control: ControlLink, name: str) -> None:
        super().__init__(
            Attach(
                name,
                0,
                False,
                snd_settle_mode=SenderSettleMode.SETTLED,
                source=Source(),
                target=Target(capabilities=(CAPABILITY,)),
                initial_delivery_count=0,
            )
        )
        self._control = control

    def over(self, forwarder: Core, error: Error | None, closed: bool) -> None:
        """End the control link, because its sender was detached or refused, or is lost."""
        self._control.lose(_reason("our sender", error))


class ControlEnd(MessageEnd):
    """Terminus of the peer's sender of control messages."""

    def __init__(self, control: ControlLink) -> None:
        super().__init__()
        self._control = control
        self._error: Error | None = None

    def received(self, forwarder: Core, delivery: Delivery, octets: bytes) -> None:
        """Accept a complete message, and pass it to the control link."""
        link: Link = delivery.incoming
        if delivery.incoming_open:
            link.session.settle_with_code(delivery, ACCEPTED)
        self._control.received(octets)
        forwarder.credit.note(None, link.owner)

    def outlives(self, event: LinkDetached | None) -> bool:
        """Return False, because the terminus ends with its link; keep the error for `give_up`."""
        self._error = None if event is None else event.error
        return False

    def give_up(self, forwarder: Core) -> None:
        """End the control link, because the peer's sender has ended."""
        self._control.lose(_reason("the peer's sender", self._error))


def is_control(link: Link) -> bool:
    """Return whether a link that the peer attaches is a control link."""
    target = link.remote_attach.target
    capabilities = getattr(target, "capabilities", None) or ()
    return isinstance(link, IncomingLink) and CAPABILITY in capabilities


def refuse(_: Link) -> None:
    """Refuse a control link where none is allowed, with the same error condition as Dispatch."""
    raise AmqpError("qd:forbidden", "control links are allowed only between routers", Scope.LINK)


def _reason(whose: str, error: Error | None) -> str:
    if error is None:
        return f"the control link has ended: {whose} was detached"
    said = f": {error.description}" if error.description else ""
    return f"the control link has ended: {whose} was detached with {error.condition}{said}"
