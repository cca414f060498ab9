"""Qpid Proton as a peer: any number of its connections, driven step by step from a test.

All of them live in one proton container, so a test that waits for one thing drives everything,
without threads and sleeps. `until` is the only way to wait, and it always has a time limit.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol, runtime_checkable

import attrs
from proton import Condition, Delivery, Endpoint, Event, Handler, Link, Message, symbol
from proton.handlers import IOHandler
from proton.reactor import ApplicationEvent, Container, EventInjector

PATIENCE_S = 60.0
"""How long anything may take before a test fails: far more than it needs on a busy machine."""

# How long one step waits for the network; other peers are looked at in between.
_STEP_S = 0.02


@runtime_checkable
class Telling(Protocol):
    """Object to wait for, which tells its state when the wait was in vain."""

    def state(self) -> str:
        """Return its state on one line."""


def state_of(holds: Callable[[], Any]) -> str:
    """Return the state of the object whose method is waited for, empty if it has none."""
    owner = getattr(holds.func if isinstance(holds, partial) else holds, "__self__", None)
    return f": {owner.state()}" if isinstance(owner, Telling) else ""


class _Sockets(IOHandler):
    """Handler of sockets that ignores a timer of one that was closed in the same round.

    Proton raises AttributeError for it, and again in each later round.
    """

    def on_selectable_expired(self, event: Event) -> None:
        if event.selectable._transport is not None:
            super().on_selectable_expired(event)


class ProtonPeers:
    """Proton container whose connections each have a container-id of their own.

    `patience_s` is the default limit of a wait.
    """

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        self.patience_s = patience_s
        self.container = Container(global_handler=_Sockets())
        self.container.timeout = _STEP_S
        self.container.start()
        # Keeps the container going while it has no connection.
        self._injector = EventInjector()
        self.container.selectable(self._injector)
        self._numbers = itertools.count(1)
        self._connections: list[ProtonConnection] = []

    def until(self, holds: Callable[[], Any], what: str, patience_s: float | None = None) -> None:
        """Run until `holds()` is true; fail, naming what it waits for, after too long.

        If it is a method of an object with a `state`, the failure names that as well.
        """
        if patience_s is None:
            patience_s = self.patience_s
        end = time.monotonic() + patience_s
        while not holds():
            if time.monotonic() > end:
                state = state_of(holds)
                raise AssertionError(f"waited {patience_s:g} s in vain until {what}{state}")
            self.container.process()

    def run_for(self, duration_s: float) -> None:
        """Run for some time, where the point is that nothing happens meanwhile."""
        end = time.monotonic() + duration_s
        while time.monotonic() < end:
            self.container.process()

    def wake(self) -> None:
        """Have `until` look again at once; may be called from any thread."""
        self._injector.trigger(ApplicationEvent("news"))

    def listen(self, port: int, handler: Handler) -> Any:
        """Listen on the loopback; return the acceptor, which has to be closed in the end."""
        container: Any = self.container
        return container.acceptor("127.0.0.1", port, handler)

    def begin_connect(self, url: str, **options: Any) -> ProtonConnection:
        """Begin to connect; `options` are those of `Container.connect`."""
        options.setdefault("container_id", f"proton-{next(self._numbers)}")
        options.setdefault("reconnect", False)
        connection = ProtonConnection(self)
        connection.endpoint = self.container.connect(url, handler=connection, **options)
        self._connections.append(connection)
        return connection

    def connect(self, url: str, **options: Any) -> ProtonConnection:
        """Connect and wait until the connection is open."""
        connection = self.begin_connect(url, **options)
        self.until(lambda: connection.is_open or connection.is_lost, "the connection is open")
        assert connection.is_open, connection.condition
        return connection

    def adopt(self, connection: ProtonConnection) -> None:
        """Close this one, too, in the end."""
        self._connections.append(connection)

    def all_lost(self) -> bool:
        """Return whether no connection is left."""
        return all(connection.is_lost for connection in self._connections)

    def close(self) -> None:
        """Close every connection that is open, and give the sockets back."""
        for connection in self._connections:
            connection.begin_close()
        with contextlib.suppress(AssertionError):
            self.until(self.all_lost, "all is closed", 5.0)
        self._injector.close()
        self.container.stop()
        while self.container.process():
            pass
        for end in self._injector.pipe:
            os.close(end)


class ProtonConnection(Handler):
    """Connection, and what happened on it."""

    def __init__(self, peers: ProtonPeers) -> None:
        super().__init__()
        self.peers = peers
        self.endpoint: Any = None
        self.opened = 0
        self.is_open = False
        self.is_lost = False
        self.lost = 0
        # why the peer closed it, or why the transport failed
        self.condition: Condition | None = None
        self.transport_condition: Condition | None = None
        self._numbers = itertools.count(1)

    def sender(self, address: str | None, **options: Any) -> ProtonSender:
        """Attach a link to send by and wait until it is attached."""
        sender = self.begin_sender(address, **options)
        self.peers.until(lambda: sender.is_attached or sender.is_over, "the sender is attached")
        return sender

    def begin_sender(
        self, address: str | None, session: Any = None, **options: Any
    ) -> ProtonSender:
        """Begin to attach a link to send by; `options` are those of `Container.create_sender`."""
        options.setdefault("name", f"sender-{next(self._numbers)}")
        sender = ProtonSender(self.peers)
        sender.link = self.peers.container.create_sender(
            session or self.endpoint, address, handler=sender, **options
        )
        return sender

    def receiver(self, address: str | None, credit: int = 0, **options: Any) -> ProtonReceiver:
        """Attach a link to receive by, wait until it is attached, and give it credit."""
        receiver = self.begin_receiver(address, credit, **options)
        self.peers.until(
            lambda: receiver.is_attached or receiver.is_over, "the receiver is attached"
        )
        return receiver

    def begin_receiver(
        self,
        address: str | None,
        credit: int = 0,
        *,
        accept: bool = True,
        session: Any = None,
        **options: Any,
    ) -> ProtonReceiver:
        """Begin to attach a link to receive by; `options` are those of `create_receiver`."""
        options.setdefault("name", f"receiver-{next(self._numbers)}")
        receiver = ProtonReceiver(self.peers, accept)
        receiver.link = self.peers.container.create_receiver(
            session or self.endpoint, address, handler=receiver, **options
        )
        if credit:
            receiver.link.flow(credit)
        return receiver

    def session(self) -> Any:
        """Begin another session."""
        session = self.endpoint.session()
        session.open()
        return session

    def begin_close(self) -> None:
        """Close the connection, if it is not closed yet."""
        if self.endpoint is not None and self.endpoint.state & Endpoint.LOCAL_ACTIVE:
            self.endpoint.close()

    def close(self) -> None:
        """Close the connection and wait until it is over."""
        self.begin_close()
        self.peers.until(lambda: self.is_lost, "the connection is closed")

    # What proton calls.

    def on_connection_remote_open(self, event: Any) -> None:
        """Both opens have passed."""
        self.is_open = True
        self.is_lost = False
        self.opened += 1

    def on_connection_remote_close(self, event: Any) -> None:
        """Answer the peer's close."""
        self.condition = event.connection.remote_condition
        event.connection.close()

    def on_transport_error(self, event: Any) -> None:
        """Record the condition of the transport's end."""
        self.transport_condition = event.transport.condition

    def on_transport_closed(self, event: Any) -> None:
        """Record the loss of the socket."""
        self.is_open = False
        self.is_lost = True
        self.lost += 1


class _Link(Handler):
    def __init__(self, peers: ProtonPeers) -> None:
        super().__init__()
        self.peers = peers
        self.link: Any = None
        self.is_attached = False
        self.is_over = False
        self.condition: Condition | None = None

    def state(self) -> str:
        """Return whether it is attached, and its credit and unsettled deliveries."""
        if not self.is_attached:
            return f"not attached ({self.condition})" if self.is_over else "being attached"
        return f"attached, credit {self.link.credit}, unsettled {self.link.unsettled}"

    def detach(self, *, closed: bool = True) -> None:
        """Detach and wait for the answer."""
        if closed:
            self.link.close()
        else:
            self.link.detach()
        self.until_over()

    def until_over(self) -> None:
        """Wait until the peer has refused, detached or closed the link."""
        self.peers.until(lambda: self.is_over, "the link is detached")

    def on_link_remote_open(self, event: Any) -> None:
        """Record the peer's attach, which is a refusal without its terminus."""
        link = event.link
        terminus = link.remote_target if link.is_sender else link.remote_source
        self.is_attached = bool(terminus.type)

    def on_link_remote_close(self, event: Any) -> None:
        """Record that the peer has closed the link."""
        self._over(event.link)

    def on_link_remote_detach(self, event: Any) -> None:
        """Record that the peer has detached the link."""
        self._over(event.link)

    def _over(self, link: Any) -> None:
        self.condition = link.remote_condition
        self.is_over = True
        self.is_attached = False
        if link.state & Endpoint.LOCAL_ACTIVE:
            link.close()


@attrs.define(eq=False)
class Sent:
    """Delivery that a proton sender made, and its outcome."""

    delivery: Any
    state: Any = None
    condition: Condition | None = None
    failed: bool = False
    undeliverable: bool = False
    annotations: Any = None
    data: Any = None
    is_settled: bool = False

    @property
    def outcome(self) -> str:
        """Return the outcome by its name in the specification, "" while there is none."""
        return "" if self.state is None else getattr(self.state, "name", str(self.state)).lower()


class ProtonSender(_Link):
    """Link that sends."""

    def __init__(self, peers: ProtonPeers) -> None:
        super().__init__(peers)
        self.sent: list[Sent] = []
        self._open: dict[str, Sent] = {}
        # how often the receiver wanted its credit back, and whether it gets it: a plain proton
        # client keeps it, and one that has sent before uses it up without saying so
        self.drains = 0
        self.gives_back = False

    def send(self, message: Message | bytes, *, wait: bool = True) -> Sent:
        """Send a message, or its octets, once there is credit; does not await its outcome."""
        if wait:
            self.wait_for_credit()
        octets = message if isinstance(message, bytes) else bytes(message.encode())
        delivery = self.link.delivery(self.link.delivery_tag())
        sent = self.follow(delivery)
        self.link.stream(octets)
        if self.link.snd_settle_mode == Link.SND_SETTLED:
            delivery.settle()
            sent.is_settled = True
        self.link.advance()
        return sent

    def wait_for_credit(self) -> None:
        """Wait until something can be sent, or the link is over."""
        self.peers.until(lambda: self.link.credit > 0 or self.is_over, "the sender has credit")

    def begin(self) -> Sent:
        """Begin a delivery whose octets are given to `link.stream`, until `link.advance`."""
        self.wait_for_credit()
        return self.follow(self.link.delivery(self.link.delivery_tag()))

    def follow(self, delivery: Any) -> Sent:
        """Record the outcome of a delivery that was made on this link."""
        sent = Sent(delivery)
        self.sent.append(sent)
        self._open[delivery.tag] = sent
        return sent

    def outcome(self, message: Message | bytes) -> Sent:
        """Send a message and wait until it is settled."""
        return self.settled(self.send(message))

    def settled(self, sent: Sent) -> Sent:
        """Wait until a delivery is settled."""
        self.peers.until(lambda: sent.is_settled, "the delivery is settled")
        return sent

    @property
    def outcomes(self) -> list[str]:
        """Return the outcome of each message so far."""
        return [sent.outcome for sent in self.sent]

    def all_settled(self) -> bool:
        """Return whether nothing that was sent is unsettled."""
        return all(sent.is_settled for sent in self.sent)

    def on_link_flow(self, event: Any) -> None:
        """Count a drain, and give its credit back if `gives_back`."""
        link = event.link
        if link.drain_mode and link.credit and not link.queued:
            self.drains += 1
            if self.gives_back:
                link.drained()

    def on_delivery(self, event: Any) -> None:
        """Record the receiver's state of a delivery, and settle it if the receiver has."""
        delivery = event.delivery
        if not delivery.updated:
            return
        sent = self._open.get(delivery.tag)
        if sent is None:
            return
        if delivery.remote_state:
            remote = delivery.remote
            sent.state = delivery.remote_state
            sent.condition = remote.condition
            sent.failed = remote.failed
            sent.undeliverable = remote.undeliverable
            sent.annotations = remote.annotations
            sent.data = remote.data
        if delivery.settled:
            sent.is_settled = True
            del self._open[delivery.tag]
            delivery.settle()


@attrs.define(eq=False)
class Received:
    """Message that came, with its delivery to be settled."""

    delivery: Any
    octets: bytes
    is_settled_by_sender: bool

    @property
    def message(self) -> Message:
        """Return the message as proton reads it."""
        message = Message()
        message.decode(self.octets)
        return message

    @property
    def body(self) -> Any:
        """Return its body as proton reads it."""
        message = self.message
        body: Any = message.body
        # binary is a view of the message's own memory
        return bytes(body) if isinstance(body, memoryview) else body

    def settle(self, state: Any = None) -> None:
        """Settle with a state that is one of `Delivery`'s, or none."""
        if state is not None:
            self.delivery.update(state)
        self.delivery.settle()

    def accept(self) -> None:
        """Settle as accepted."""
        self.settle(Delivery.ACCEPTED)


class ProtonReceiver(_Link):
    """Link that receives; with `accept` every message is accepted as it comes."""

    def __init__(self, peers: ProtonPeers, accept: bool) -> None:
        super().__init__(peers)
        self.received: list[Received] = []
        self.accept = accept
        self.aborted = 0
        # credit is given anew for each message, so that it never ends
        self.renews = False
        # hears of each part of a message as it comes, instead of the whole being kept
        self.on_part: Callable[[bytes], None] | None = None
        # without it, what comes is left where it is, and the session's window closes
        self.reads = True
        self.is_drained = False

    def get(self, count: int = 1) -> list[Received]:
        """Wait until there are `count` messages in all, and return them."""
        self.peers.until(
            lambda: len(self.received) >= count or self.is_over,
            f"{count} messages are there; {len(self.received)} were, before",
        )
        assert len(self.received) >= count, self.condition
        return self.received

    def bodies(self) -> list[Any]:
        """Return the bodies of all messages that have come."""
        return [received.body for received in self.received]

    def on_link_flow(self, event: Any) -> None:
        """Record whether the sender has used up the drained credit."""
        if event.link.drained():
            self.is_drained = True

    def on_delivery(self, event: Any) -> None:
        """Read a message or a part of one, and settle what was aborted or is settled."""
        delivery = event.delivery
        if delivery.aborted:
            self.aborted += 1
            delivery.settle()
            return
        if not delivery.readable:
            if delivery.settled:
                delivery.settle()
            return
        if self.reads:
            self._read(delivery)

    def read(self) -> None:
        """Take what was left of the current delivery, after `reads` was false for a while."""
        if self.link.current is not None and self.link.current.readable:
            self._read(self.link.current)

    def _read(self, delivery: Any) -> None:
        link = self.link
        if self.on_part is not None and delivery.pending:
            self.on_part(link.recv(delivery.pending))
        if delivery.partial:
            return
        octets = b"" if self.on_part is not None else link.recv(delivery.pending) or b""
        received = Received(delivery, octets, delivery.settled)
        link.advance()
        self.received.append(received)
        if self.renews:
            link.flow(1)
        if self.accept:
            received.accept()


def release(delivery: Any) -> None:
    """Released."""
    delivery.update(Delivery.RELEASED)


def modify(delivery: Any) -> None:
    """Give a delivery the state modified, with all fields that modified has."""
    delivery.local.failed = True
    delivery.local.undeliverable = True
    delivery.local.annotations = {symbol("x-opt-why"): "because"}
    delivery.update(Delivery.MODIFIED)
