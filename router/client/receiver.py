"""Receive messages: `async for message in receiver`; credit is granted automatically.

Messages are returned complete, in the order of their arrival. At most `credit` messages are in
transit or unsettled at the same time, so a caller has to settle messages to get further ones. The
session's window limits the octets of the messages as well.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Self

import trio

from router.amqp import constants
from router.amqp.composite import encode_composite
from router.amqp.message import Message, decode_message
from router.amqp.performatives import Error, Modified, Rejected
from router.amqp.reading import TransferFrame
from router.amqp.types import Symbol
from router.client.link import ClientLink, LinkClient
from router.engine.delivery import Delivery
from router.engine.link import IncomingLink

if TYPE_CHECKING:
    from router.engine.session import Session

_ACCEPTED = int(constants.Descriptor.ACCEPTED)
_REJECTED = int(constants.Descriptor.REJECTED)
_RELEASED = int(constants.Descriptor.RELEASED)
_MODIFIED = int(constants.Descriptor.MODIFIED)


class ReceivedMessage:
    """Received message; `payload` is its encoding.

    The methods accept, reject, release and modify settle the message; a second call has no effect.
    They raise LinkLost or ConnectionLost if the outcome can no longer be sent.
    """

    __slots__ = ("_delivery", "_is_told", "_message", "_receiver", "frames", "payload")

    def __init__(self, receiver: Receiver, delivery: Delivery, payload: bytes, frames: int) -> None:
        self._receiver = receiver
        self._delivery = delivery
        self._message: Message | None = None
        self._is_told = False
        self.payload = payload
        self.frames = frames

    @property
    def is_settled(self) -> bool:
        """Return whether the delivery is settled."""
        return not self._delivery.incoming_open

    @property
    def message_format(self) -> int:
        """Return the payload's message-format; 0 is the standard AMQP format (section 2.8.11)."""
        return int(self._delivery.message_format)

    @property
    def message(self) -> Message:
        """Return the decoded message. Raises AmqpError if the payload is not a message."""
        if self._message is None:
            self._message = decode_message(self.payload)
        return self._message

    def accept(self) -> None:
        """Settle as accepted: the message was processed."""
        self._settle(_ACCEPTED, b"")

    def reject(self, condition: str = "", description: str | None = None) -> None:
        """Settle as rejected: the message is invalid. The sender gets the `condition`, if given."""
        error = Error(Symbol(condition), description) if condition else None
        state = encode_composite(Rejected(error)) if error else b""
        self._settle(_REJECTED, state)

    def release(self) -> None:
        """Settle as released: the message was not processed, and may be delivered again."""
        self._settle(_RELEASED, b"")

    def modify(self, *, delivery_failed: bool = False, undeliverable_here: bool = False) -> None:
        """Settle as modified (3.4.5): the message was not processed.

        With `delivery_failed`, this counts as a failed delivery attempt. With `undeliverable_here`,
        the message must not be sent on this link again.
        """
        state = encode_composite(Modified(delivery_failed or None, undeliverable_here or None))
        self._settle(_MODIFIED, state)

    def _settle(self, code: int, state: bytes) -> None:
        if not self._is_told:
            self._receiver.settle(self._delivery, code, state)
            self._is_told = True


class Receiver(ClientLink[IncomingLink]):
    """Receiving end of a link, created by `ClientConnection.open_receiver`.

    The argument `credit` limits how many messages are in transit or unsettled. With `count`, credit
    is granted for only that many messages, and iteration ends after the last one. With `drain`, the
    sender is asked for the messages that it has now, and iteration ends after these messages.
    """

    def __init__(
        self,
        client: LinkClient,
        session: Session | None,
        *,
        credit: int,
        count: int | None,
        drain: bool,
    ) -> None:
        super().__init__(client, session, IncomingLink)
        # the name of the requested filter, and whether the peer does not apply it
        self.filter: Symbol | None = None
        self.lacks_filter = False
        self.window = credit
        self.count = count
        self.drain = drain
        # messages that were received, and messages that were taken
        self.arrived = 0
        self.taken = 0
        self._queue: deque[ReceivedMessage] = deque()
        # with drain: how much of the credit last given is unused, and whether nothing more will
        # come
        self._asked_for = 0
        self._is_dry = False

    @property
    def address(self) -> str | None:
        """Return the address of the link's source, as the peer named it."""
        source = self.link.remote_attach.source
        return None if source is None else source.address

    @property
    def credit(self) -> int:
        """Return how many messages the sender may still send."""
        return self.link.credit

    @property
    def waiting(self) -> int:
        """Return how many received messages can be taken without waiting."""
        return len(self._queue)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ReceivedMessage:
        """Return the next message.

        A message that has already arrived is returned without a checkpoint. Raises LinkLost or
        ConnectionLost if the link or the connection has ended.
        """
        if not await self.wait_for_message():
            raise StopAsyncIteration
        return self.receive_nowait()

    async def receive(self) -> ReceivedMessage:
        """Wait for the next message and return it.

        Raises trio.EndOfChannel if no more messages will come, and LinkLost or ConnectionLost if
        the link or the connection has ended.
        """
        if not await self.wait_for_message():
            raise trio.EndOfChannel
        return self.receive_nowait()

    async def wait_for_message(self) -> bool:
        """Wait until a message has arrived; return False if no more will come.

        Raises LinkLost or ConnectionLost if the link or the connection has ended.
        """
        while not self._queue:
            if self.closed_here or self._is_dry or self.taken == self.count:
                return False
            if self.is_over:
                raise self.failure()
            await self.wait_for_change()
        return True

    def receive_nowait(self) -> ReceivedMessage:
        """Return a message that has already arrived; raise trio.WouldBlock if there is none."""
        if not self._queue:
            raise trio.WouldBlock
        received = self._queue.popleft()
        self.taken += 1
        session = self.session
        session.window.held_frames -= received.frames
        session.held_frames_gone()
        self._top_up()
        if session.in_due:
            self.client.schedule_output()
        return received

    def settle(self, delivery: Delivery, code: int, state: bytes) -> None:
        """Settle a delivery with an outcome; see `ReceivedMessage`.

        `code` is the descriptor of the outcome. `state` is the encoded outcome, or empty if the
        outcome has no fields.
        """
        if not delivery.incoming_open:
            if self.is_over and not delivery.settled:
                raise self.failure()
            return
        self.session.send_state_to_sender(delivery, True, code, state, 0, len(state))
        self._top_up()
        self.client.schedule_output()

    def _top_up(self) -> None:
        """Grant credit again once half of it is used up (section 2.6.7)."""
        link = self.link
        credit = link.credit
        if credit > self.window >> 1 or self.is_over or self._is_dry:
            return
        if self.drain and credit:
            # the credit that was granted before is used up first
            return
        target = self.window - max(link.unsettled, len(self._queue))
        if self.count is not None:
            target = min(target, self.count - self.arrived)
        if target > credit:
            self._asked_for = target
            self.session.grant(link, target, self.drain)

    # Calls of the engine, by way of the connection.

    def attached(self) -> None:
        """Handle the peer's attach: grant credit, unless the peer ignores the requested filter.

        The peer omits a filter that it does not support from its source (section 3.5.3).
        """
        source = self.link.remote_attach.source
        applied = None if source is None else source.filter
        self.lacks_filter = self.filter is not None and (
            applied is None or applied.get(self.filter) is None
        )
        super().attached()
        if self._answered.is_set() and not self.lacks_filter:
            self._top_up()

    def transfer_received(self, delivery: Delivery, frame: TransferFrame) -> None:
        """Handle a transfer; the last one of a delivery completes the message."""
        payload = bytes(frame.octets[frame.payload_at : frame.end])
        frames = 1
        if delivery.chunks is not None:
            delivery.chunks.append(payload)
            frames = len(delivery.chunks)
        elif not delivery.complete:
            delivery.chunks = [payload]
        if not delivery.complete:
            return
        self._asked_for -= 1
        if delivery.chunks is not None:
            payload = b"".join(delivery.chunks)
            delivery.chunks = None
        # Frames of an incomplete message do not count against the window, or it could never
        # complete.
        self.session.window.held_frames += frames
        self.arrived += 1
        self._queue.append(ReceivedMessage(self, delivery, payload, frames))
        self.notify_change()

    def transfer_aborted(self, delivery: Delivery) -> None:
        """Discard an aborted delivery."""
        delivery.chunks = None
        self._asked_for -= 1
        self._top_up()

    def flow_received(self) -> None:
        """Handle the sender's flow; if it answers a drain, no more messages will come."""
        if self.drain and self.link.credit == 0 and self._asked_for > 0:
            self._is_dry = True
            self.notify_change()

    def close(self) -> None:
        """Release the messages that were not taken, then close the link."""
        if not self.is_over:
            for received in self._queue:
                received.release()
        super().close()

    def give_up_deliveries(self) -> None:
        """Give up the unsettled deliveries, which stay unsettled at the sender.

        Of the waiting messages, only those that the sender has settled can still be taken.
        """
        for delivery in self.session.incoming.of_link(self.link):
            self.session.close_incoming(delivery)
        kept = [each for each in self._queue if each._delivery.settled and not self.closed_here]
        self.session.window.held_frames -= sum(each.frames for each in self._queue)
        # their frames are no longer in the count, and must not be subtracted again
        for each in kept:
            each.frames = 0
        self._queue = deque(kept)
