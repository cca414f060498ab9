"""Simulated containers, which use the parts of `router.client` without a socket.

A container connects to its router. If the connection is lost, the container connects again and
attaches new links.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from router.amqp.constants import ReceiverSettleMode, Role, SenderSettleMode
from router.amqp.performatives import Attach, Source, Target
from router.client.failures import ClientError
from router.client.handler import ClientHandler
from router.client.sender import Sender
from router.config.listeners import ListenerSettings
from router.engine import beginning, events
from router.engine.connection import Connection
from router.engine.session import Session
from router.engine.settings import ConnectionSettings
from router.net.connectors import backoff_delays
from router.net.endpoints import listener_settings
from router.net.hub import Hub
from router.simulation.host import SimulatedRouter
from router.simulation.links import ReceiverPlan, SenderPlan, SimulatedReceiver, SimulatedSender
from router.simulation.router_connections import without_sasl
from router.simulation.virtual_clock import EventScheduler
from router.simulation.wires import Distance, Wire, WireEnd

# The listener for containers, without heartbeats, which have no use here.
LISTENER = ListenerSettings(host="clients", idle_timeout_seconds=0)
MAX_FRAME_SIZE = 16384
WINDOW_FRAMES = 1024


class _Hub(Hub[Any]):
    """Hub of one simulated container."""

    def __init__(self, scheduler: EventScheduler, buffer: memoryview) -> None:
        super().__init__(0, scheduler.clock)
        self.buffer = buffer
        self._scheduler = scheduler

    def provide_for(self, largest_frame_bytes: int) -> None:
        """Do nothing: the buffer that all hubs share is large enough."""

    def wake(self) -> None:
        """Schedule the next step of deferred work in a turn of its own."""
        self._scheduler.after(0, self._step)

    def _step(self) -> None:
        if self.has_work():
            self.do_deferred_work(0)


class Container:
    """Simulated container, which has one connection to its router at a time."""

    def __init__(
        self,
        name: str,
        host: SimulatedRouter,
        scheduler: EventScheduler,
        distance: Distance,
        chance: Random,
        buffer: memoryview,
        listener: ListenerSettings = LISTENER,
    ) -> None:
        self.name = name
        self.host = host
        # the listener that accepts its connections
        self.listener = listener
        self.scheduler = scheduler
        self.distance = distance
        self.chance = chance
        self.senders: list[SenderPlan] = []
        self.receivers: list[ReceiverPlan] = []
        self.session: Session | None = None
        # called when the links are attached again, and when the connection is lost
        self.on_connected: list[Callable[[], None]] = []
        self.on_lost: list[Callable[[], None]] = []
        self._hub = _Hub(scheduler, buffer)
        self._end: WireEnd | None = None
        self._engine: Connection | None = None
        self._waits: Iterator[float] = backoff_delays(chance.uniform)
        self._links = 0
        self._is_due = False
        self._draining: list[Sender] = []
        self._is_wanted = False
        # whether a session has begun on this connection, even if it is over
        self._had_session = False

    # State.

    @property
    def runs(self) -> bool:
        """Return True: a container never pauses."""
        return True

    @property
    def is_over(self) -> bool:
        """Return whether there is no session; the links of `router.client` use this property."""
        return self.session is None

    def is_connected(self) -> bool:
        """Return whether there is a session to attach links to."""
        return self.session is not None

    # Links.

    def add_sender(self, plan: SenderPlan) -> SenderPlan:
        """Add a sender; attach it now if there is a session, and whenever a session begins."""
        self.senders.append(plan)
        if self.session is not None:
            self._attach_sender(plan)
        return plan

    def add_receiver(self, plan: ReceiverPlan) -> ReceiverPlan:
        """Add a receiver; attach it now if there is a session, and whenever a session begins."""
        self.receivers.append(plan)
        if self.session is not None:
            self._attach_receiver(plan)
        return plan

    def remove_receiver(self, plan: ReceiverPlan) -> None:
        """Close a receiver, and do not attach it again."""
        self.receivers.remove(plan)
        if plan.live is not None:
            plan.live.close()

    # Connection.

    def start(self) -> None:
        """Connect, and stay connected."""
        if not self._is_wanted:
            self._is_wanted = True
            self._dial()

    def close(self) -> None:
        """Close the connection gracefully, and do not connect again."""
        self._is_wanted = False
        if self._engine is not None and self._engine.is_open():
            self._hub.begin_turn()
            self._engine.close(None)
            self._hub.finish_turn()

    def lose(self) -> None:
        """Drop the connection without a close; the container then reconnects."""
        if self._end is not None and not self._end.is_over:
            self._end.close()

    def _dial(self) -> None:
        if not self._is_wanted or (self._end is not None and not self._end.is_over):
            return
        if not self.host.is_alive:
            self.scheduler.after(next(self._waits), self._dial)
            return
        host, hub = self.host, self.host.hub
        wire = Wire(self.scheduler, self.distance, self.chance)
        ours = ConnectionSettings(
            container_id=self.name,
            hostname=host.name,
            max_frame_size=MAX_FRAME_SIZE,
            window_limit=WINDOW_FRAMES,
            idle_timeout_s=0,
            handshake_timeout_s=0,
            sasl_mechanisms=(),
            offered_capabilities=(),
        )
        self._had_session = False
        self._engine = Connection(ours, ClientHandler(self), self._hub.turn, host.name, True)
        here = WireEnd(self._hub, self._engine, self)
        accepts = without_sasl(listener_settings(host.name, self.listener))
        theirs = Connection(accepts, hub.forwarder, hub.turn, self.name, False)
        counters = hub.add_counters(self.listener.name, "in", self.listener.role)
        there = WireEnd(hub, theirs, host, counters)
        host.enter(there)
        wire.connect_ends(here, there)
        here.ended = self._ended
        self._end = here
        here.start()

    def _ended(self) -> None:
        self.session = None
        for hear in self.on_lost:
            hear()
        if self._is_wanted:
            self.scheduler.after(next(self._waits), self._dial)

    def _begun(self, session: Session) -> None:
        self.session = session
        self._had_session = True
        self._waits = backoff_delays(self.chance.uniform)
        for receiver in self.receivers:
            self._attach_receiver(receiver)
        for sender in self.senders:
            self._attach_sender(sender)
        for hear in self.on_connected:
            hear()

    def _attach_sender(self, plan: SenderPlan) -> None:
        plan.live = sender = SimulatedSender(self, plan)
        mode = SenderSettleMode.SETTLED if plan.presettled else SenderSettleMode.UNSETTLED
        frame = Attach(
            name=self._link_name(),
            handle=0,
            role=Role.SENDER,
            snd_settle_mode=mode,
            rcv_settle_mode=ReceiverSettleMode.FIRST,
            source=Source(address=self.name),
            target=Target(address=plan.address),
            initial_delivery_count=0,
        )
        sender.attach_nowait(frame)

    def _attach_receiver(self, plan: ReceiverPlan) -> None:
        plan.live = receiver = SimulatedReceiver(self, plan)
        frame = Attach(
            name=self._link_name(),
            handle=0,
            role=Role.RECEIVER,
            snd_settle_mode=SenderSettleMode.MIXED,
            rcv_settle_mode=ReceiverSettleMode.FIRST,
            source=Source(address=plan.address, capabilities=plan.capabilities),
            target=Target(address=self.name),
        )
        receiver.attach_nowait(frame)

    def _link_name(self) -> str:
        self._links += 1
        return f"{self.name}-{self._links}"

    # Calls of its senders and receivers.

    def schedule_output(self) -> None:
        """Send output right after the current event."""
        if not self._is_due:
            self._is_due = True
            self.scheduler.after(0, self._flush)

    def schedule_drain_answer(self, sender: Sender) -> None:
        """Answer a drain of this sender right after the current event."""
        self._draining.append(sender)
        self.schedule_output()

    def failure(self, kind: type[ClientError]) -> ClientError:
        """Return an error of class `kind` that says the container is not connected."""
        return kind("", f"{self.name} is not connected")

    def _flush(self) -> None:
        self._is_due = False
        if self._engine is None:
            return
        self._hub.begin_turn()
        while self._draining:
            self._draining.pop().answer_drain()
        if self.session is None and self._had_session and self._engine.is_open():
            # without its session the connection is of no use
            self._engine.close(None)
        self._hub.finish_turn()

    def event_received(self, event: object) -> None:
        """Handle an event of the connection, its session or its links."""
        assert self._engine is not None
        self._engine.owner.event_received(event)
        if isinstance(event, events.LinkAttached):
            event.link.owner.attached()
        elif isinstance(event, events.LinkDetached):
            if event.link.owner is not None:
                event.link.owner.detached(event)
                self._detached(event.link.owner)
        elif isinstance(event, events.ConnectionOpened):
            assert self._engine is not None
            beginning.begin(self._engine)
        elif isinstance(event, events.SessionBegun):
            self._begun(event.session)
        elif isinstance(event, events.SessionEnded):
            self.session = None
            self.schedule_output()
        elif isinstance(event, events.ConnectionClosed):
            self.session = None

    def _detached(self, link: SimulatedSender | SimulatedReceiver) -> None:
        """Attach a new link after a delay, in place of one that the router has detached."""
        plan = link.plan
        if self.session is None or plan.live is not link:
            return
        if plan in self.senders or plan in self.receivers:
            session = self.session

            def again() -> None:
                if self.session is not session:
                    return
                if isinstance(plan, SenderPlan):
                    self._attach_sender(plan)
                else:
                    self._attach_receiver(plan)

            self.scheduler.after(next(self._waits), again)

    def room_made(self) -> None:
        """Let senders continue, because the socket or the session's window has room."""
        if self.session is None:
            return
        for link in list(self.session.local_links.values()):
            if isinstance(link.owner, Sender):
                link.owner.room_made()
