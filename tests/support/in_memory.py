"""Router without sockets: one core, and clients whose octets are carried by hand.

    router = Router()
    receiver = router.client().receiver("q", credit=1)
    sender = router.client().sender("q")
    sender.send(b"hello")
    assert receiver.take() == b"hello"

A `Client` keeps to the protocol and holds the router to it: credit, session windows, frame sizes,
delivery-ids in order, one settlement per delivery. A turn ends after each thing a client says, as
in `router.net.router_hub`. The output for a client with `reads` False waits in the router.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import attrs

from router.amqp.constants import ReceiverSettleMode
from router.amqp.framing import AMQP_HEADER
from router.amqp.performatives import (
    Accepted,
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Flow,
    Open,
    Source,
    Target,
    Transfer,
)
from router.core.addresses.link_names import LinkNames
from router.core.addresses.redirects import Redirects
from router.core.addresses.rules import AddressRule
from router.core.addresses.table import AddressTable
from router.core.deliveries import draining
from router.core.forwarding.expiry import expire
from router.core.forwarding.forward import Forwarder
from router.core.forwarding.shedding import Shedder
from router.engine import serial
from router.engine.connection import Connection
from router.engine.outbox import Turn

from support.transcripts import On, message_format, read_frame, server_settings, wire

_BUFFER_BYTES = 1 << 20
ROUTER_CHANNEL = 0
FIRST = ReceiverSettleMode.FIRST
SECOND = ReceiverSettleMode.SECOND


class Router:
    """Core of one router, and its clients; `rules` have the fields of `AddressRule`."""

    def __init__(
        self,
        rules: Iterable[tuple[Any, ...]] = (),
        default: str = "balanced",
        limit_bytes: int = 1 << 30,
        redirects: Redirects | None = None,
        stealing: str = "same-user",
        terminus_limit_s: int = 60,
        router_id: str = "",
    ) -> None:
        self.turn = Turn()
        self.turn.now = 1000.0
        self._made = 0
        made = [AddressRule(*rule) for rule in rules]
        self.table = AddressTable(made, default, self._dynamic_name, redirects)
        self.forwarder = Forwarder(
            self.table,
            self.turn,
            self,
            limit_bytes,
            LinkNames(stealing),
            terminus_limit_s,
            router_id,
        )
        self.clients: list[Client] = []
        self.events: list[Any] = []
        # deliveries that were too much
        self.given_up = 0
        self.shedding = Shedder(self.forwarder, self._gave_up)
        # what is put off to later turns waits until it is asked for (`go_on`)
        self.is_patient = False
        # who counts what is done in each turn
        self.turn_ended: Callable[[], None] = lambda: None
        self.buffer = memoryview(bytearray(b"\xff" * _BUFFER_BYTES))

    def _dynamic_name(self, maker: str) -> str:
        self._made += 1
        return f"amqp:/temp/{self._made}.{maker}"

    def client(self, **settings: Any) -> Client:
        """Add a client with an open connection and a session."""
        client = Client(self, **settings)
        self.clients.append(client)
        client.open()
        return client

    def event_received(self, connection: Connection, event: object) -> None:
        """Record an event that the core has acted on."""
        self.events.append(event)

    def finish_turn(self) -> None:
        """Grant credit, carry all output as the hub does, and do the deferred work."""
        self.end_turn()
        while self.has_work() and not self.is_patient:
            self.go_on()

    def has_work(self) -> bool:
        """Return whether anything was put off."""
        return bool(self.turn.deferred) or self.forwarder.network.is_behind

    def go_on(self) -> None:
        """Take a turn, with one step of the deferred work."""
        self.turn.deferred.step()
        self.forwarder.network.go_on()
        self.end_turn()

    def catch_up(self) -> None:
        """Take all turns that are due, also those of clients; stop being patient."""
        self.is_patient = False
        self.finish_turn()
        while behind := [client for client in self.clients if client.is_behind()]:
            for client in behind:
                client.go_on()

    def end_turn(self) -> None:
        """Grant credit and carry all output; deferred work waits for the next round."""
        self.turn.deferred.begin_round()
        self._before_sending()
        while self.turn.touched:
            touched, self.turn.touched = self.turn.touched, []
            for connection in touched:
                connection.owner.carry()
            self._before_sending()
        self.forwarder.sent(self.turn.now)
        self.turn_ended()

    def _before_sending(self) -> None:
        backlog = self.forwarder.backlog
        if backlog.held_bytes > backlog.limit_bytes:
            self.shedding.tick()
        self.forwarder.finish_turn()

    def _gave_up(self, count: int) -> None:
        self.given_up += count

    def wait(self, seconds: float) -> None:
        """Let time pass and expire what is due, as the hub does."""
        self.turn.now += seconds
        expiry = self.forwarder.backlog.deadlines.next
        if expiry and expiry <= self.turn.now:
            expire(self.forwarder)
        draining.finish(self.forwarder)
        expiry = self.forwarder.suspended.next_expiry
        if expiry and expiry <= self.turn.now:
            self.forwarder.suspended.expire(self.forwarder)
        self.forwarder.network.tick(self.turn.now)
        self.finish_turn()


class Client:
    """Peer of the router with one session, and with its own container-id unless it is given one.

    `first` is the first of its sequence numbers.
    """

    def __init__(
        self,
        router: Router,
        *,
        window: int = 1000,
        max_frame_size: int = 65536,
        container: str | None = None,
        user: str | None = None,
        first: int = 0,
        link_prefix: str = "link",
        **settings: Any,
    ) -> None:
        self.router = router
        # for names of links: another client with the same container needs another one
        self.link_prefix = link_prefix
        self.container = f"client-{id(self)}" if container is None else container
        self.connection = Connection(
            server_settings(**{"sasl_mechanisms": (), **settings}),
            router.forwarder,
            router.turn,
            "client",
            False,
        )
        self.connection.owner = self
        self.connection.user = user
        self.reads = True
        self.max_frame_size = max_frame_size
        self.heard: list[Any] = []
        self.links: list[SendingLink | ReceivingLink] = []
        self._unread = b""
        # what was said while the router had not done what was said before
        self._unsaid: list[bytes] = []
        # our side of the session's flow state (section 2.5.6)
        self.window = window
        self.window_left = window
        # the id of the first frame that is not to be sent, as told last
        self.window_end = window
        self.next_incoming_id = 0
        self.first = first
        self.next_outgoing_id = first
        self.router_window = 0
        self.next_delivery_id = first
        self.expected_delivery_id = 0
        self.sent: dict[int, Sending] = {}
        self.over = False
        # what it hears is not answered
        self._mute = False

    def open(self) -> None:
        """Open the connection and begin the session."""
        opened = Open(self.container, max_frame_size=self.max_frame_size)
        begun = Begin(
            next_outgoing_id=self.first,
            incoming_window=self.window,
            outgoing_window=2**31 - 1,
        )
        self.say(AMQP_HEADER, opened, begun)

    # Links.

    def _link_name(self) -> str:
        return f"{self.link_prefix}-{len(self.links)}"

    def sender(self, address: str | None, **fields: Any) -> SendingLink:
        """Attach a sending link."""
        link = SendingLink(self, len(self.links), address, fields.pop("name", self._link_name()))
        self.links.append(link)
        target = fields.pop("target", Target(address=address))
        source = fields.pop("source", Source())
        self.say(
            Attach(link.name, link.handle, False, source=source, target=target,
                   initial_delivery_count=self.first, **fields)
        )  # fmt: skip
        return link

    def receiver(self, address: str | None, credit: int = 0, **fields: Any) -> ReceivingLink:
        """Attach a receiving link, and grant it credit."""
        link = ReceivingLink(self, len(self.links), address, fields.pop("name", self._link_name()))
        self.links.append(link)
        source = fields.pop("source", Source(address=address))
        link.default_outcome = None if source is None else source.default_outcome
        self.say(Attach(link.name, link.handle, True, source=source, target=Target(), **fields))
        if credit:
            link.grant(credit)
        return link

    # What goes in.

    def say(self, *things: Any) -> None:
        """Have the router read this with one read, and end its turn."""
        self.give(*things)
        self.router.finish_turn()
        while self.is_behind() and not self.router.is_patient:
            self.go_on()

    def is_behind(self) -> bool:
        """Return whether the router has not done all that was said."""
        return bool(self.connection.is_behind or self._unsaid)

    def go_on(self) -> None:
        """Take a turn, in which the router goes on with what was said."""
        if self.connection.is_behind:
            self.connection.resume()
        elif self._unsaid:
            self._receive(self._unsaid.pop(0))
        self.router.finish_turn()

    def give(self, *things: Any) -> None:
        """Have the router read this, and leave the turn open."""
        octets = b"".join(wire(thing) for thing in things)
        if self.is_behind():
            self._unsaid.append(octets)
        else:
            self._receive(octets)

    def _receive(self, octets: bytes) -> None:
        buffer = self.router.buffer
        kept = self.connection.prepare(buffer)
        end = kept + len(octets)
        buffer[kept:end] = octets
        self.connection.receive(buffer, end)
        buffer[:end] = b"\xff" * end

    def flow(self, **fields: Any) -> Flow:
        """Send a flow with the session's windows, and other given fields."""
        # what we have not read yet, and what is sent before the router knows of this, may have been
        # sent into a wider window
        is_known = self.reads and not self.is_behind()
        self.window_left = self.window if is_known else max(self.window, self.window_left)
        self.window_end = serial.add(self.next_incoming_id, self.window)
        return Flow(
            next_incoming_id=self.next_incoming_id,
            incoming_window=self.window,
            next_outgoing_id=self.next_outgoing_id,
            outgoing_window=2**31 - 1,
            **fields,
        )

    def open_window(self, window: int | None = None) -> None:
        """Let the router send as many frames as our window is wide."""
        if window is not None:
            self.window = window
        if not self.over:
            self.say(self.flow())

    def dispose(self, ids: list[int], state: Any = None, *, settled: bool = True) -> None:
        """Tell the state of a range of deliveries that were received."""
        self.say(
            Disposition(True, ids[0], ids[-1], settled, Accepted() if state is None else state)
        )

    def close(self) -> None:
        """Close the connection."""
        if not self.over:
            self._forget()
            self.say(Close())
            self.lose()

    def end(self) -> None:
        """End the session."""
        self._forget()
        self.say(End())

    def lose(self) -> None:
        """Lose the socket."""
        self._forget()
        self._unsaid.clear()
        self.connection.end_of_input()
        self.connection.is_behind = False
        self.connection.unfinished = None
        self.router.finish_turn()

    def _forget(self) -> None:
        self.over = True
        for link in self.links:
            link.attached = False

    # What comes out.

    def carry(self) -> None:
        """Take the router's output, as the shell sends it at the end of a turn."""
        self.connection.write_due()
        waiting = bytes(self.connection.outbox.output.waiting())
        while waiting and self.reads:
            self._unread += waiting
            self.connection.sent(len(waiting))
            waiting = bytes(self.connection.outbox.output.waiting())
        while len(self._unread) >= 8 and self._has_a_frame():
            self._hear()

    def read(self, *, reads: bool = True) -> None:
        """Read the router's output from now on, or stop reading."""
        self.reads = reads
        if reads:
            self.carry()
            self.router.finish_turn()

    def read_some(self, count: int) -> None:
        """Read so many octets of the router's output, and no more for now."""
        waiting = bytes(self.connection.outbox.output.waiting())[:count]
        self._unread += waiting
        self.connection.sent(len(waiting))
        while len(self._unread) >= 8 and self._has_a_frame():
            self._hear()
        self.router.finish_turn()

    def overhear(self) -> None:
        """Hear output that was not read, so that it is known; the router does not notice."""
        self._mute = True
        self._unread += bytes(self.connection.outbox.output.waiting())
        while self._unread:
            self._hear()
        self._mute = False

    def _has_a_frame(self) -> bool:
        is_header = self._unread.startswith(b"AMQP")
        return is_header or len(self._unread) >= int.from_bytes(self._unread[:4], "big")

    def _hear(self) -> None:
        if self._unread.startswith(b"AMQP"):
            self._unread = self._unread[8:]
            return
        size = int.from_bytes(self._unread[:4], "big")
        assert len(self._unread) >= size >= 8
        octets, self._unread = self._unread[:size], self._unread[size:]
        assert size <= self.max_frame_size, f"a frame of {size} octets"
        frame = read_frame(octets)
        if isinstance(frame.performative, Transfer):
            self._transfer_heard(frame.performative, frame.payload or b"")
            return
        self.heard.append(frame.performative)
        match frame.performative:
            case Begin() as begun:
                self.router_window = begun.incoming_window
            case Attach() as attach:
                self._link_answered(attach).attach_heard(attach)
            case Flow() as flow:
                self._flow_heard(flow)
            case Disposition() as disposition:
                self._disposition_heard(disposition)
            case Detach() as detach:
                link = self._link_of(detach.handle)
                link.detached = detach
                link.router_handle = -1
                if link.attached and not self._mute:
                    # answered, and so over for both
                    link.attached = False
                    self.give(Detach(link.handle, closed=detach.closed))
            case End() | Close():
                self._forget()

    def _link_answered(self, attach: Attach) -> SendingLink | ReceivingLink:
        kind = SendingLink if attach.role else ReceivingLink
        return next(
            link
            for link in self.links
            if link.attach is None and link.name == attach.name and isinstance(link, kind)
        )

    def _link_of(self, handle: int) -> SendingLink | ReceivingLink:
        return next(link for link in self.links if link.router_handle == handle)

    def _transfer_heard(self, transfer: Transfer, payload: bytes) -> None:
        assert self.window_left > 0, "a transfer beyond our window"
        self.window_left -= 1
        self.next_incoming_id = serial.add(self.next_incoming_id, 1)
        link = self._link_of(transfer.handle)
        assert isinstance(link, ReceivingLink)
        link.transfer_heard(transfer, payload)

    def _flow_heard(self, flow: Flow) -> None:
        assert flow.next_outgoing_id == self.next_incoming_id
        # an answer that asks again would never end
        assert not flow.echo
        if flow.next_incoming_id is not None:
            self.router_window = flow.incoming_window - serial.distance(
                flow.next_incoming_id, self.next_outgoing_id
            )
        if flow.handle is not None:
            self._link_of(flow.handle).flow_heard(flow)

    def _disposition_heard(self, disposition: Disposition) -> None:
        last = disposition.first if disposition.last is None else disposition.last
        count = serial.distance(disposition.first, last) + 1
        for step in range(count):
            number = serial.add(disposition.first, step)
            if disposition.role:
                self.sent[number].told(disposition)
            else:
                for link in self.links:
                    if isinstance(link, ReceivingLink):
                        link.settled_heard(number, disposition)


@attrs.define
class Sending:
    """Delivery that the client sends."""

    link: SendingLink
    number: int
    settled: bool
    states: list[Any] = attrs.Factory(list)
    outcome: Any = None
    is_over: bool = False
    complete: bool = False
    # we settled or aborted it; what the router said before it knew may still come
    given_up: bool = False
    # rcv-settle-mode second: it is ours to settle it
    settles_second: bool = False

    def told(self, disposition: Disposition) -> None:
        """Take the router's state of the delivery."""
        if self.given_up:
            return
        assert not self.is_over, "settled twice"
        assert not self.settled, "an outcome of a delivery that was sent settled"
        assert not (disposition.settled and self.settles_second), "settled before we did"
        self.states.append(disposition.state)
        if disposition.settled:
            self.is_over = True
            self.outcome = disposition.state


class SendingLink:
    """Client's sender; the router's incoming link."""

    def __init__(self, client: Client, handle: int, address: str | None, name: str) -> None:
        self.client = client
        self.name = name
        self.handle = handle
        self.router_handle = -1
        self.address = address
        self.attach: Attach | None = None
        self.detached: Detach | None = None
        self.attached = True
        self.delivery_count = client.first
        self.credit = 0
        self.drain = False
        self.settles_second = False
        self.current: Sending | None = None

    def attach_heard(self, attach: Attach) -> None:
        """Take the router's answer to our attach."""
        self.attach = attach
        self.router_handle = attach.handle
        self.settles_second = attach.rcv_settle_mode == SECOND

    def flow_heard(self, flow: Flow) -> None:
        """Take the router's flow state."""
        assert flow.delivery_count is not None
        assert flow.link_credit is not None
        self.credit = flow.link_credit - serial.distance(flow.delivery_count, self.delivery_count)
        self.drain = flow.drain

    def can_send(self) -> bool:
        """Return whether a new delivery may begin."""
        return (
            self.attached
            and not self.client.over
            and self.current is None
            and self.credit > 0
            and self.client.router_window > 0
        )

    def send(
        self, payload: bytes, *, more: bool = False, settled: bool = False, **fields: Any
    ) -> Sending:
        """Send a delivery, or with `more` its first frame.

        What is no message of AMQP's own format is sent as one of another.
        """
        client = self.client
        its_format = fields.pop("message_format", message_format(payload))
        tag = fields.pop("tag", None)
        assert self.can_send(), f"credit {self.credit}, window {client.router_window}"
        number = client.next_delivery_id
        client.next_delivery_id = serial.add(number, 1)
        self.credit -= 1
        self.delivery_count = serial.add(self.delivery_count, 1)
        sending = client.sent[number] = Sending(self, number, settled)
        sending.settles_second = self.settles_second and fields.get("rcv_settle_mode") != FIRST
        transfer = Transfer(
            self.handle,
            number,
            b"%d" % number if tag is None else tag,
            its_format,
            settled=settled,
            more=more,
            **fields,
        )
        self._frame(sending, transfer, payload, more)
        return sending

    def go_on(self, payload: bytes, *, more: bool = False, **fields: Any) -> None:
        """Send a later frame of the delivery that is under way."""
        assert self.current is not None
        self._frame(self.current, Transfer(self.handle, more=more, **fields), payload, more)

    def abort(self) -> None:
        """Give up the delivery that is under way."""
        assert self.current is not None
        self.current.is_over = self.current.given_up = True
        self._frame(self.current, Transfer(self.handle, aborted=True), b"", False)

    def _frame(self, sending: Sending, transfer: Transfer, payload: bytes, more: bool) -> None:
        client = self.client
        assert client.router_window > 0
        client.router_window -= 1
        client.next_outgoing_id = serial.add(client.next_outgoing_id, 1)
        self.current = sending if more else None
        sending.complete = not more
        if transfer.settled:
            sending.settled = sending.given_up = True
        client.say(On(ROUTER_CHANNEL, transfer, payload))

    def settle(self, sending: Sending, state: Any = None) -> None:
        """Settle a delivery as its sender."""
        sending.is_over = sending.given_up = True
        self.client.say(Disposition(False, sending.number, settled=True, state=state))

    def give_back(self) -> None:
        """Answer a drain with nothing to send."""
        self.delivery_count = serial.add(self.delivery_count, self.credit)
        self.credit = 0
        client = self.client
        flow = client.flow(handle=self.handle, delivery_count=self.delivery_count, link_credit=0,
                           drain=self.drain)  # fmt: skip
        client.say(flow)

    def detach(self, *, closed: bool = True) -> None:
        """Detach or close the link."""
        self.attached = False
        self.client.say(Detach(self.handle, closed=closed))


@attrs.define
class Received:
    """Delivery that the client receives."""

    number: int
    payload: bytes
    settled: bool
    complete: bool = False
    aborted: bool = False
    tag: bytes | None = None
    frames: int = 1
    # its first frame
    first: Transfer | None = None
    sender_settled: Disposition | None = None
    # what its first transfer told
    state: Any = None


class ReceivingLink:
    """Client's receiver; the router's outgoing link."""

    def __init__(self, client: Client, handle: int, address: str | None, name: str) -> None:
        self.client = client
        self.name = name
        self.handle = handle
        self.router_handle = -1
        self.address = address
        self.attach: Attach | None = None
        self.detached: Detach | None = None
        self.attached = True
        self.delivery_count = 0
        self.credit = 0
        self.current: Received | None = None
        self.received: list[Received] = []
        self.unsettled: dict[int, Received] = {}
        self._taken = 0
        self.drained = 0
        # flows that tell that a drain is over
        self.drains_heard = 0
        self.default_outcome: Any = None

    def attach_heard(self, attach: Attach) -> None:
        """Take the router's answer to our attach."""
        self.attach = attach
        self.router_handle = attach.handle
        if self.address is None and attach.source is not None:
            # of the node that was made for it
            self.address = attach.source.address

    def flow_heard(self, flow: Flow) -> None:
        """Take the router's flow state: it may have used up credit in a drain."""
        assert flow.delivery_count is not None
        used = serial.distance(self.delivery_count, flow.delivery_count)
        assert 0 <= used <= self.credit
        self.delivery_count = flow.delivery_count
        self.credit -= used
        self.drained += used
        self.drains_heard += bool(flow.drain and flow.link_credit == 0)

    def transfer_heard(self, transfer: Transfer, payload: bytes) -> None:
        """Take a transfer."""
        received = self.current
        if received is None:
            assert transfer.delivery_id is not None
            assert transfer.delivery_tag is not None
            assert transfer.delivery_id == self.client.expected_delivery_id, "out of order"
            self.client.expected_delivery_id = serial.add(transfer.delivery_id, 1)
            assert self.credit > 0, "a delivery without credit"
            self.credit -= 1
            self.delivery_count = serial.add(self.delivery_count, 1)
            received = Received(transfer.delivery_id, payload, bool(transfer.settled))
            received.tag = transfer.delivery_tag
            received.state = transfer.state
            received.first = transfer
            self.received.append(received)
            if not received.settled:
                self.unsettled[received.number] = received
        else:
            received.payload += payload
            received.frames += 1
        if transfer.settled or transfer.aborted:
            received.settled = True
            self.unsettled.pop(received.number, None)
        received.aborted = transfer.aborted
        received.complete = not transfer.more
        self.current = received if transfer.more and not transfer.aborted else None

    def settled_heard(self, number: int, disposition: Disposition) -> None:
        """Take the sender's state of a delivery."""
        received = self.unsettled.get(number)
        if received is not None:
            received.sender_settled = disposition
            if disposition.settled:
                del self.unsettled[number]

    def grant(self, credit: int, *, drain: bool = False, echo: bool = False) -> None:
        """Let the router send this many deliveries from now on."""
        self.credit = credit
        fields = {"delivery_count": self.delivery_count, "link_credit": credit}
        self.client.say(self.client.flow(handle=self.handle, drain=drain, echo=echo, **fields))

    def take(self) -> bytes:
        """Return the payload of the next complete delivery."""
        received = self.received[self._taken]
        assert received.complete
        self._taken += 1
        return received.payload

    def settle(self, state: Any = None, *, settled: bool = True) -> None:
        """Tell the state of each delivery that came whole and is unsettled."""
        for received in list(self.unsettled.values()):
            if received.complete:
                if settled:
                    del self.unsettled[received.number]
                self.client.dispose([received.number], state, settled=settled)

    def detach(self, *, closed: bool = True) -> None:
        """Detach or close the link."""
        self.attached = False
        self.client.say(Detach(self.handle, closed=closed))
