"""Hub of a router: the core forwards between its connections, within one turn."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import structlog

from router.core.addresses.link_names import LinkNames
from router.core.addresses.table import AddressTable
from router.core.deliveries.draining import finish
from router.core.deliveries.unsettled_limits import UnsettledLimits
from router.core.diagnosis.stuck_deliveries import StuckDeliveries
from router.core.diagnosis.stuck_receivers import StuckReceivers
from router.core.forwarding.expiry import expire
from router.core.forwarding.forward import Forwarder
from router.core.forwarding.shedding import Shedder
from router.core.routers.membership import Membership
from router.engine.traffic import Traffic, traffic_of
from router.net.connection_counters import ConnectionCounters
from router.net.hub import Hub
from router.net.low_priority import LowPriorityTurns
from router.net.memory import Reclaimer
from router.net.tracing import Tracer

if TYPE_CHECKING:
    from router.engine.connection import Connection
    from router.net.callouts import Callouts
    from router.net.claims.verifier import LiveClaims
    from router.net.router_pump import RouterPump

log = structlog.get_logger("router.core")


class RouterHub(Hub["RouterPump"]):
    """Hub of a router, with the core that forwards between its connections."""

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
        # for connections of peers that are not open yet
        self.low_priority = LowPriorityTurns(
            self.clock, self.long_turns.others_are_active, self.churn.count
        )
        self.shedding = Shedder(self.forwarder, _report_shed)
        self.table = table
        self.connection_counters: list[ConnectionCounters] = []
        self.tracer = Tracer(self.pumps)
        # when the certificates of TLS profiles expire, by profile, in seconds since 1970
        self.certificate_expiries: Mapping[str, float] = {}
        # the same for their revocation lists
        self.crl_expiries: Mapping[str, float] = {}
        # verifiers of the tokens that peers put at `$cbs`, by the name of the `claims` entity
        self.claims: dict[str, LiveClaims] = {}
        # numbers of the connections that metrics show one by one, and the traffic of all other
        # connections that have ended
        self.individually_shown: set[int] = set()
        self.unshown_past = Traffic()
        # called with the time about as often as timers are checked; a task for each would be
        # expensive, since every wait of a task allocates objects
        self.tidy_callbacks: list[Callable[[float], None]] = []
        # keeps auto-links attached; here for views of their state
        self.auto_links: Any = None
        # asks plugins about peers; None if the router runs none
        self.callouts: Callouts | None = None
        # manages the network of routers; None on a standalone router
        self.network: Any = None
        # whether a turn for the network's deferred work is scheduled
        self._is_work_scheduled = False
        # the identity that this router announces to others; None on a standalone router
        self.membership: Membership | None = None
        # called at the end of each turn, before anything is sent; returns whether it has made any
        # change that the core must handle
        self.turn_end_callback: Callable[[], bool] | None = None
        # called with the time in each turn that checks timers
        self.timer_callbacks: list[Callable[[float], None]] = [StuckReceivers(self.forwarder).tick]
        # called with the rare events of connections, in the same turn
        self.listeners: list[Callable[[Connection, object], None]] = []
        self.stuck_deliveries = StuckDeliveries(self.each_connection)
        self.tidy_callbacks.append(self.stuck_deliveries.tick)
        self.timer_callbacks.append(UnsettledLimits(self.turn, self.each_connection).tick)
        self._reclaimer = Reclaimer()
        # whether the router goes on after an exception in its own work; tests want to see it
        self.survives_defects = True
        self._honours_absolute_expiry = False

    def enter(self, pump: RouterPump) -> int:
        """Register a connection and return its number, which is sent to the peer in the open."""
        number = super().enter(pump)
        pump.connection.number = number
        return number

    def leave(self, number: int) -> None:
        """Remove a connection, but keep its traffic in the totals."""
        pump = self.pumps.get(number)
        if pump is not None:
            traffic = traffic_of(pump.connection)
            if pump.counters is not None:
                pump.counters.past.add(traffic)
            if number in self.individually_shown:
                self.individually_shown.remove(number)
            else:
                self.unshown_past.add(traffic)
        super().leave(number)

    async def wait_for_low_priority(self, pump: RouterPump) -> None:
        """Wait until a connection that is not open yet may take its next step."""
        await self.low_priority.step(pump.counted_host)

    def each_connection(self) -> Iterator[Connection]:
        """Yield each connection; connections may be added and removed meanwhile."""
        return (pump.connection for pump in self.pumps.each())

    def pump_changed(self, pump: RouterPump) -> None:
        """Update the frame trace of a connection that is new or has been opened."""
        self.tracer.update_tap(pump)

    def add_counters(self, name: str, direction: str, role: str) -> ConnectionCounters:
        """Return the counters of a listener or connector; create them if there are none yet.

        Counters exist until their listener or connector is removed and its connections have ended.
        """
        for counters in self.connection_counters:
            if (counters.name, counters.direction, counters.role) == (name, direction, role):
                counters.is_removed = False
                return counters
        counters = ConnectionCounters(name, direction, role)
        self.connection_counters.append(counters)
        return counters

    def forget_counters(self) -> None:
        """Drop the counters of removed listeners and connectors that have no connection left."""
        used = {id(pump.counters) for pump in self.pumps.values()}
        self.connection_counters = [
            each for each in self.connection_counters if not each.is_removed or id(each) in used
        ]

    def event_received(self, connection: Connection, event: object) -> None:
        """Pass an event that the core has handled to the connection's pump and to `listeners`."""
        self.churn.count()
        connection.owner.event_received(event)
        for listener in self.listeners:
            listener(connection, event)

    def before_sending(self) -> None:
        """Shed deliveries above the memory limit, and grant credit, at the end of a turn."""
        backlog = self.forwarder.backlog
        if backlog.held_bytes > backlog.limit_bytes:
            self.shedding.tick()
        self.forwarder.finish_turn()
        if self.turn_end_callback is not None:
            while self.turn_end_callback():
                self.forwarder.finish_turn()

    def finish_turn(self) -> None:
        """Finish a turn as `Hub` does, and measure how long its deliveries took."""
        super().finish_turn()
        if self.forwarder.relay.active_addresses or self.forwarder.outcomes.sampler is not None:
            self.forwarder.sent(self.clock())

    def until_next_check_s(self) -> float:
        """Return the seconds until a waiting message expires, but at most the usual interval.

        The usual interval is short enough for termini, whose time-outs are in whole seconds.
        """
        expiry = self.forwarder.backlog.deadlines.next
        if expiry:
            return min(self._tick_s, max(0.0, expiry - self.clock()))
        return self._tick_s

    @contextmanager
    def guarded(self, what: str) -> Iterator[None]:
        """Log an exception of the work within this context; the router goes on without it.

        A defect that one peer runs into must not end the connections of all others.
        """
        try:
            yield
        except Exception:
            if not self.survives_defects:
                raise
            log.exception("work failed", work=what)
            # what was done before the failure is sent
            self.finish_turn()

    def schedule_network_work(self) -> None:
        """Schedule a turn for more of the network's deferred work."""
        if not self._is_work_scheduled:
            self._is_work_scheduled = True
            self.turn.deferred.add(_NetworkWork(self))

    def do_network_work(self) -> None:
        """Do some of the network's deferred work at the end of this turn."""
        self._is_work_scheduled = False
        if self.network is not None:
            self.network.go_on(self.turn.now)
            self.forwarder.network.go_on()

    def honour_absolute_expiry(self, honours: bool = True) -> None:
        """Set whether messages that wait from now on also expire at their absolute-expiry-time."""
        self._honours_absolute_expiry = honours
        self.forwarder.backlog.wall_ahead_s = 0.0
        if honours:
            self.begin_turn()
            self._tell_wall_clock()

    def _tell_wall_clock(self) -> None:
        # updated at each timer check, since the wall clock may be set
        self.forwarder.backlog.wall_ahead_s = time.time() - self.turn.now

    def expire(self) -> None:
        """Drop expired messages and termini without a link, and end drains whose time is up."""
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
        for callback in self.timer_callbacks:
            with self.guarded("a timer"):
                callback(self.turn.now)

    def tidy(self) -> None:
        """Do periodic work, and return the memory of closed connections to the system."""
        now = self.turn.now
        for callback in self.tidy_callbacks:
            with self.guarded("periodic work"):
                callback(now)
        if any(counters.is_removed for counters in self.connection_counters):
            self.forget_counters()
        kept_bytes = self.turn.ledger.total + self.forwarder.backlog.held_bytes
        self._reclaimer.check(
            now,
            self._next_number,
            len(self.pumps),
            kept_bytes,
            is_busy=bool(self.turn.deferred),
        )


def _report_shed(count: int) -> None:
    log.warning("waiting messages exceed memoryLimitBytes", shed=count)


class _NetworkWork:
    """Task for `Deferred` that does some of the network's deferred work."""

    def __init__(self, hub: RouterHub) -> None:
        self._hub = hub

    def step(self) -> bool:
        """Do some of the work; the network requests another turn if more is left."""
        self._hub.do_network_work()
        return False
