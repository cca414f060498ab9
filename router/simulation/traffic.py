"""Simulated senders and receivers, and what they record about each message."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from router.amqp.message import Message, encode_message
from router.amqp.performatives import Accepted, Modified, Rejected, Released
from router.amqp.sections import Properties
from router.client.receiver import ReceivedMessage
from router.client.sender import SentMessage
from router.simulation.ledger import Entry, Ledger
from router.simulation.links import ReceiverPlan, SenderPlan
from router.simulation.network import Network
from router.simulation.topology import ReceiverEntry, SenderEntry
from router.simulation.virtual_clock import EventScheduler

# Each body ends with the message's number, of this length.
NUMBER_BYTES = 8
_WORDS: Final[dict[type, str]] = {
    Accepted: "accepted",
    Released: "released",
    Modified: "modified",
    Rejected: "rejected",
}


class Listener:
    """Observer of messages, whose methods do nothing unless they are overridden."""

    def sent(self, flow: Flow) -> None:
        """Handle a message that a sender has sent."""

    def outcome_known(self, flow: Flow, entry: Entry) -> None:
        """Handle a message whose outcome its sender has received or will never receive."""

    def delivered(self, sink: Sink, flow: Flow, entry: Entry) -> None:
        """Handle a message that a receiver has received."""


class Flow:
    """Simulated sender to `address` at `router`; `number` is its index among all senders."""

    def __init__(
        self, number: int, router: str, entry: SenderEntry, address: str, network: Network
    ) -> None:
        self.number = number
        self.router = router
        self.entry = entry
        self.address = address
        self.scheduler: EventScheduler = network.scheduler
        self.chance = network.chance(f"sender/{number}")
        # time since which a message is due but not sent, or not accepted
        self.pending_since: float | None = None
        self._ledger: Ledger | None = None
        self._listener = Listener()
        self._due = 0
        self._is_on = False
        self._numbers: dict[SentMessage, int] = {}
        to = address if entry.anonymous else None
        head = encode_message(Message(properties=Properties(to=to))) if to else b""
        body = entry.bytes
        data = bytes((0xA0, body)) if body < 256 else b"\xb0" + body.to_bytes(4, "big")
        self._head = head + b"\x00\x53\x75" + data + bytes(body - NUMBER_BYTES)
        self.plan = SenderPlan(
            None if entry.anonymous else address,
            self._send,
            self._outcome_known,
            presettled=entry.presettled,
        )
        network.container(f"sender-{number}", router).add_sender(self.plan)

    def begin(self, ledger: Ledger, listener: Listener) -> None:
        """Send at the configured rate from now on."""
        self._ledger, self._listener = ledger, listener
        self._is_on = True
        self.scheduler.after(self.chance.uniform(0, 1 / self.entry.rate), self._tick)

    def end(self) -> None:
        """Stop sending."""
        self._is_on = False
        self._due = 0

    def has_pending(self) -> bool:
        """Return whether a message is still to be sent or has no outcome yet."""
        return bool(self._due or self._numbers)

    def _tick(self) -> None:
        if not self._is_on:
            return
        self._due += 1
        if self.pending_since is None:
            self.pending_since = self.scheduler.now
        self.scheduler.after(1 / self.entry.rate, self._tick)
        self._send()

    def _send(self) -> None:
        sender = self.plan.sender()
        while sender is not None and self._due and sender.has_room():
            assert self._ledger is not None
            self._due -= 1
            settled = self.entry.presettled
            number = self._ledger.sent(self.number, self.scheduler.now, presettled=settled)
            sending = sender.send_nowait(self._head + number.to_bytes(NUMBER_BYTES, "big"))
            if not settled:
                self._numbers[sending] = number
            self._listener.sent(self)

    def _outcome_known(self, sending: SentMessage) -> None:
        number = self._numbers.pop(sending, None)
        if number is None:
            return
        assert self._ledger is not None
        word = "lost" if sending.is_lost else _WORDS.get(type(sending.outcome), "accepted")
        self._listener.outcome_known(self, self._ledger.outcome_known(number, word))


class Sink:
    """Simulated receiver from `address` at `router`; `number` is its index among all receivers."""

    def __init__(
        self, number: int, router: str, entry: ReceiverEntry, address: str, network: Network
    ) -> None:
        self.number = number
        self.router = router
        self.entry = entry
        self.address = address
        self.scheduler: EventScheduler = network.scheduler
        self.hear: Callable[[Sink, int, int], None] = lambda *_: None
        self.plan = ReceiverPlan(address, self._take, credit=entry.credit)
        network.container(f"receiver-{number}", router).add_receiver(self.plan)

    def _take(self, received: ReceivedMessage) -> None:
        number = int.from_bytes(received.payload[-NUMBER_BYTES:], "big")
        header = received.message.header if received.payload[2:3] == b"\x70" else None
        tried = 0 if header is None else header.delivery_count or 0
        self.hear(self, number, tried)
        if self.entry.milliseconds:
            self.scheduler.after(self.entry.milliseconds / 1000, lambda: self._settle(received))
        else:
            self._settle(received)

    def _settle(self, received: ReceivedMessage) -> None:
        live = self.plan.live
        if received.is_settled or live is None or live.is_over or received._receiver is not live:
            return
        settle: dict[str, Callable[[], object]] = {
            "accept": received.accept,
            "release": received.release,
            "reject": received.reject,
            "modify": received.modify,
        }
        settle[self.entry.outcome]()


class Traffic:
    """All senders and receivers of a simulation."""

    def __init__(
        self,
        network: Network,
        routers: list[str],
        receivers: Iterable[ReceiverEntry],
        senders: Iterable[SenderEntry],
    ) -> None:
        self.ledger = Ledger()
        self.listener = Listener()
        self.sinks: list[Sink] = []
        self.flows: list[Flow] = []
        chance = network.chance("places")

        def places(entry: ReceiverEntry | SenderEntry) -> list[str]:
            return list(entry.at) or [chance.choice(routers) for _ in range(entry.count)]

        for receiver in receivers:
            for index, place in enumerate(places(receiver)):
                address = (receiver.address or "").replace("{n}", str(index))
                sink = Sink(len(self.sinks), place, receiver, address, network)
                sink.hear = self._delivered
                if receiver.outcome == "release":
                    self.ledger.releasing.add(sink.number)
                self.sinks.append(sink)
        for sender in senders:
            for index, place in enumerate(places(sender)):
                address = (sender.address or "").replace("{n}", str(index))
                self.flows.append(Flow(len(self.flows), place, sender, address, network))

    def begin(self) -> None:
        """Start all senders."""
        for flow in self.flows:
            flow.begin(self.ledger, self.listener)

    def end(self) -> None:
        """Stop all senders."""
        for flow in self.flows:
            flow.end()

    def _delivered(self, sink: Sink, number: int, tried: int) -> None:
        entry = self.ledger.delivered(number, sink.number, tried)
        if entry is not None:
            self.listener.delivered(sink, self.flows[entry.flow], entry)
