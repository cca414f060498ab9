"""Hub of connections: one turn, one core, one read buffer, and sending at the end of a turn.

After octets are received, the engine and the core process them. Then `finish_turn` sends the output
of each connection, once. There is no await in between, so a turn runs without interruption.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import structlog
import trio

from router.core.addresses.link_names import LinkNames
from router.core.addresses.table import AddressTable
from router.core.deliveries.draining import finish
from router.core.deliveries.unsettled_limits import UnsettledLimits
from router.core.diagnosis.stuck_deliveries import StuckDeliveries
from router.core.diagnosis.stuck_receivers import StuckReceivers
from router.core.forwarding.expiry import expire
from router.core.forwarding.forward import Forwarder
from router.core.forwarding.shedding import Shedder
from router.core.model.split_table import ListedTable
from router.core.routers.membership import Membership
from router.engine.deferred import STEPS_A_ROUND
from router.engine.outbox import Turn
from router.engine.traffic import Traffic, traffic_of
from router.net.closing import Closing, close
from router.net.connection_counters import ConnectionCounters
from router.net.memory import CHURN_A_SLICE, Churn, Reclaimer
from router.net.tracing import Tracer

if TYPE_CHECKING:
    from router.engine.connection import Connection
    from router.net.pump import Pump

log = structlog.get_logger("router.core")

# Octets read at once. The cost per read dominates that of small messages, and 10 kB bodies cost
# four times as much if read by 16 KiB.
READ_BYTES = 256 * 1024
# Interval of timer checks: heartbeats, silence, handshakes. Half a second of lateness does not
# matter to time-outs in seconds. If a peer has a shorter time-out, timers are checked more often.
TICK_S = 0.25
# Duration of a turn of deferred work: other turns wait no longer than this, and it is long enough
# to keep the overhead small.
SLICE_S = 0.0005
# Connections whose timers are checked in one turn.
TICKS_A_TURN = 256
# The loop is stuck if timers have not been checked for this long.
STUCK_S = 5.0


class Hub:
    """State shared by all connections of one process, in a router or in a client."""

    def __init__(self, largest_frame_bytes: int, clock: Callable[[], float] | None = None) -> None:
        self.clock = time.monotonic if clock is None else clock
        self.turn = Turn()
        self.turn.now = self.clock()
        self.buffer = memoryview(b"")
        self.provide_for(largest_frame_bytes)
        self.pumps: ListedTable[int, Pump] = ListedTable()
        self.churn = Churn()
        # the router's connection to itself, which is not counted
        self.own_pump: Pump | None = None
        self._next_number = 0
        self._empty = trio.Event()
        # held for a long turn: among connections with much work, one at a time does a part of it,
        # and connections with little work are served before the next one
        self.long_turns = trio.Lock()
        # set when there is work for later turns
        self._work = trio.Event()
        self._last_look = self.turn.now
        self._tick_s = TICK_S

    def provide_for(self, largest_frame_bytes: int) -> None:
        """Let connections that begin from now on receive frames of this size.

        The buffer always has room for a full read after an incomplete frame that is left in it.
        """
        needed = READ_BYTES + largest_frame_bytes
        if len(self.buffer) < needed:
            self.buffer = memoryview(bytearray(needed))

    def enter(self, pump: Pump) -> int:
        """Register a new connection and return its number, which is 0 for the router's own."""
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

    def look(self, pump: Pump) -> None:
        """Handle a change of a connection; a hook for subclasses."""

    def close(self, pump: Closing) -> None:
        """Close a connection that no longer needs its socket, now or after others."""
        self.begin_turn()
        if close(self.turn.deferred, pump):
            self.finish_turn()
        else:
            self.wake()

    async def wait_until_empty(self) -> None:
        """Wait until no connection is left."""
        while self.pumps:
            self._empty = trio.Event()
            await self._empty.wait()

    def begin_turn(self) -> None:
        """Begin a turn: read the clock."""
        self.turn.now = self.clock()

    def finish_turn(self) -> None:
        """Send the output of each connection that has some."""
        turn = self.turn
        self.before_sending()
        while turn.touched:
            touched = turn.touched
            turn.touched = []
            for connection in touched:
                connection.owner.send()
            # sending makes room, which may have let more deliveries leave
            self.before_sending()
        # what `needs_round` returns, without a call for each turn
        if turn.deferred.tasks or turn.deferred.left < STEPS_A_ROUND:
            self.wake()

    def before_sending(self) -> None:
        """Do the work that a turn deferred to its end; a hook for subclasses."""

    async def run(self) -> None:
        """Check timers and do deferred work, for ever."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.run_timers)
            nursery.start_soon(self.work_off)

    def wake(self) -> None:
        """Schedule a call of `go_on`; overridden where there are no tasks."""
        self._work.set()

    async def work_off(self) -> None:
        """Do deferred work between the turns of all others, for ever."""
        while True:
            await self._work.wait()
            self._work = trio.Event()
            await self.catch_up()

    async def catch_up(self) -> None:
        """Do all deferred work, between the turns of all others."""
        while self.has_work():
            await trio.lowlevel.checkpoint()
            self.go_on()

    def has_work(self) -> bool:
        """Return whether a next round is needed, to do or to allow deferred work."""
        return self.turn.deferred.needs_round()

    def go_on(self, slice_s: float = SLICE_S) -> None:
        """Begin another round, and take a turn of deferred work in it.

        The turn lasts `slice_s`, but does at least one step.
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
        """Check the timers of all connections, for ever."""
        self._last_look = self.clock()
        while True:
            await trio.sleep(self.until_next_look_s())
            for _ in self.looks():
                # there may be very many connections
                await trio.lowlevel.checkpoint()

    def check_timers(self) -> None:
        """Check the timers of all connections, and do other work that is due."""
        for _ in self.looks():
            pass

    def looks(self) -> Iterator[None]:
        """Check timers, those of some connections in each turn; yield between turns."""
        self.begin_turn()
        self._last_look = self.turn.now
        self.expire()
        # a heartbeat is due after half of the peer's time-out, and has to leave within all of it
        tick_s = TICK_S
        end = self.turn.now + SLICE_S
        for count, pump in enumerate(self.pumps.each(), 1):
            pump.tick()
            idle_s = pump.connection.remote_idle_s
            if idle_s and idle_s < 2 * tick_s:
                tick_s = idle_s / 2
            # any of them may be closed here, which takes longer
            if count % TICKS_A_TURN == 0 or self.clock() >= end:
                self.finish_turn()
                yield
                self.begin_turn()
                end = self.turn.now + SLICE_S
        self._tick_s = tick_s
        if self.own_pump is not None:
            self.own_pump.tick()
        self.finish_turn()
        self.tidy()

    async def round_trip(self) -> str | None:
        """Take a turn after a round of the loop; return a description of a problem, or None."""
        await trio.lowlevel.checkpoint()
        self.begin_turn()
        self.finish_turn()
        late_s = self.turn.now - self._last_look
        return (
            f"timers not checked for {late_s:.1f} s: the event loop is stuck"
            if late_s > STUCK_S
            else None
        )

    def until_next_look_s(self) -> float:
        """Return the time in seconds until timers have to be checked again."""
        return self._tick_s

    def expire(self) -> None:
        """Give up items that have expired by now; a hook for subclasses."""

    def tidy(self) -> None:
        """Do work that can wait for the timer check; a hook for subclasses."""


class RouterHub(Hub):
    """Hub of a router, whose connections meet in the core."""

    def __init__(
        self,
        table: AddressTable,
        memory_limit_bytes: int,
        largest_frame_bytes: int,
        link_names: LinkNames | None = None,
        terminus_limit_s: int = 0,
        router_id: str = "",
        *,
        clock: Callable[[], float] | None = None,
    ) -> None:
        super().__init__(largest_frame_bytes, clock)
        self.forwarder = Forwarder(
            table, self.turn, self, memory_limit_bytes, link_names, terminus_limit_s, router_id
        )
        self.shedding = Shedder(self.forwarder, _report_shed)
        self.table = table
        self.tallies: list[ConnectionCounters] = []
        self.traces = Tracer(self.pumps)
        # numbers of the connections that metrics show one by one, and the traffic of all others
        # that have ended
        self.shown: set[int] = set()
        self.unshown_past = Traffic()
        # called with the time about as often as timers are checked; a task for each would cost
        # more, since every wait of a task allocates objects
        self.chores: list[Callable[[float], None]] = []
        # keeps auto-links attached; here for views of their state
        self.auto_links: Any = None
        # manages the network of routers; None on a standalone router
        self.network: Any = None
        # whether a turn of network work is scheduled
        self._is_hurried = False
        # this router's identity for other routers; None on a standalone router
        self.membership: Membership | None = None
        # called at the end of each turn, before anything is sent; returns whether it did anything
        # that the core has to handle
        self.ending: Callable[[], bool] | None = None
        # called with the time in each turn that checks timers
        self.timer_callbacks: list[Callable[[float], None]] = [StuckReceivers(self.forwarder).tick]
        # called with the rare events of connections, in the same turn
        self.listeners: list[Callable[[Connection, object], None]] = []
        self.watch = StuckDeliveries(self._each_connection)
        self.chores.append(self.watch.tick)
        self.timer_callbacks.append(UnsettledLimits(self.turn.ledger, self._each_connection).tick)
        self._reclaimer = Reclaimer()
        self._honours_absolute_expiry = False

    def enter(self, pump: Pump) -> int:
        """Register a connection and return its number, which our open tells the peer."""
        number = super().enter(pump)
        pump.connection.number = number
        return number

    def leave(self, number: int) -> None:
        """Remove a connection, but keep its traffic in the totals."""
        pump = self.pumps.get(number)
        if pump is not None:
            traffic = traffic_of(pump.connection)
            if pump.tally is not None:
                pump.tally.past.add(traffic)
            if number in self.shown:
                self.shown.remove(number)
            else:
                self.unshown_past.add(traffic)
        super().leave(number)

    def _each_connection(self) -> Iterator[Connection]:
        """Yield each connection; others may be added and removed meanwhile."""
        return (pump.connection for pump in self.pumps.each())

    def look(self, pump: Pump) -> None:
        """Update the trace of a connection."""
        self.traces.look(pump)

    def add_tally(self, name: str, direction: str, role: str) -> ConnectionCounters:
        """Return a new tally for a listener or connector, or the previous one if it still exists.

        A tally exists until it is over and its connections have ended.
        """
        for tally in self.tallies:
            if (tally.name, tally.direction, tally.role) == (name, direction, role):
                tally.is_over = False
                return tally
        tally = ConnectionCounters(name, direction, role)
        self.tallies.append(tally)
        return tally

    def forget_tallies(self) -> None:
        """Drop the tallies that are over and have no connection left."""
        used = {id(pump.tally) for pump in self.pumps.values()}
        self.tallies = [each for each in self.tallies if not each.is_over or id(each) in used]

    def event_received(self, connection: Connection, event: object) -> None:
        """Pass an event that the core has handled to the connection's pump and to listeners."""
        self.churn.count()
        connection.owner.event_received(event)
        for listener in self.listeners:
            listener(connection, event)

    def before_sending(self) -> None:
        """Shed deliveries above the memory limit, and grant credit after this turn's input."""
        backlog = self.forwarder.backlog
        if backlog.held_bytes > backlog.limit_bytes:
            self.shedding.tick()
        self.forwarder.finish_turn()
        if self.ending is not None:
            while self.ending():
                self.forwarder.finish_turn()

    def finish_turn(self) -> None:
        """Send the output of each connection that has some, and measure how long that took."""
        super().finish_turn()
        if self.forwarder.relay.moving or self.forwarder.outcomes.sampler is not None:
            self.forwarder.sent(self.clock())

    def until_next_look_s(self) -> float:
        """Return the time in seconds until a waiting message expires, at most the usual interval.

        Time-outs of termini are whole seconds: they can wait for the next check.
        """
        expiry = self.forwarder.backlog.deadlines.next
        if expiry:
            return min(self._tick_s, max(0.0, expiry - self.clock()))
        return self._tick_s

    def hurry(self) -> None:
        """Schedule more of the network's work, in a turn of its own."""
        if not self._is_hurried:
            self._is_hurried = True
            self.turn.deferred.add(_NetworkWork(self))

    def go_on_with_network(self) -> None:
        """Do some of the network's work at the end of this turn."""
        self._is_hurried = False
        if self.network is not None:
            self.network.go_on(self.turn.now)
            self.forwarder.network.go_on()

    def honour_absolute_expiry(self, honours: bool = True) -> None:
        """Set whether messages that wait from now on expire at their absolute-expiry-time, too."""
        self._honours_absolute_expiry = honours
        self.forwarder.backlog.wall_ahead_s = 0.0
        if honours:
            self.begin_turn()
            self._tell_wall_clock()

    def _tell_wall_clock(self) -> None:
        # updated at each timer check, since a wall clock may be set
        self.forwarder.backlog.wall_ahead_s = time.time() - self.turn.now

    def expire(self) -> None:
        """Give up expired items: messages, drains, and termini without a link."""
        if self._honours_absolute_expiry:
            self._tell_wall_clock()
        expiry = self.forwarder.backlog.deadlines.next
        if expiry and expiry <= self.turn.now:
            expire(self.forwarder)
        if self.forwarder.queues.drains:
            finish(self.forwarder)
        suspended = self.forwarder.suspended
        if suspended.next_expiry and suspended.next_expiry <= self.turn.now:
            suspended.expire(self.forwarder)
        for look in self.timer_callbacks:
            look(self.turn.now)

    def tidy(self) -> None:
        """Do periodic work, and return memory of closed connections to the system."""
        now = self.turn.now
        for chore in self.chores:
            chore(now)
        if any(tally.is_over for tally in self.tallies):
            self.forget_tallies()
        kept_bytes = self.turn.ledger.total + self.forwarder.backlog.held_bytes
        self._reclaimer.look(
            now,
            self._next_number,
            len(self.pumps),
            kept_bytes,
            is_busy=bool(self.turn.deferred),
        )


def _report_shed(count: int) -> None:
    log.warning("waiting messages exceed memoryLimitBytes", given_up=count)


class _NetworkWork:
    """Task of `Deferred` that does some of the network's work."""

    def __init__(self, exchange: RouterHub) -> None:
        self._exchange = exchange

    def step(self) -> bool:
        """Do some of the work at the end of the turn; if more is left, request another turn."""
        self._exchange.go_on_with_network()
        return False
