"""Where connections meet: one turn, one core, one read buffer, and the sending at a turn's end.

Something is received; the engine and the core do all that follows from it; then `finish_turn`
sends every connection that has something to say, once. Nothing in between awaits, so whoever runs
has the whole router to itself.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import structlog
import trio

from router.core.forward import Forwarder
from router.core.table import AddressTable
from router.engine.outbox import Turn

if TYPE_CHECKING:
    from router.engine.connection import Connection
    from router.net.pump import Pump

log = structlog.get_logger("router")

# How much is read at once: per-read costs are most of a small message's, and 10 kB bodies read by
# 16 KiB cost four times as much.
READ_BYTES = 256 * 1024
# How often clocks are looked at: heartbeats, silence, handshakes. Half a second of lateness is
# nothing to time-outs counted in seconds.
TICK_S = 0.25
# Output memory of a connection that has been quiet for this long is given back.
QUIET_S = 2.0


class Exchange:
    """What all connections of one router share."""

    def __init__(self, table: AddressTable, memory_limit_bytes: int, largest_frame_bytes: int) -> None:
        self.turn = Turn()
        self.turn.now = time.monotonic()
        self.forwarder = Forwarder(table, self.turn, self, memory_limit_bytes)
        self.table = table
        # Behind an incomplete frame that a connection kept there is always room for a full read.
        self.buffer = memoryview(bytearray(READ_BYTES + largest_frame_bytes))
        self.pumps: dict[int, Pump] = {}
        self._next_number = 0
        # connections that were closed by an error, ever (for metrics)
        self.failed_connections = 0

    def enter(self, pump: Pump) -> int:
        """Give a new connection its number."""
        self._next_number += 1
        self.pumps[self._next_number] = pump
        return self._next_number

    def leave(self, number: int) -> None:
        """Forget a connection."""
        self.pumps.pop(number, None)

    def begin_turn(self) -> None:
        """Something happens: what time is it?"""
        self.turn.now = time.monotonic()

    def finish_turn(self) -> None:
        """Grant credit, then send each connection that has something to say."""
        turn = self.turn
        self.forwarder.finish_turn()
        while turn.touched:
            touched = turn.touched
            turn.touched = []
            for connection in touched:
                connection.owner.send()
            # room that sending made may have let more deliveries go
            self.forwarder.finish_turn()
        if turn.resumed:
            resumed = turn.resumed
            turn.resumed = []
            for connection in resumed:
                connection.owner.read_again()

    def event_received(self, connection: Connection, event: object) -> None:
        """The core has acted on an event; the connection's pump logs it and acts too."""
        connection.owner.event_received(event)

    async def watch_clock(self) -> None:
        """Look at every connection's clocks, for ever."""
        while True:
            await trio.sleep(self._until_next_look())
            self.begin_turn()
            expiry = self.forwarder.next_expiry
            if expiry and expiry <= self.turn.now:
                self.forwarder.expire()
            for pump in list(self.pumps.values()):
                pump.connection.tick()
                if self.turn.now - pump.connection.last_sent > QUIET_S:
                    pump.connection.outbox.output.trim()
            self.finish_turn()

    def _until_next_look(self) -> float:
        expiry = self.forwarder.next_expiry
        if expiry:
            return min(TICK_S, max(0.0, expiry - time.monotonic()))
        return TICK_S
