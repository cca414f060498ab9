"""What a router says of its own links, and how often."""

from __future__ import annotations

import attrs

from router.control.network.messages import LinkState
from router.control.network.states import Record
from router.control.network.tables import Table
from router.control.network.timing import Timing


class Saying:
    """What one router has said: at once when something has changed, unless that happens all the
    time, and now and then when nothing has.
    """

    def __init__(self, first: LinkState, timing: Timing, now: float) -> None:
        self.timing = timing
        # what was said last, and when; and how many more may be said at once
        self.said = Record(first, now)
        self._allowance = float(timing.burst)
        # there is something to say
        self.must = True

    def due_at(self) -> float:
        """When to look again whether it is due."""
        wait_s = self.timing.pace_s if self.must else self.timing.refresh_s
        return self.said.said_at + min(wait_s, self.timing.refresh_s)

    def is_due(self, now: float) -> bool:
        """Whether the links are to be said; if so, they are."""
        since = now - self.said.said_at
        if self.must:
            allowance = min(self._allowance + since / self.timing.pace_s, self.timing.burst)
            if allowance < 1:
                return False
            self._allowance = allowance - 1
        elif since < self.timing.refresh_s:
            return False
        self.must = False
        return True

    def say(self, seq: int, costs: dict[str, int], addresses: Table, now: float) -> None:
        """Say what the links cost, and how the addresses stand."""
        state = attrs.evolve(
            self.said.state,
            seq=seq,
            links=costs,
            mobile_seq=addresses.seq,
            digest=addresses.digest,
            octets=b"",
        )
        self.said = Record(state, now)
