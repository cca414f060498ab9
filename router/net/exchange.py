"""Where connections meet: one turn, one core, one read buffer, and the sending at a turn's end.

Something is received; the engine and the core do all that follows from it; then `finish_turn`
sends every connection that has something to say, once. Nothing in between awaits, so whoever runs
has the whole router to itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import structlog
import trio

from router.core.draining import finish
from router.core.expiry import expire
from router.core.forward import Forwarder
from router.core.link_names import LinkNames
from router.core.network.membership import Membership
from router.core.overdrawn import Overdrawn
from router.core.shedding import Shedding
from router.core.split_table import ListedTable
from router.core.stuck_receivers import StuckReceivers
from router.core.table import AddressTable
from router.core.watch import Watch
from router.engine.deferred import STEPS_A_ROUND
from router.engine.outbox import Turn
from router.engine.traffic import Traffic, traffic_of
from router.net.closing import Closing, close
from router.net.memory import CHURN_A_SLICE, Churn, Reclaimer
from router.net.tally import Tally
from router.net.tracing import Traces

if TYPE_CHECKING:
    from router.engine.connection import Connection
    from router.net.pump import Pump

log = structlog.get_logger("router.core")

# How much is read at once: per-read costs are most of a small message's, and 10 kB bodies read by
# 16 KiB cost four times as much.
READ_BYTES = 256 * 1024
# How often clocks are looked at: heartbeats, silence, handshakes. Half a second of lateness is
# nothing to time-outs counted in seconds; where a peer gives up sooner they are looked at as often
# as that needs.
TICK_S = 0.25
# How long a turn takes that goes on with what was put off: others wait no longer than that for
# theirs, and it is long enough that most of it is work.
SLICE_S = 0.0005
# The clocks of so many connections are looked at in one turn.
TICKS_A_TURN = 256
# Clocks that nobody has looked at for this long say that the loop is stuck.
STUCK_S = 5.0


class Hub:
    """What all connections of one process share, be it a router or a client."""

    def __init__(self, largest_frame_bytes: int, clock: Callable[[], float] | None = None) -> None:
        self.clock = time.monotonic if clock is None else clock
        self.turn = Turn()
        self.turn.now = self.clock()
        self.buffer = memoryview(b"")
        self.provide_for(largest_frame_bytes)
        self.pumps: ListedTable[int, Pump] = ListedTable()
        self.churn = Churn()
        # the one whose peer is this very process; none of the connections that are counted
        self.own_pump: Pump | None = None
        self._next_number = 0
        self._empty = trio.Event()
        # held by the connection that has a long turn: of those that have much to do, one at a time
        # does a part of it, and whoever has little to do is served before the next one
        self.long_turns = trio.Lock()
        # set when there is work for later turns
        self._work = trio.Event()
        self._last_look = self.turn.now
        self._tick_s = TICK_S

    def provide_for(self, largest_frame_bytes: int) -> None:
        """Let connections that begin from now on receive frames of this size.

        Behind an incomplete frame that a connection kept there is always room for a full read.
        """
        needed = READ_BYTES + largest_frame_bytes
        if len(self.buffer) < needed:
            self.buffer = memoryview(bytearray(needed))

    def enter(self, pump: Pump) -> int:
        """Give a new connection its number, which is 0 for the router's own."""
        if pump.connection.settings.is_own:
            self.own_pump = pump
            return 0
        self._next_number += 1
        self.pumps[self._next_number] = pump
        return self._next_number

    def leave(self, number: int) -> None:
        """Forget a connection."""
        if number == 0:
            self.own_pump = None
        self.pumps.pop(number, None)
        if not self.pumps:
            self._empty.set()

    def look(self, pump: Pump) -> None:
        """Something has become known of a connection; overridden by who wants to know."""

    def close(self, pump: Closing) -> None:
        """Close a connection that is done with its socket, now or when others have been closed."""
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
        """Something happens: what time is it?"""
        self.turn.now = self.clock()

    def finish_turn(self) -> None:
        """Send each connection that has something to say."""
        turn = self.turn
        self.before_sending()
        while turn.touched:
            touched = turn.touched
            turn.touched = []
            for connection in touched:
                connection.owner.send()
            # room that sending made may have let more deliveries go
            self.before_sending()
        # what `needs_round` returns, without a call for each turn
        if turn.deferred.tasks or turn.deferred.left < STEPS_A_ROUND:
            self.wake()

    def before_sending(self) -> None:
        """Do what a turn put off to its end; overridden by who puts things off."""

    async def run(self) -> None:
        """Look at the clocks, and do what was put off to later turns, for ever."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.watch_clock)
            nursery.start_soon(self.work_off)

    def wake(self) -> None:
        """Have `go_on` called soon; overridden by who has no tasks."""
        self._work.set()

    async def work_off(self) -> None:
        """Do what was put off to later turns, between the turns of everybody else, for ever."""
        while True:
            await self._work.wait()
            self._work = trio.Event()
            await self.catch_up()

    async def catch_up(self) -> None:
        """Do all that was put off, between the turns of everybody else."""
        while self.has_work():
            await trio.lowlevel.checkpoint()
            self.go_on()

    def has_work(self) -> bool:
        """Return whether the next round has anything to do that was put off, or to allow."""
        return self.turn.deferred.needs_round()

    def go_on(self, slice_s: float = SLICE_S) -> None:
        """Begin another round, and take a turn in it with what was put off: for a short time, and
        for one step at least.
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

    async def watch_clock(self) -> None:
        """Look at every connection's clocks, for ever."""
        self._last_look = self.clock()
        while True:
            await trio.sleep(self.until_next_look_s())
            for _ in self.looks():
                # there may be very many connections
                await trio.lowlevel.checkpoint()

    def look_at_clock(self) -> None:
        """Look at every connection's clocks, and at whatever else is due."""
        for _ in self.looks():
            pass

    def looks(self) -> Iterator[None]:
        """Look at the clocks, at those of some connections in each turn; yield between turns."""
        self.begin_turn()
        self._last_look = self.turn.now
        self.expire()
        # a heartbeat that is due after half of its time leaves before the whole of it
        tick_s = TICK_S
        end = self.turn.now + SLICE_S
        for count, pump in enumerate(self.pumps.each(), 1):
            pump.tick()
            idle_s = pump.connection.remote_idle_s
            if idle_s and idle_s < 2 * tick_s:
                tick_s = idle_s / 2
            # each of them may be closed now, which takes longer
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
        """Go once round the loop and take a turn; what is wrong, or None when all is well."""
        await trio.lowlevel.checkpoint()
        self.begin_turn()
        self.finish_turn()
        late_s = self.turn.now - self._last_look
        return f"no look at the clocks for {late_s:.1f} s" if late_s > STUCK_S else None

    def until_next_look_s(self) -> float:
        """How long the clocks may be left alone."""
        return self._tick_s

    def expire(self) -> None:
        """Give up what has expired by now; overridden by who holds what can expire."""

    def tidy(self) -> None:
        """Do what can wait for the clocks to be looked at; overridden by who has such things."""


class Exchange(Hub):
    """A router's hub: its connections meet in the core."""

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
        self.shedding = Shedding(self.forwarder, _report_shed)
        self.table = table
        self.tallies: list[Tally] = []
        self.traces = Traces(self.pumps)
        # the numbers of those connections that metrics show each on its own, and what all others
        # have carried that are over
        self.shown: set[int] = set()
        self.unshown_past = Traffic()
        # What else wants doing about as often as clocks are looked at, given the time. A task of
        # its own for each would cost more: what a waiting task is made of is made anew each time.
        self.chores: list[Callable[[float], None]] = []
        # who keeps auto-links attached, for those who want to know how they fare
        self.auto_links: Any = None
        # who sees to connections with other routers, for those who want to know; None where it
        # works alone
        self.network: Any = None
        # a turn will go on with what there is to be done of the network
        self._is_hurried = False
        # what this router says of itself to other routers; None where it works alone
        self.membership: Membership | None = None
        # does what is to be done at the end of each turn, before anything is sent, and says whether
        # it did anything that the core has to look at
        self.ending: Callable[[], bool] | None = None
        # what looks at clocks of its own, in the turn in which they are looked at
        self.clocks: list[Callable[[float], None]] = [StuckReceivers(self.forwarder).look]
        # who else hears of what rarely happens on connections, in the same turn
        self.listeners: list[Callable[[Connection, object], None]] = []
        self.watch = Watch(self._each_connection)
        self.chores.append(self.watch.look)
        self.clocks.append(Overdrawn(self.turn.ledger, self._each_connection).look)
        self._reclaimer = Reclaimer()
        self._honours_absolute_expiry = False

    def enter(self, pump: Pump) -> int:
        """Give a new connection its number, which its peer will be told in our open."""
        number = super().enter(pump)
        pump.connection.number = number
        return number

    def leave(self, number: int) -> None:
        """Forget a connection, but not what it has carried."""
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
        """Yield each connection; others may come and go meanwhile."""
        return (pump.connection for pump in self.pumps.each())

    def look(self, pump: Pump) -> None:
        """See who listens to a connection."""
        self.traces.look(pump)

    def add_tally(self, name: str, direction: str, role: str) -> Tally:
        """A tally for a listener or connector: a new one, or the one that it had before, as long
        as connections of that time are there.
        """
        for tally in self.tallies:
            if (tally.name, tally.direction, tally.role) == (name, direction, role):
                tally.is_over = False
                return tally
        tally = Tally(name, direction, role)
        self.tallies.append(tally)
        return tally

    def forget_tallies(self) -> None:
        """Drop the tallies that are over and of which no connection is left."""
        used = {id(pump.tally) for pump in self.pumps.values()}
        self.tallies = [each for each in self.tallies if not each.is_over or id(each) in used]

    def event_received(self, connection: Connection, event: object) -> None:
        """The core has acted on an event; the connection's pump logs it and acts too."""
        self.churn.count()
        connection.owner.event_received(event)
        for listener in self.listeners:
            listener(connection, event)

    def before_sending(self) -> None:
        """Grant credit, now that all that came in this turn is known, unless it was too much."""
        backlog = self.forwarder.backlog
        if backlog.held_bytes > backlog.limit_bytes:
            self.shedding.look()
        self.forwarder.finish_turn()
        if self.ending is not None:
            while self.ending():
                self.forwarder.finish_turn()

    def finish_turn(self) -> None:
        """Send each connection that has something to say; how long that took is counted."""
        super().finish_turn()
        if self.forwarder.moving or self.forwarder.outcomes.sampler is not None:
            self.forwarder.sent(self.clock())

    def until_next_look_s(self) -> float:
        """Until a message that waits expires, or as long as ever.

        The timeouts of termini are whole seconds: they can wait for the next look.
        """
        expiry = self.forwarder.backlog.deadlines.next
        if expiry:
            return min(self._tick_s, max(0.0, expiry - self.clock()))
        return self._tick_s

    def hurry(self) -> None:
        """Have more of the network's work done soon, in a turn of its own."""
        if not self._is_hurried:
            self._is_hurried = True
            self.turn.deferred.add(_NetworkWork(self))

    def go_on_with_network(self) -> None:
        """Have some of the network's work done at the end of this turn."""
        self._is_hurried = False
        if self.network is not None:
            self.network.go_on(self.turn.now)
            self.forwarder.network.go_on()

    def honour_absolute_expiry(self, honours: bool = True) -> None:
        """From now on, have messages that come to wait expire at their absolute-expiry-time as
        well, or not any more.
        """
        self._honours_absolute_expiry = honours
        self.forwarder.backlog.wall_ahead_s = 0.0
        if honours:
            self.begin_turn()
            self._tell_wall_clock()

    def _tell_wall_clock(self) -> None:
        # anew at each look at the clocks: a wall clock may be set
        self.forwarder.backlog.wall_ahead_s = time.time() - self.turn.now

    def expire(self) -> None:
        """Give up what has had its time: messages, drains, and termini without a link."""
        if self._honours_absolute_expiry:
            self._tell_wall_clock()
        expiry = self.forwarder.backlog.deadlines.next
        if expiry and expiry <= self.turn.now:
            expire(self.forwarder)
        if self.forwarder.drains:
            finish(self.forwarder)
        suspended = self.forwarder.suspended
        if suspended.next_expiry and suspended.next_expiry <= self.turn.now:
            suspended.expire(self.forwarder)
        for look in self.clocks:
            look(self.turn.now)

    def tidy(self) -> None:
        """Do the chores, and give memory back that connections have left behind."""
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
    log.warning("more waits than memoryLimitBytes allows", given_up=count)


class _NetworkWork:
    """What there is to be done of the network; a task of `Deferred`."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    def step(self) -> bool:
        """Have some of it done as the turn ends, which asks for another turn if there is more."""
        self._exchange.go_on_with_network()
        return False
