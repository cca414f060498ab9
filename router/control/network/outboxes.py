"""Queue control messages to neighbours and edges until they can be sent.

A message is encoded when it is sent. Encoding takes time, so if many messages wait for a neighbour,
only a few are sent at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

from router.control.network.codec import encode_control
from router.control.network.messages import Message
from router.control.network.peerings import Peering
from router.core.links import control_links

MANY: Final = 8
"""If more messages wait for a neighbour, they are sent only in turns for deferred work."""
MOST_ENCODED_BYTES: Final = 1 << 13
"""Once this much has been encoded in a turn, the remaining messages wait for a later turn."""
STUCK_S: Final = 60.0
"""A peer that accepts no message for this long, while one waits for it, is disconnected."""


class Outboxes:
    """Set of queues with a router's control messages that wait to be sent."""

    def __init__(self) -> None:
        # control messages and their octets, by direction and opcode
        self.messages: Counter[tuple[str, str]] = Counter()
        self.octets: Counter[tuple[str, str]] = Counter()
        # the neighbours for which messages wait
        self._sending: dict[Peering, None] = {}
        # the message that was encoded last: it may be for several neighbours
        self._encoded: tuple[Message | None, bytes] = (None, b"")
        # octets encoded since `now` changed, or since the last `flush` with `is_all`
        self._encoded_at = 0.0
        self._encoded_bytes = 0

    def __bool__(self) -> bool:
        return bool(self._sending)

    def count(self, direction: str, opcode: str, octets: int) -> None:
        """Count a message and its octets; `direction` is "in" or "out"."""
        self.messages[direction, opcode] += 1
        self.octets[direction, opcode] += octets

    def say(self, peering: Peering, message: Message, now: float) -> None:
        """Queue a message for a neighbour, after all earlier ones; `now` is in seconds."""

        def encode() -> bytes:
            peering.count_dequeued(message)
            if self._encoded[0] is not message:
                self._encoded = (message, encode_control(message))
                self._encoded_bytes += len(self._encoded[1])
            octets = self._encoded[1]
            self.count("out", message.opcode, len(octets))
            return octets

        self.add(peering, encode, now)

    def add(
        self,
        peering: Peering,
        octets: Callable[[], bytes],
        now: float,
        most: int = control_links.MAX_QUEUED,
    ) -> None:
        """Queue a message; `octets` is called to encode it when it is sent.

        If `most` messages wait already, the control link fails instead (`ControlLink.send`).
        """
        if peering not in self._sending:
            self._sending[peering] = None
            peering.moved_at = now
        peering.control.send(octets, most)

    def flush(self, now: float, *, is_all: bool) -> list[Peering]:
        """Send messages as far as credit allows; return neighbours whose queues have room again.

        If more than `MANY` messages wait for a neighbour, they are sent only if `is_all`. A turn
        calls this several times, but at most once with `is_all`.
        """
        if is_all or now != self._encoded_at:
            self._encoded_at = now
            self._encoded_bytes = 0
        emptied = []
        for peering in list(self._sending):
            if self._encoded_bytes >= MOST_ENCODED_BYTES:
                break
            if len(peering.control.queue) > MANY and not is_all:
                continue
            was_full = peering.is_full
            if peering.control.flush():
                peering.moved_at = now
            if was_full and not peering.is_full:
                emptied.append(peering)
            del self._sending[peering]
            if not peering.control.is_idle:
                # its next turn is after the others
                self._sending[peering] = None
        return emptied

    @property
    def can_flush(self) -> bool:
        """Return whether `flush` has anything to send."""
        return any(peering.control.can_flush for peering in self._sending)

    def extend_deadlines(self, now: float) -> None:
        """Give all peers more time to accept messages, since this router was stalled."""
        for peering in self._sending:
            peering.moved_at = now

    def stuck(self, now: float) -> list[Peering]:
        """Return the peers that have accepted no message for `STUCK_S`, although some wait."""
        return [each for each in self._sending if now - each.moved_at > STUCK_S]
