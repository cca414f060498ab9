"""Outbox of a connection, and the turn that knows which connections have something to send.

A turn is one pass of the event loop over something that was received. Code that writes into an
outbox, or notes that a disposition or flow is due, calls `touch`. At the end of the turn the shell
sends the output of each touched connection once. There is only one thread, so a plain list is
enough.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from router.amqp.writing import Output
from router.engine.account import Ledger
from router.engine.deferred import Deferred

if TYPE_CHECKING:
    from typing import Any

    from router.engine.blocking import BlockedLinks
    from router.engine.connection import Connection

# Above this much unsent output no delivery is written, until half of it has left.
CONGESTED_BYTES = 512 * 1024


class Turn:
    """Current pass of the event loop: its time, and the connections that have something to send.

    `now` is in seconds on a monotonic clock. `is_pressed` says that so many messages wait in the
    router that no more should be received. `lendable_bytes` is how many octets can still be lent to
    session windows for large messages (`window`).
    """

    def __init__(self) -> None:
        self.now = 0.0
        self.touched: list[Connection] = []
        self.is_pressed = False
        # work that continues in later turns
        self.deferred = Deferred()
        # the state that the peers of all connections have created
        self.ledger = Ledger()
        self.lendable_bytes = 0


class Outbox:
    """Output buffer of one connection, and its place in the turn.

    While `congested` is True, many octets wait for the socket and no delivery should be written.
    Deliveries wait in the core instead, where they can still be sent to another connection.
    """

    def __init__(self, turn: Turn, connection: Any) -> None:
        self.turn = turn
        self.connection = connection
        self.output = Output()
        self.in_turn = False
        self.congested = False
        # the links that wait for congestion to end (`blocking`); None if no link ever waited
        self.blocked_links: BlockedLinks | None = None

    def touch(self) -> None:
        """Schedule the connection's output to be sent at the end of this turn."""
        if self.output.end - self.output.begin > CONGESTED_BYTES:
            self.congested = True
        if not self.in_turn:
            self.in_turn = True
            self.turn.touched.append(self.connection)

    def relieve(self) -> bool:
        """End congestion if enough output has been sent; return whether it has just ended."""
        if self.congested and self.output.end - self.output.begin < CONGESTED_BYTES // 2:
            self.congested = False
            return True
        return False

    def close(self) -> None:
        """Discard the output, and the queue of waiting links, which refers to the connection."""
        self.output.clear()
        self.congested = False
        self.blocked_links = None


def null_outbox(turn: Turn) -> Outbox:
    """Return an outbox for a session that has ended: it has no room, and is never sent."""
    outbox = Outbox(turn, None)
    outbox.in_turn = True
    outbox.congested = True
    return outbox
