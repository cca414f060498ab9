"""Close connections that are done with their sockets, a few in each round of the event loop.

A cable that is pulled, or a client host that dies, ends thousands of connections in one round. Each
of them waits for its turn in the queue of what is put off (`router.engine.deferred`), after those
that this round has room for.
"""

from __future__ import annotations

from typing import Final, Protocol

from router.engine.deferred import Deferred

# To close a socket, and to end the task that served it, takes as long as so many ordinary steps.
CLOSING_STEPS: Final = 8


class Closing(Protocol):
    """A connection that is done with its socket."""

    def refuse_deliveries(self) -> None:
        """Let nothing more be sent to the peer: the connection is closed in a later turn."""

    def close(self) -> None:
        """Close the socket, within a turn, and resolve what the connection carried."""


def close(deferred: Deferred, pump: Closing) -> bool:
    """Close a connection in this turn, or in a later one if this round has no room for it; return
    whether it is closed.
    """
    closing = _Close(pump)
    deferred.start(closing, 1, pump.refuse_deliveries, CLOSING_STEPS)
    return closing.is_over


class _Close:
    """A task of `Deferred` with one step."""

    def __init__(self, pump: Closing) -> None:
        self._pump = pump
        self.is_over = False

    def step(self) -> bool:
        """Close the connection."""
        self._pump.close()
        self.is_over = True
        return False
