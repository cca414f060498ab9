"""Hub of connections, which share turns and a read buffer, and send at the end of a turn.

When octets are received, the engine and its handler process them. Then `finish_turn` sends the
output of each connection, once. There is no await in between, so a turn is never interrupted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Generic, TypeVar

import trio

from router.core.model.split_table import ListedTable
from router.engine.deferred import STEPS_A_ROUND
from router.engine.outbox import Turn
from router.net.closing import Closing, close
from router.net.long_turns import LongTurns
from router.net.memory import CHURN_A_SLICE, Churn

if TYPE_CHECKING:
    from router.net.pump import Pump

AnyPump = TypeVar("AnyPump", bound="Pump")

# Octets read at once. The cost per read dominates that of small messages, and 10 kB bodies cost
# four times as much if they are read in pieces of 16 KiB.
READ_BYTES = 256 * 1024
# Interval of timer checks: heartbeats, silence, handshakes. Half a second of lateness does not
# matter to time-outs in seconds. If a peer has a shorter time-out, timers are checked more often.
TICK_S = 0.25
# Duration of a turn of deferred work: other turns wait no longer than this, and it is long enough
# to keep the overhead small.
SLICE_S = 0.0005
# The same while connections with little to do are active, whose messages wait for it. One step may
# take longer.
SHARED_SLICE_S = 0.00005
# The same for the checks of timers. With very many connections these take a few percent of all
# time, so messages often wait for one.
TIMER_SLICE_S = 0.0001
# Connections whose timers are checked in one turn.
TICKS_A_TURN = 256
# The loop is stuck if timers have not been checked for this long.
STUCK_S = 5.0


class Hub(Generic[AnyPump]):
    """State shared by all connections of one process, in a router or in a client."""

    def __init__(self, largest_frame_bytes: int, clock: Callable[[], float] | None = None) -> None:
        self.clock = time.monotonic if clock is None else clock
        self.turn = Turn()
        self.turn.now = self.clock()
        self.buffer = memoryview(b"")
        self.provide_for(largest_frame_bytes)
        self.pumps: ListedTable[int, AnyPump] = ListedTable()
        self.churn = Churn()
        # the router's connection to itself, which is not counted
        self.own_pump: AnyPump | None = None
        self._next_number = 0
        self._empty = trio.Event()
        self.long_turns = LongTurns(self.clock)
        # set when there is work for later turns
        self._work = trio.Event()
        self._last_check = self.turn.now
        self._tick_s = TICK_S

    def provide_for(self, largest_frame_bytes: int) -> None:
        """Make the read buffer large enough for frames of this size on new connections.

        The buffer always has room for an incomplete frame and, after it, a full read.
        """
        needed = READ_BYTES + largest_frame_bytes
        if len(self.buffer) < needed:
            self.buffer = memoryview(bytearray(needed))

    def enter(self, pump: AnyPump) -> int:
        """Register a connection and return its number; 0 is the router's connection to itself."""
        if pump.connection.settings.is_own:
            self.own_pump = pump
            return 0
        self._next_number += 1
        self.pumps[self._next_number] = pump
        return self._next_number

    def leave(self, number: int) -> None:
        """Remove a connection."""
        if number == 0:
            self.own_pump = None
        self.pumps.pop(number, None)
        if not self.pumps:
            self._empty.set()

    def pump_changed(self, pump: AnyPump) -> None:
        """React to a connection that is new or has been opened; a hook for subclasses."""

    def close(self, pump: Closing) -> None:
        """Close the socket of a connection that has ended, in this turn or a later one."""
        self.begin_turn()
        if close(self.turn.deferred, pump):
            self.finish_turn()
        else:
            self.wake()

    async def wait_for_low_priority(self, pump: AnyPump) -> None:
        """Wait until a connection that is not open yet may take a step; a hook for subclasses."""

    async def wait_until_empty(self) -> None:
        """Wait until no connection is left."""
        while self.pumps:
            self._empty = trio.Event()
            await self._empty.wait()

    def begin_turn(self) -> None:
        """Begin a turn: read the clock."""
        self.turn.now = self.clock()

    def finish_turn(self) -> None:
        """Finish a turn: send the output of each connection that has any."""
        turn = self.turn
        self.before_sending()
        while turn.touched:
            touched = turn.touched
            turn.touched = []
            for connection in touched:
                connection.owner.send()
            # sending makes room, so that more deliveries may be sent
            self.before_sending()
        # the same condition as in `needs_round`, without a call for each turn
        if turn.deferred.tasks or turn.deferred.left < STEPS_A_ROUND:
            self.wake()

    def before_sending(self) -> None:
        """Do the work that a turn deferred to its end; a hook for subclasses."""

    async def run(self) -> None:
        """Check timers and do deferred work, forever."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.run_timers)
            nursery.start_soon(self.work_off)

    def wake(self) -> None:
        """Schedule a call of `do_deferred_work`.

        A hub that does not run the task `work_off` overrides this.
        """
        self._work.set()

    async def work_off(self) -> None:
        """Do deferred work between the turns of connections, forever."""
        while True:
            await self._work.wait()
            self._work = trio.Event()
            await self.catch_up()

    async def catch_up(self) -> None:
        """Do all deferred work, between the turns of connections."""
        while self.has_work():
            await trio.lowlevel.checkpoint()
            slice_s = SHARED_SLICE_S if self.long_turns.others_are_active() else SLICE_S
            with self.guarded("deferred work"):
                self.do_deferred_work(slice_s)

    def guarded(self, what: str) -> AbstractContextManager[None]:
        """Return a context for work that belongs to no single connection; a hook for subclasses."""
        return nullcontext()

    def has_work(self) -> bool:
        """Return whether deferred work is left, or the budget for immediate work is not full."""
        return self.turn.deferred.needs_round()

    def do_deferred_work(self, slice_s: float = SLICE_S) -> None:
        """Restore the budget for immediate work, and do deferred work in one turn.

        The turn lasts about `slice_s`, and does at least one step.
        """
        deferred = self.turn.deferred
        deferred.begin_round()
        if not deferred:
            return
        self.begin_turn()
        end = self.turn.now + slice_s
        while deferred.step() and self.clock() < end:
            pass
        self.churn.count(CHURN_A_SLICE)
        self.finish_turn()

    async def run_timers(self) -> None:
        """Check the timers of all connections periodically, forever."""
        self._last_check = self.clock()
        while True:
            await trio.sleep(self.until_next_check_s())
            with self.guarded("the check of timers"):
                for _ in self.timer_turns():
                    # there may be very many connections
                    await trio.lowlevel.checkpoint()

    def check_timers(self) -> None:
        """Check the timers of all connections, and do other work that is due."""
        for _ in self.timer_turns():
            pass

    def timer_turns(self) -> Iterator[None]:
        """Check the timers of all connections, some in each turn; yield between turns."""
        self.begin_turn()
        self._last_check = self.turn.now
        # connections are checked even if something before fails each time
        with self.guarded("expiry"):
            self.expire()
        # a heartbeat is due after half of the peer's time-out, and must be sent before its end
        tick_s = TICK_S
        end = self.turn.now + TIMER_SLICE_S
        for count, pump in enumerate(self.pumps.each(), 1):
            pump.tick()
            idle_s = pump.connection.remote_idle_s
            if idle_s and idle_s < 2 * tick_s:
                tick_s = idle_s / 2
            # any of the connections may be closed here, which takes longer
            if count % TICKS_A_TURN == 0 or self.clock() >= end:
                self.finish_turn()
                yield
                self.begin_turn()
                end = self.turn.now + TIMER_SLICE_S
        self._tick_s = tick_s
        if self.own_pump is not None:
            self.own_pump.tick()
        self.finish_turn()
        self.tidy()

    async def round_trip(self) -> str | None:
        """Run an empty turn in the next round, to check whether the event loop is stuck.

        Return a description for operators if the loop is stuck, otherwise None.
        """
        await trio.lowlevel.checkpoint()
        self.begin_turn()
        self.finish_turn()
        late_s = self.turn.now - self._last_check
        return (
            f"timers not checked for {late_s:.1f} s: the event loop is stuck"
            if late_s > STUCK_S
            else None
        )

    def until_next_check_s(self) -> float:
        """Return the time in seconds until the next check of timers."""
        return self._tick_s

    def expire(self) -> None:
        """Drop expired messages and other expired state; a hook for subclasses."""

    def tidy(self) -> None:
        """Do periodic work that is not urgent, after a timer check; a hook for subclasses."""
