"""Close the sockets of ended connections, a few per round of the event loop.

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
    """Interface of a connection that has ended, and whose socket is to be closed."""

    def refuse_deliveries(self) -> None:
        """Send no more deliveries, because the socket will be closed in a later turn."""

    def close(self) -> None:
        """Close the socket and end the connection with its links; call this within a turn."""


def close(deferred: Deferred, pump: Closing) -> bool:
    """Close a connection's socket now, or in a later turn if this round's budget is used up.

    Return whether the socket is closed already.
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
