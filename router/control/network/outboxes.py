"""What is to be said to neighbours, and to edges, and has not left yet.

A message is made when it leaves, which takes its time: where many wait for a neighbour they leave
bit by bit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from router.control.network.codec import encode_control
from router.control.network.peerings import Peering
from router.core.network import control_links

MANY: Final = 8
"""When so many messages wait for a neighbour they leave only in turns that are for such things."""
STUCK_S: Final = 10.0
"""A peer that takes nothing for so long, while there is something for it, is not with us."""


class Outboxes:
    """Those of one router."""

    def __init__(self) -> None:
        # control messages and their octets, by direction and opcode
        self.messages: Counter[tuple[str, str]] = Counter()
        self.octets: Counter[tuple[str, str]] = Counter()
        # those for which messages wait
        self._sending: dict[Peering, None] = {}
        # what was encoded last: it may be for several
        self._encoded: tuple[Any, bytes] = (None, b"")

    def __bool__(self) -> bool:
        return bool(self._sending)

    def count(self, direction: str, opcode: str, octets: int) -> None:
        """A message has come or leaves."""
        self.messages[direction, opcode] += 1
        self.octets[direction, opcode] += octets

    def say(self, peering: Peering, message: Any, now: float) -> None:
        """Have a message sent to a neighbour after those before it."""

        def encode() -> bytes:
            peering.leaves(message)
            if self._encoded[0] is not message:
                self._encoded = (message, encode_control(message))
            octets = self._encoded[1]
            self.count("out", message.opcode, len(octets))
            return octets

        self.add(peering, encode, now)

    def add(
        self,
        peering: Peering,
        octets: Callable[[], bytes],
        now: float,
        most: int = control_links.MOST_WAITING,
    ) -> None:
        """The same of octets that are made when they leave."""
        if peering not in self._sending:
            self._sending[peering] = None
            peering.moved_at = now
        peering.control.send(octets, most)

    def flush(self, now: float, *, is_all: bool) -> list[Peering]:
        """Send what there is credit for, and where much waits only if it is the turn for `is_all`;
        gives those for whom more may wait again.
        """
        emptied = []
        for peering in list(self._sending):
            if len(peering.control.queue) > MANY and not is_all:
                continue
            was_full = peering.is_full
            if peering.control.flush():
                peering.moved_at = now
            if was_full and not peering.is_full:
                emptied.append(peering)
            if peering.control.is_idle:
                del self._sending[peering]
        return emptied

    @property
    def can_flush(self) -> bool:
        """Whether `flush` would send anything."""
        return any(peering.control.can_flush for peering in self._sending)

    def excuse(self, now: float) -> None:
        """This router has not been awake: nobody has had a chance to take anything."""
        for peering in self._sending:
            peering.moved_at = now

    def stuck(self, now: float) -> list[Peering]:
        """Those that have taken nothing for too long."""
        return [each for each in self._sending if now - each.moved_at > STUCK_S]
