"""Link state that this router advertises for its own links, and when it is sent."""

from __future__ import annotations

import attrs

from router.control.network.link_states import Record
from router.control.network.messages import LinkState
from router.control.network.tables import Table
from router.control.network.timing import Timing


class OwnLinkState:
    """Last link state that this router made, and when the next is due.

    A change is sent without delay, up to `Timing.burst` times in a row; after that, one is sent per
    `Timing.pace_s`. Unchanged link state is sent again every `Timing.refresh_s`.
    """

    def __init__(self, first: LinkState, timing: Timing, now: float) -> None:
        self.timing = timing
        # the last link state with its time; and how many changes may still be sent at once
        self.last = Record(first, now)
        self._allowance = float(timing.burst)
        # whether there is a change to send
        self.has_changed = True

    def due_at(self) -> float:
        """Return when to call `is_due` again, in seconds."""
        wait_s = self.timing.pace_s if self.has_changed else self.timing.refresh_s
        return self.last.sent_at + min(wait_s, self.timing.refresh_s)

    def is_due(self, now: float) -> bool:
        """Return whether to send link state now; if so, the caller must call `renew`."""
        since = now - self.last.sent_at
        if self.has_changed:
            allowance = min(self._allowance + since / self.timing.pace_s, self.timing.burst)
            if allowance < 1:
                return False
            self._allowance = allowance - 1
        elif since < self.timing.refresh_s:
            return False
        self.has_changed = False
        return True

    def renew(self, seq: int, costs: dict[str, int], addresses: Table, now: float) -> None:
        """Make new link state from the costs of links and the state of the address table."""
        state = attrs.evolve(
            self.last.state,
            seq=seq,
            links=costs,
            mobile_seq=addresses.seq,
            digest=addresses.digest,
            octets=b"",
        )
        self.last = Record(state, now)
