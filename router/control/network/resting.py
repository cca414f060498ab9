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
SHARED_AT_ONCE: Final = 8
"""Work done in a turn, in addresses advertised: if nobody else is active, and otherwise."""
SHARED_WORK_S: Final = 0.000_02
"""Time for which a turn processes messages while others are active, but at least one step."""
NOTED_AT_ONCE: Final = 8
"""Keys wanted elsewhere that a turn may note in any case."""
TURN_S: Final = 0.000_05
"""Work of a turn of its own, in addition to that of processing messages."""
BURST_S: Final = 0.5
"""Work that the control messages of a neighbour may cause at once; later they are paced."""
MOST_REMEMBERED: Final = 1024
"""Most neighbours whose allowances are remembered."""


class RestingNeighbours:
    """Set of the neighbours that rest.

    `pause` is called when one begins to rest: its messages should be left in their queue. `resume`
    is called when it has rested.
    """

    def __init__(
        self,
        forwarder: Forwarder,
        pause: Callable[[Peering], None],
        resume: Callable[[Peering], None],
    ) -> None:
        self._forwarder = forwarder
        self._pause = pause
        self._resume = resume
        self._peerings: dict[Peering, None] = {}
        # by the id of the neighbour, which may have several connections or none; those that
        # connected first come first
        self._paces: dict[str, Pace] = {}
        # the processor time of this thread in seconds, and whether anybody else is active
        self.cpu_clock: Callable[[], float] = lambda: 0.0
        self.others_are_active: Callable[[], bool] = lambda: False
        # the neighbour whose message this turn has processed last; the turn; and when it began to
        # process messages, by `cpu_clock`
        self._cause: Peering | None = None
        # the neighbour whose message has last changed which keys are wanted elsewhere
        self._teller: Peering | None = None
        self._turn: float | None = None
        self._began = 0.0

    def most_at_once(self) -> int:
        """Return how much work a turn may do, in addresses advertised."""
        return SHARED_AT_ONCE if self.others_are_active() else MOST_AT_ONCE

    def most_noted(self) -> int:
        """Return of how many keys a turn may note that they are wanted elsewhere."""
        return max(NOTED_AT_ONCE, self.most_at_once())

    def came(self, peering: Peering) -> None:
        """Give a neighbour its allowance: what it has left, if it has been here before."""
        router = peering.peer.router
        known = self._paces.pop(router, None)
        peering.pace = self._paces[router] = Pace(BURST_S) if known is None else known
        if len(self._paces) > MOST_REMEMBERED:
            del self._paces[next(iter(self._paces))]

    def __contains__(self, peering: Peering) -> bool:
        return peering in self._peerings

    def caused_by(self, peering: Peering) -> None:
        """Note that a message from a neighbour is processed in this turn."""
        now = self._forwarder.turn.now
        if self._turn != now:
            self._turn, self._began = now, self.cpu_clock()
        self._cause = peering

    def has_news(self) -> None:
        """Note that the message processed last has changed which keys are wanted elsewhere."""
        if self._cause is not None:
            self._teller = self._cause

    def caused_by_teller(self) -> None:
        """Note that this turn notes keys wanted elsewhere, as the last such message has caused."""
        if self._teller is not None and self._cause is None:
            self.caused_by(self._teller)

    def has_time(self) -> bool:
        """Return whether this turn may process more messages although others are active."""
        return self.cpu_clock() - self._began < SHARED_WORK_S

    def end_turn(self) -> None:
        """Charge this turn to the neighbour whose message was processed last, if any was.

        Call this when the turn has nothing left to do.
        """
        peering, self._cause, self._turn = self._cause, None, None
        if peering is None or peering.is_over:
            return
        now = self._forwarder.turn.now
        peering.pace.spend(self.cpu_clock() - self._began + TURN_S, now)
        if peering.pace.resumes_at() > now and self.others_are_active():
            peering.control.is_resting = True
            self._peerings[peering] = None
            self._pause(peering)

    def tick(self, now: float, rests: Callable[[Peering], None]) -> None:
        """Give credit to those that have rested; `rests` is called with each of the others.

        They cannot send anything, and must not be taken for silent.
        """
        if self._teller is not None and self._teller.is_over:
            self._teller = None
        is_needed = self.others_are_active()
        for peering in list(self._peerings):
            if peering.is_over:
                del self._peerings[peering]
            elif not is_needed or peering.pace.resumes_at() <= now:
                del self._peerings[peering]
                peering.control.end_rest(self._forwarder)
                self._resume(peering)
            else:
                rests(peering)
