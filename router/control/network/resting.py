"""Let neighbours rest whose control messages have caused very much work.

A neighbour that never stops to change what it advertises would keep the router busy. Once it has
used up its allowance (`Pace`), it gets no more credit on its control link until it has rested. Its
other links are not affected, and nobody rests unless others are active
(docs/decisions/0127-pace-of-control-messages.md).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from router.control.network.pace import Pace
from router.control.network.peerings import Peering
from router.core.forwarding.forward import Forwarder

MOST_AT_ONCE: Final = 32
SHARED_AT_ONCE: Final = 4
"""Work done in a turn, in addresses advertised: if nobody else is active, and otherwise."""
NOTED_AT_ONCE: Final = 16
"""Keys wanted elsewhere that a turn may note in any case."""
BURST_S: Final = 0.5
"""Work that the control messages of a neighbour may cause at once; later they are paced."""
MOST_REMEMBERED: Final = 1024
"""Most neighbours that have left whose allowances are remembered."""


class RestingNeighbours:
    """Set of the neighbours that rest."""

    def __init__(self, forwarder: Forwarder) -> None:
        self._forwarder = forwarder
        self._peerings: dict[Peering, None] = {}
        # of neighbours that are not connected, by id; those that left first come first
        self._left: dict[str, Pace] = {}
        # the clock by which work is measured, and whether anybody else notices it
        self.clock: Callable[[], float] = lambda: forwarder.turn.now
        self.others_are_active: Callable[[], bool] = lambda: False
        # whether this turn processes control messages, and which neighbour has sent the last one
        self.is_to_be_charged = False
        self._cause: Peering | None = None

    def most_at_once(self) -> int:
        """Return how much work a turn may do, in addresses advertised."""
        return SHARED_AT_ONCE if self.others_are_active() else MOST_AT_ONCE

    def most_noted(self) -> int:
        """Return of how many keys a turn may note that they are wanted elsewhere."""
        return max(NOTED_AT_ONCE, self.most_at_once())

    def came(self, peering: Peering) -> None:
        """Give a neighbour its allowance: what it had left, if it has been here before."""
        known = self._left.pop(peering.peer.router, None)
        peering.pace = Pace(BURST_S) if known is None else known

    def went(self, peering: Peering) -> None:
        """Remember what a neighbour has left that has disconnected."""
        router = peering.peer.router
        self._left.pop(router, None)
        self._left[router] = peering.pace
        if len(self._left) > MOST_REMEMBERED:
            del self._left[next(iter(self._left))]

    def __contains__(self, peering: Peering) -> bool:
        return peering in self._peerings

    def caused_by(self, peering: Peering) -> None:
        """Note that a message from a neighbour is processed in this turn."""
        self.is_to_be_charged = True
        self._cause = peering

    def charge(self) -> None:
        """Charge this turn to the neighbour whose message was processed last.

        Its message may have caused work that is done in later turns.
        """
        self.is_to_be_charged = False
        peering = self._cause
        if peering is None or peering.is_over:
            return
        now = self.clock()
        peering.pace.spend(now - self._forwarder.turn.now, now)
        if peering.pace.resumes_at() > now and self.others_are_active():
            peering.control.is_resting = True
            self._peerings[peering] = None

    def tick(self, now: float, heard: Callable[[Peering], None]) -> None:
        """Give credit to those that have rested; `heard` is called with each of the others.

        They cannot send anything, and must not be taken for silent.
        """
        is_needed = self.others_are_active()
        for peering in list(self._peerings):
            if peering.is_over or not is_needed or peering.pace.resumes_at() <= now:
                del self._peerings[peering]
                peering.control.end_rest(self._forwarder)
            else:
                heard(peering)
