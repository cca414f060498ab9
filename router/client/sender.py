"""Send messages as fast as credit allows, each with an outcome that comes later.

`await sender.send(message)` sends one message and waits for its outcome. To send many, send while
there is room and wait only when there is none:

    while messages:
        while messages and sender.has_room():
            sender.send_nowait(messages.pop())
        await sender.wait_for_room()
    await sender.wait_until_settled()
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import trio

from router.amqp import constants
from router.amqp.composite import decode_composite
from router.amqp.message import Message, encode_message
from router.amqp.performatives import Accepted, Modified, Rejected, Released
from router.amqp.reading_disposition import DispositionFrame
from router.client.link import ClientLink, LinkClient
from router.engine.delivery import Delivery
from router.engine.link import OutgoingLink

if TYPE_CHECKING:
    from router.engine.session import Session

Outcome = Accepted | Rejected | Released | Modified

# Outcomes without fields are the same object every time.
_PLAIN: dict[int, Outcome] = {
    int(constants.Descriptor.ACCEPTED): Accepted(),
    int(constants.Descriptor.REJECTED): Rejected(),
    int(constants.Descriptor.RELEASED): Released(),
    int(constants.Descriptor.MODIFIED): Modified(),
}


class SentMessage:
    """Message that was sent; `sent_ns` is the time of sending, from `time.monotonic_ns`.

    If `is_settled`, `outcome` is the receiver's outcome; None means that the message was
    presettled, or that the receiver settled it without an outcome. If `is_lost`, no outcome will
    come.
    """

    __slots__ = ("_resolved", "_sender", "is_lost", "is_settled", "outcome", "sent_ns")

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        # created by a task that waits; for most messages none does
        self._resolved: trio.Event | None = None
        self.sent_ns = time.monotonic_ns()
        self.is_settled = False
        self.is_lost = False
        self.outcome: Outcome | None = None

    async def wait(self) -> Outcome | None:
        """Wait for the outcome and return it.

        Raises LinkLost or ConnectionLost if the link or the connection ended before the outcome
        came.
        """
        if not self.is_settled and not self.is_lost:
            if self._resolved is None:
                self._resolved = trio.Event()
            await self._resolved.wait()
        if self.is_lost:
            raise self._sender.failure()
        return self.outcome

    def settle(self, outcome: Outcome | None) -> None:
        """Record the outcome, and wake the waiting task."""
        self.is_settled = True
        self.outcome = outcome
        if self._resolved is not None:
            self._resolved.set()

    def mark_lost(self) -> None:
        """Record that no outcome will come, and wake the waiting task."""
        self.is_lost = True
        if self._resolved is not None:
            self._resolved.set()


class Sender(ClientLink[OutgoingLink]):
    """Sending end of a link, created by `ClientConnection.open_sender`.

    At most `window` deliveries are unsettled at the same time, even if there is more credit.
    `on_settled`, if set, is called with each SentMessage that is settled.
    """

    def __init__(
        self, client: LinkClient, session: Session | None, *, presettled: bool, window: int
    ) -> None:
        super().__init__(client, session, OutgoingLink)
        self.presettled = presettled
        self.window = window
        self.on_settled: Callable[[SentMessage], None] | None = None
        # deliveries whose outcome was lost with the link
        self.lost = 0
        # rest of the current delivery, which the session window held back: (delivery, octets,
        # offset)
        self._rest: tuple[Delivery, bytes | memoryview, int] | None = None
        self._drain_due = False

    @property
    def credit(self) -> int:
        """Return how many more deliveries the receiver accepts for now."""
        return self.link.credit

    @property
    def unsettled(self) -> int:
        """Return how many deliveries have no outcome yet."""
        return self.link.unsettled

    async def send(self, message: Message | bytes) -> Outcome | None:
        """Send a message, which may be encoded already, and wait for its outcome.

        Raises LinkLost or ConnectionLost if the link or the connection ends before the outcome has
        come.
        """
        await self.wait_for_room()
        sending = self.send_nowait(message)
        if sending.is_settled:
            await trio.lowlevel.checkpoint()
        return await sending.wait()

    def has_room(self) -> bool:
        """Return whether a message can be sent now."""
        return self.session.can_send(self.link) and self.link.unsettled < self.window

    async def wait_for_room(self) -> None:
        """Wait until a message can be sent.

        Raises LinkLost or ConnectionLost if the link or the connection has ended.
        """
        while not self.has_room():
            if self.is_over:
                raise self.failure()
            await self.wait_for_change()

    async def wait_until_settled(self) -> None:
        """Wait until every message has an outcome.

        Raises LinkLost or ConnectionLost if an outcome was lost. Also raises one of them if the
        peer ended the link of a presettled sender, because its last messages may be lost.
        """
        while self.link.unsettled or self._rest is not None:
            await self.wait_for_change()
        if self.is_over and (self.lost or (self.presettled and not self.closed_here)):
            raise self.failure()

    def send_nowait(self, message: Message | bytes | bytearray | memoryview) -> SentMessage:
        """Queue a message, which may be encoded already, to be sent when the caller next waits.

        The content of a memoryview is not copied, so it must not change until the message is
        settled. Raises trio.WouldBlock if there is no room, and LinkLost or ConnectionLost if the
        link or the connection has ended.
        """
        link, session = self.link, self.session
        if not self.has_room():
            raise self.failure() if self.is_over else trio.WouldBlock
        payload = encode_message(message) if isinstance(message, Message) else message
        delivery = Delivery.__new__(Delivery)
        delivery.settled = self.presettled
        delivery.complete = True
        sending = SentMessage(self)
        # the router keeps the delivery's address in this field; here it leads to the message
        delivery.address = sending
        session.begin_outgoing(link, delivery)
        sending.is_settled = not delivery.outgoing_open
        end = len(payload)
        at = session.send(delivery, payload, 0, end, False)
        if at < end:
            link.current = delivery
            kept = payload if isinstance(payload, memoryview) else bytes(payload)
            self._rest = (delivery, kept, at)
        self.client.schedule_output()
        return sending

    # Calls of the engine, by way of the connection.

    def outcome_received(self, delivery: Delivery, frame: DispositionFrame) -> None:
        """Handle the receiver's outcome; an intermediate state, such as received, is ignored."""
        outcome = _PLAIN.get(frame.state_code)
        if outcome is None and not frame.settled:
            return
        if not frame.plain and outcome is not None:
            octets = bytes(memoryview(frame.octets)[frame.state_at : frame.state_end])
            composite, _ = decode_composite(octets)
            assert isinstance(composite, Accepted | Rejected | Released | Modified)
            outcome = composite
        if not frame.settled:
            # the receiver settles second (rcv-settle-mode), and waits for our disposition
            count = 0 if frame.plain else frame.state_end - frame.state_at
            self.session.send_state_to_receiver(
                delivery, True, frame.state_code, frame.octets, frame.state_at, count
            )
        sending: SentMessage = delivery.address
        sending.settle(outcome)
        if self.on_settled is not None:
            self.on_settled(sending)
        self.notify_change()

    def credit_received(self) -> None:
        """Handle the receiver's flow, which grants credit or asks for a drain."""
        self._drain_due = self.link.drain
        if self._drain_due:
            self.client.schedule_drain_answer(self)
        self.notify_change()

    def answer_drain(self) -> None:
        """Answer a drain: give up the credit that waiting tasks have not used (section 2.6.7)."""
        link = self.link
        if self._drain_due and not self.is_over and link.drain and self._rest is None:
            self._drain_due = False
            self.session.use_up_credit(link)

    def room_made(self) -> None:
        """Continue the current delivery: the session's window or the socket has room again."""
        if self._rest is not None and not self.is_over:
            delivery, payload, at = self._rest
            if self.session.remote_incoming_window > 0:
                end = len(payload)
                at = self.session.send(delivery, payload, at, end, False)
                self._rest = (delivery, payload, at) if at < end else None
                if at == end:
                    self.link.current = None
        self.notify_change()

    def give_up_deliveries(self) -> None:
        """Give up all deliveries without an outcome, because the link has ended."""
        self._rest = None
        for delivery in self.session.outgoing.of_link(self.link):
            self.session.close_outgoing(delivery)
            delivery.address.mark_lost()
            self.lost += 1
