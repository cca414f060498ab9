"""Process the messages from neighbours in limited batches.

Each turn processes a limited amount, alternating between neighbours, so that neither clients nor
other neighbours wait for a neighbour that sends very many messages. Each neighbour's messages keep
their order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from router.control.network.codec import read_control
from router.control.network.interest_queue import InterestQueue
from router.control.network.messages import MobileTable, MobileUpdate
from router.control.network.peerings import Peering
from router.control.network.protocol import Protocol
from router.control.network.steps import Steps
from router.engine.connection import Connection
from router.errors import AmqpError

MOST_WAITING: Final = 8
"""With this many messages waiting, a neighbour gets no more credit."""
MOST_UNNOTED: Final = 8192
"""With this many changed addresses of a router waiting, no more of its messages are processed."""


class Inboxes:
    """Set of queues with the messages from neighbours that wait to be processed.

    `protocol` handles the messages between interiors, and `receive_from_edge(connection, octets)`
    those between an edge and an interior. `read(opcode, octets)` is called with the size of each
    decoded message between interiors. `fail(peering, error)` closes the connection of a neighbour
    that has sent a malformed message.
    """

    def __init__(
        self,
        protocol: Protocol | None,
        receive_from_edge: Callable[[Connection, bytes], Steps[None]],
        unnoted: InterestQueue,
        read: Callable[[str, int], None],
        fail: Callable[[Peering, AmqpError], None],
    ) -> None:
        self._protocol = protocol
        self._receive_from_edge = receive_from_edge
        self._unnoted = unnoted
        self._read = read
        self._fail = fail
        # the neighbours whose messages wait, the next one first
        self._waiting: dict[Peering, None] = {}
        # the message that is being processed, and the neighbour that has sent it
        self._work: Steps[None] | None = None
        self._current: Peering | None = None
        self._emptied: list[Peering] = []

    def __bool__(self) -> bool:
        return bool(self._waiting) or self._work is not None

    @property
    def is_at_message_of_edge(self) -> bool:
        """Return whether a message of an edge, or of an edge's interior, is being processed."""
        return self._current is not None and self._current.is_edge

    def add(self, peering: Peering, octets: bytes) -> None:
        """Queue a message from a neighbour."""
        peering.inbox.append(octets)
        peering.control.is_full = len(peering.inbox) >= MOST_WAITING
        self.resume(peering)

    def resume(self, peering: Peering) -> None:
        """Process the messages from a neighbour again, unless it rests."""
        if (peering.inbox or peering.head is not None) and not peering.control.is_resting:
            self._waiting[peering] = None

    def pause(self, peering: Peering) -> None:
        """Leave the messages from a neighbour in their queue, except the present one."""
        self._waiting.pop(peering, None)

    def drop(self, peering: Peering) -> None:
        """Drop the queued messages from a neighbour."""
        peering.inbox.clear()
        peering.head = None
        self._waiting.pop(peering, None)

    def work(
        self,
        now: float,
        begin: Callable[[Peering], None],
        most: int,
        has_time: Callable[[], bool] = lambda: False,
    ) -> list[Peering]:
        """Process some messages; return the neighbours whose queues have room again.

        Messages with about `most` addresses are processed, and more while `has_time()`. `now` is in
        seconds. `begin` is called with each neighbour whose message is processed, before it is.
        """
        self._emptied.clear()
        if self._current is not None:
            begin(self._current)
        while most > 0 or has_time():
            if self._work is None:
                peering = next((each for each in self._waiting if self._is_ready(each)), None)
                if peering is None:
                    break
                begin(peering)
                self._current, peering.is_being_processed = peering, True
                act = self._act_for_edge if peering.is_edge else self._act
                self._work = act(peering, now)
            done = None
            try:
                done = next(self._work, None)
            finally:
                # also after a defect, so that the next message is processed
                if done is None:
                    self._finish_current()
            most -= done or 1
        return list(self._emptied)

    def _finish_current(self) -> None:
        peering, self._work, self._current = self._current, None, None
        assert peering is not None
        peering.is_being_processed = False
        if not (peering.inbox or peering.head is not None):
            self._waiting.pop(peering, None)

    def _is_ready(self, peering: Peering) -> bool:
        head = peering.head
        if isinstance(head, MobileUpdate | MobileTable):
            return self._unnoted.of_router(head.router) < MOST_UNNOTED
        return True

    def _act(self, peering: Peering, now: float) -> Steps[None]:
        """Decode the next message from an interior, and process it unless it has to wait."""
        assert self._protocol is not None
        if peering.head is None:
            octets = self._take(peering)
            try:
                message = yield from read_control(octets)
            except AmqpError as error:
                self.drop(peering)
                self._fail(peering, error)
                return
            if peering.is_over:
                return
            self._read(message.opcode, len(octets))
            self._protocol.heard(peering.number, now)
            peering.head = message
            if not self._is_ready(peering):
                return
        message, peering.head = peering.head, None
        self._end_turn_of(peering)
        yield from self._protocol.receive(peering.number, message, now)

    def _act_for_edge(self, peering: Peering, now: float) -> Steps[None]:
        """Process the next message from an edge, or of an edge's interior."""
        octets = self._take(peering)
        self._end_turn_of(peering)
        try:
            for done in self._receive_from_edge(peering.connection, octets):
                yield done
                if peering.is_over:
                    return
        except AmqpError as error:
            self.drop(peering)
            self._fail(peering, error)

    def _take(self, peering: Peering) -> bytes:
        octets = peering.inbox.popleft()
        if peering.control.is_full and len(peering.inbox) < MOST_WAITING:
            self._emptied.append(peering)
        return octets

    def _end_turn_of(self, peering: Peering) -> None:
        # a neighbour with more messages has its next turn after the others
        self._waiting.pop(peering, None)
        if peering.inbox:
            self.resume(peering)
