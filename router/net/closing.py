"""Close connections that no longer need their sockets, a few per round of the event loop.

A pulled cable or a dead client host ends thousands of connections in one round. The round closes
only some of these connections; the others wait in the queue of deferred work
(`router.engine.deferred`).
"""

from __future__ import annotations

from typing import Final, Protocol

from router.engine.deferred import Deferred

# Closing a socket and ending its task costs as much as this many ordinary steps.
CLOSING_STEPS: Final = 8


class Closing(Protocol):
    """Connection that no longer needs its socket."""

    def refuse_deliveries(self) -> None:
        """Refuse deliveries from now on, because the connection will be closed in a later turn."""

    def close(self) -> None:
        """Close the socket and resolve the connection's deliveries; call this within a turn."""


def close(deferred: Deferred, pump: Closing) -> bool:
    """Close a connection in this turn, or in a later one if this round's budget is used up.

    Return whether the connection is closed already.
    """
    closing = _Close(pump)
    deferred.start(closing, 1, pump.refuse_deliveries, CLOSING_STEPS)
    return closing.is_over


class _Close:
    """Task of `Deferred` that closes a connection in one step."""

    def __init__(self, pump: Closing) -> None:
        self._pump = pump
        self.is_over = False

    def step(self) -> bool:
        """Close the connection."""
        self._pump.close()
        self.is_over = True
        return False
