"""Receiving messages: `async for delivery in receiver`, with a window of credit kept open.

Whole messages are handed out, in the order in which they came. No more than `credit` of them are on
their way or unsettled at once, so a receiver that settles nothing gets nothing more; octets are
bounded too, by the session's window.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Self

import trio

from router.amqp import constants
from router.amqp.composite import encode_composite
from router.amqp.message import Message, decode_message
from router.amqp.performatives import Error, Modified, Rejected
from router.amqp.reading import TransferFrame
from router.amqp.types import Symbol
from router.client.link import ClientLink
from router.engine.delivery import Delivery

_ACCEPTED = int(constants.Descriptor.ACCEPTED)
_REJECTED = int(constants.Descriptor.REJECTED)
_RELEASED = int(constants.Descriptor.RELEASED)
_MODIFIED = int(constants.Descriptor.MODIFIED)


class Received:
    """A message that came in; `payload` is its encoding, `is_settled` says that the sender settled.

    Each of accept, reject, release and modify settles it, once; a second word is not said. They
    raise LinkLost or ConnectionLost where nobody is there to be told.
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
        """Nothing more is to be said of it."""
        return not self._delivery.incoming_open

    @property
    def message_format(self) -> int:
        """By what the octets are to be understood: 0 is AMQP's own message (section 2.8.11)."""
        return int(self._delivery.message_format)

    @property
    def message(self) -> Message:
        """The message, decoded. Raises AmqpError where the octets are none."""
        if self._message is None:
            self._message = decode_message(self.payload)
        return self._message

    def accept(self) -> None:
        """It was processed."""
        self._settle(_ACCEPTED, b"")

    def reject(self, condition: str = "", description: str | None = None) -> None:
        """It is invalid; with a `condition`, the sender reads why."""
        error = Error(Symbol(condition), description) if condition else None
        state = encode_composite(Rejected(error)) if error else b""
        self._settle(_REJECTED, state)

    def release(self) -> None:
        """It was not processed; whoever may have it as it is."""
        self._settle(_RELEASED, b"")

    def modify(self, *, delivery_failed: bool = False, undeliverable_here: bool = False) -> None:
        """It was not processed, and the next attempt should know what became of this one."""
        state = encode_composite(Modified(delivery_failed or None, undeliverable_here or None))
        self._settle(_MODIFIED, state)

    def _settle(self, code: int, state: bytes) -> None:
        if not self._is_told:
            self._receiver.settle(self._delivery, code, state)
            self._is_told = True


class Receiver(ClientLink):
    """Our receiving end of a link; made by `ClientConnection.open_receiver`.

    With `count`, never more than so many are asked for, and iteration ends after the last of them.
    With `drain`, the sender is asked for what it has now, and iteration ends when it has no more.
    """

    def __init__(
        self, client: Any, session: Any, *, credit: int, count: int | None, drain: bool
    ) -> None:
        super().__init__(client, session)
        # the name of the filter that was asked for, and whether the peer does without it
        self.filter: Symbol | None = None
        self.lacks_filter = False
        self.window = credit
        self.count = count
        self.drain = drain
        # how many have come, and how many of them were handed out
        self.arrived = 0
        self.taken = 0
        self._queue: deque[Received] = deque()
        # with drain: how much of the credit last given is open, and that nothing more will come
        self._asked_for = 0
        self._is_dry = False

    @property
    def address(self) -> str | None:
        """Where it receives from, as the peer named it."""
        source = self.link.remote_attach.source
        return None if source is None else source.address

    @property
    def credit(self) -> int:
        """How many messages the sender may send from here on."""
        credit: int = self.link.credit
        return credit

    @property
    def waiting(self) -> int:
        """How many messages can be taken at once."""
        return len(self._queue)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Received:
        """The next message. Raises LinkLost or ConnectionLost.

        Other tasks run whenever nothing waits, which the credit window brings about soon enough.
        """
        if not await self.wait_for_message():
            raise StopAsyncIteration
        return self.receive_nowait()

    async def receive(self) -> Received:
        """The next message. Raises trio.EndOfChannel where none will come, LinkLost,
        ConnectionLost.
        """
        if not await self.wait_for_message():
            raise trio.EndOfChannel
        return self.receive_nowait()

    async def wait_for_message(self) -> bool:
        """Wait until a message can be taken; False where none will come.

        Raises LinkLost or ConnectionLost.
        """
        while not self._queue:
            if self._closed_here or self._is_dry or self.taken == self.count:
                return False
            if self.is_over:
                raise self.failure()
            await self.wait_for_change()
        return True

    def receive_nowait(self) -> Received:
        """A message that has come already. Raises trio.WouldBlock where there is none."""
        if not self._queue:
            raise trio.WouldBlock
        received = self._queue.popleft()
        self.taken += 1
        session = self.session
        session.window.held_frames -= received.frames
        session.note_window()
        self._top_up()
        if session.in_due:
            self.client.note()
        return received

    def settle(self, delivery: Delivery, code: int, state: bytes) -> None:
        """Tell the sender an outcome; see `Received`."""
        if not delivery.incoming_open:
            if self.is_over and not delivery.settled:
                raise self.failure()
            return
        self.session.tell_sender(delivery, True, code, state, 0, len(state))
        self._top_up()
        self.client.note()

    def _top_up(self) -> None:
        """Give credit again once half of it is used up (section 2.6.7)."""
        link = self.link
        credit = link.credit
        if credit > self.window >> 1 or self.is_over or self._is_dry:
            return
        if self.drain and credit:
            # what was asked for comes first
            return
        target = self.window - max(link.unsettled, len(self._queue))
        if self.count is not None:
            target = min(target, self.count - self.arrived)
        if target > credit:
            self._asked_for = target
            self.session.grant(link, target, self.drain)

    # What the engine tells, by way of the connection.

    def attached(self) -> None:
        """From here on there is credit, unless the peer leaves out a filter that was asked for: it
        does not know it then (section 3.5.3).
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
        """A frame came in; with the last one the message is whole."""
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
        # Frames of a message that is not yet whole hold nothing up: it could never become whole.
        self.session.window.held_frames += frames
        self.arrived += 1
        self._queue.append(Received(self, delivery, payload, frames))
        self.changed()

    def transfer_aborted(self, delivery: Delivery) -> None:
        """The rest of a message will not come."""
        delivery.chunks = None
        self._asked_for -= 1
        self._top_up()

    def flow_received(self) -> None:
        """The sender told where it stands; after a drain, that it has nothing left."""
        if self.drain and self.link.credit == 0 and self._asked_for > 0:
            self._is_dry = True
            self.changed()

    def close(self) -> None:
        """Release what nobody took, then detach."""
        if not self.is_over:
            for received in self._queue:
                received.release()
        super().close()

    def resolve(self) -> None:
        """What is unsettled stays so at the sender; only what was settled can still be taken."""
        for delivery in self.session.incoming.of_link(self.link):
            self.session.close_incoming(delivery)
        kept = [each for each in self._queue if each._delivery.settled and not self._closed_here]
        self.session.window.held_frames -= sum(each.frames for each in self._queue)
        for each in kept:
            each.frames = 0
        self._queue = deque(kept)
