"""Clients of random networks (`random_networks`), and the record of their messages."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

import attrs

from router.amqp.message import Message, decode_message, encode_message
from router.amqp.performatives import Accepted, Header, Modified, Properties, Rejected, Released
from router.amqp.sections import Data
from router.client.receiver import ReceivedMessage
from router.client.sender import SentMessage
from router.config.listeners import ListenerSettings
from router.engine import attaching, events
from router.engine.delivery import Delivery
from router.engine.rare_transfers import abort
from router.simulation.containers import Container
from router.simulation.host import SimulatedRouter
from router.simulation.links import ReceiverPlan, SenderPlan, SimulatedReceiver, SimulatedSender
from router.simulation.network import BESIDE

if TYPE_CHECKING:
    from support.random_networks import RandomNetwork

KINDS = {Accepted: "accepted", Released: "released", Modified: "modified", Rejected: "rejected"}
BROKERS = ListenerSettings(name="brokers", role="route-container", idle_timeout_seconds=0)
# So much of a message that is streamed comes at a time, and as often.
PIECE_BYTES = 15_000
PIECE_S = 0.02


@attrs.define(eq=False)
class Entry:
    """Message: `taken` are the receivers that have accepted it, `seen` those that got it."""

    flow: Flow
    size: int
    priority: int
    # in which calm stretch it was sent, if in one
    calm: int | None
    outcome: str = ""
    seen: list[str] = attrs.Factory(list)
    taken: list[str] = attrs.Factory(list)


class Book:
    """All messages by number."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.mistakes: list[str] = []

    def octets(self, number: int, to: str | None = None) -> bytes:
        """Return the message of this number; no part of it looks like the whole."""
        entry = self.entries[number]
        body = Random(number).randbytes(16) * (entry.size // 16 + 1)
        message = Message(
            header=Header(priority=entry.priority),
            properties=Properties(message_id=f"{number}", to=to),
            body=(Data(body),),
        )
        return encode_message(message)

    def read(self, payload: bytes) -> int:
        """Return the number of a message that came; note a mistake if it was changed."""
        message = decode_message(payload)
        assert message.properties is not None
        number = int(str(message.properties.message_id))
        (body,) = message.body
        whole = decode_message(self.octets(number)).body[0]
        if not isinstance(body, Data) or body != whole:
            self.mistakes.append(f"{number} came, but not as it was sent")
        return number


class Flow:
    """Sender to one address, which goes on when its connection comes back."""

    def __init__(self, world: RandomNetwork, number: int, router: str, address: str) -> None:
        dice = world.dice
        self.world = world
        self.number = number
        self.router = router
        self.address = address
        self.is_anonymous = not address.startswith("routed") and dice.random() < 0.2
        self.is_presettled = dice.random() < 0.1
        self.streams = dice.random() < 0.4
        self.priorities = dice.choice(((4,), (4,), (0, 4, 9), tuple(range(10))))
        self.to_send = 0
        self.open: dict[int, int] = {}
        at = None if self.is_anonymous else address
        self.plan = SenderPlan(at, self.send, self._told, self.is_presettled)

    @property
    def is_routed(self) -> bool:
        """Return whether its links are a container's own."""
        return self.address.startswith("routed")

    @property
    def is_multicast(self) -> bool:
        """Return whether all receivers get what it sends."""
        return self.address.startswith("multicast")

    def send(self) -> None:
        """Send as much as there is room for."""
        sender = self.plan.sender()
        while sender is not None and self.to_send and sender.has_room():
            self.to_send -= 1
            self._send_one(sender)

    def _send_one(self, sender: SimulatedSender) -> None:
        dice, book = self.world.dice, self.world.book
        size = dice.choice((0, 100, 100, 2000, 40_000))
        is_stream = self.streams and dice.random() < 0.3
        if is_stream:
            size = dice.randrange(2 * PIECE_BYTES, 20 * PIECE_BYTES)
        number = len(book.entries)
        entry = Entry(self, size, dice.choice(self.priorities), self.world.calm)
        book.entries.append(entry)
        payload = book.octets(number, self.address if self.is_anonymous else None)
        if is_stream:
            self._stream(sender, number, payload)
        else:
            sending = sender.send_nowait(payload)
            if self.is_presettled:
                entry.outcome = "presettled"
            else:
                self.open[id(sending)] = number

    def _stream(self, sender: SimulatedSender, number: int, payload: bytes) -> None:
        """Send a message piece by piece, and perhaps give it up in the middle."""
        delivery = Delivery.__new__(Delivery)
        delivery.settled = self.is_presettled
        delivery.complete = True
        sending = SentMessage(sender)
        delivery.address = sending
        if self.is_presettled:
            self.world.book.entries[number].outcome = "presettled"
        else:
            self.open[id(sending)] = number
        sender.session.begin_outgoing(sender.link, delivery)
        sender.link.current = delivery
        gives_up = None
        if self.world.calm is None and self.world.dice.random() < 0.2:
            gives_up = self.world.dice.randrange(len(payload))
        self._go_on(sender, delivery, sending, number, payload, 0, gives_up)

    def _go_on(
        self,
        sender: SimulatedSender,
        delivery: Delivery,
        sending: SentMessage,
        number: int,
        payload: bytes,
        at: int,
        gives_up: int | None,
    ) -> None:
        link, session = sender.link, sender.session
        if sender.is_over or link.current is not delivery:
            return
        room = session.remote_incoming_window > 0 and not session.outbox.congested
        if room and gives_up is not None and at >= gives_up:
            self.open.pop(id(sending), None)
            self.world.book.entries[number].outcome = "aborted"
            abort(delivery)
            link.current = None
        elif room:
            end = min(at + PIECE_BYTES, len(payload))
            at = session.send(delivery, payload, at, end, end < len(payload))
            if at == len(payload):
                link.current = None
        sender.client.schedule_output()
        if link.current is None:
            self.send()
            return
        go_on = partial(self._go_on, sender, delivery, sending, number, payload, at, gives_up)
        self.world.network.scheduler.after(PIECE_S, go_on)

    def _told(self, sending: SentMessage) -> None:
        number = self.open.pop(id(sending), None)
        if number is None:
            return
        entry = self.world.book.entries[number]
        if entry.outcome:
            self.world.book.mistakes.append(f"{number}: told twice")
        outcome: Any = sending.outcome
        entry.outcome = "lost" if sending.is_lost else KINDS[type(outcome)]


class Taker:
    """Receiver that settles as chance decides."""

    def __init__(
        self, world: RandomNetwork, name: str, router: str, address: str, manner: str
    ) -> None:
        self.world = world
        self.name = name
        self.router = router
        self.address = address
        self.manner = manner
        self.plan = ReceiverPlan(address, self.take, world.dice.choice((1, 3, 20, 100)))
        # the numbers of what has come, in order
        self.came: list[int] = []

    def take(self, received: ReceivedMessage) -> None:
        """Note what has come, and settle it in time."""
        world = self.world
        number = world.book.read(received.payload)
        entry = world.book.entries[number]
        if entry.flow.address != self.address:
            world.book.mistakes.append(f"{number} came to {self.address}")
        entry.seen.append(self.name)
        self.came.append(number)
        settle = partial(self._settle, received, entry)
        if self.manner == "slow":
            world.network.scheduler.after(world.dice.uniform(0.01, 0.3), settle)
        else:
            settle()

    def _settle(self, received: ReceivedMessage, entry: Entry) -> None:
        if received._receiver.is_over:
            return
        if received.is_settled:
            entry.taken.append(self.name)
        elif self.manner == "moody" and self.world.dice.random() < 0.3:
            self.world.dice.choice((received.release, received.modify, received.reject))()
        else:
            entry.taken.append(self.name)
            received.accept()


class Broker(Container):
    """Container that a link route leads to: it takes each link and all messages on it."""

    def __init__(self, world: RandomNetwork, name: str, host: SimulatedRouter) -> None:
        network = world.network
        super().__init__(
            name,
            host,
            network.scheduler,
            BESIDE,
            network.chance(name),
            network._buffer,
            BROKERS,
        )
        self.world = world
        network.containers[name] = self

    def is_connected(self) -> bool:
        """Return whether its router can reach it."""
        return self._engine is not None and self._engine.is_open()

    def room_made(self) -> None:
        """Do nothing: it sends nothing."""

    def event_received(self, event: Any) -> None:
        """Take every link that its router attaches."""
        if isinstance(event, events.LinkAttachReceived):
            self._take(event.link)
        elif isinstance(event, events.LinkDetached) and event.link.owner is not None:
            event.link.owner.detached(event)
        self.schedule_output()

    def _take(self, link: Any) -> None:
        remote = link.remote_attach
        attaching.accept(link, remote.source, remote.target)
        taker = Taker(self.world, self.name, self.host.name, str(remote.target.address), "eager")
        self.session = link.session
        receiver = SimulatedReceiver(self, taker.plan)
        self.session = None
        taker.plan.live = receiver
        receiver.link = link
        link.owner = receiver
        receiver.attached()

    def _begun(self, session: Any) -> None:
        """Do nothing: links on its router's sessions are taken as they come."""
