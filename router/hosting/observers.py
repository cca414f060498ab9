"""Pass events of the router on to the plugins that have subscribed to them.

Without subscriptions, the router calls nothing here, so events cost nothing.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final, Protocol

import structlog
import trio

from router.core.deliveries.outcomes import OutcomeObserver
from router.core.routers.news import News
from router.engine.connection import Connection
from router.engine.link import IncomingLink, OutgoingLink
from router.hosting.translation import (
    OF_CONNECTIONS,
    link_info,
    of_network,
    outcomes_settled,
)
from router.plugin_events import Event, MessagesExpired, OutcomesSettled

OF_OUTCOMES: Final = frozenset({OutcomesSettled, MessagesExpired})
"""Events that are derived from outcomes."""

log = structlog.get_logger("router.plugin")


class Watched(Protocol):
    """Source of the events of connections and links."""

    listeners: list[Callable[[Connection, object], None]]


class WatchedNetwork(Protocol):
    """Source of the events of the network."""

    watchers: list[Callable[[News], None]]


class WatchedOutcomes(Protocol):
    """Source of outcomes of deliveries."""

    observer: OutcomeObserver | None


class EventQueue:
    """Queue of events that wait for one plugin; implements `router.plugin.Subscription`."""

    def __init__(self, types: Iterable[type[Event]], capacity: int) -> None:
        self.types = frozenset(types)
        self.lost = 0
        self._capacity = capacity
        self._events: deque[Event] = deque()
        self._has_some = trio.Event()
        self._is_closed = False
        # called when the queue is closed
        self.on_close: Callable[[EventQueue], None] = lambda _: None

    def close(self) -> None:
        """Accept no more events; the iteration ends after the events that already wait."""
        self._is_closed = True
        self._has_some.set()
        self.on_close(self)

    def put(self, event: Event) -> None:
        """Add an event, or count it as lost if too many wait already."""
        if len(self._events) >= self._capacity:
            self.lost += 1
            return
        self._events.append(event)
        self._has_some.set()

    def __aiter__(self) -> EventQueue:
        """Return this queue."""
        return self

    async def __anext__(self) -> Event:
        """Wait for the next event, and return it."""
        # a plugin that reads very many events must let other tasks run in between
        await trio.lowlevel.checkpoint()
        while not self._events:
            if self._is_closed:
                raise StopAsyncIteration
            if self._has_some.is_set():
                self._has_some = trio.Event()
            await self._has_some.wait()
        return self._events.popleft()


class Observers:
    """Register of all plugins' subscriptions to events of one router."""

    def __init__(
        self,
        connections: Watched,
        network: WatchedNetwork | None = None,
        wall_clock: Callable[[], float] = time.time,
        outcomes: WatchedOutcomes | None = None,
    ) -> None:
        self._connections = connections
        self._network = network
        self._outcomes = outcomes
        self._wall_clock = wall_clock
        self._queues: list[EventQueue] = []
        # types to which at least one queue has subscribed
        self._wanted: frozenset[type[Event]] = frozenset()

    def add(self, queue: EventQueue) -> None:
        """Pass events on to a queue from now on."""
        if not self._queues:
            self._connections.listeners.append(self._connection_event)
            if self._network is not None:
                self._network.watchers.append(self._network_event)
        self._queues.append(queue)
        self._look_at_types()

    def remove(self, queue: EventQueue) -> None:
        """Stop passing events on to a queue."""
        if queue not in self._queues:
            return
        self._queues.remove(queue)
        self._look_at_types()
        if not self._queues:
            self._connections.listeners.remove(self._connection_event)
            if self._network is not None:
                self._network.watchers.remove(self._network_event)

    def _look_at_types(self) -> None:
        self._wanted = frozenset().union(*(queue.types for queue in self._queues))
        if self._outcomes is not None:
            # without a subscription, outcomes cause no calls
            is_wanted = bool(self._wanted & OF_OUTCOMES)
            self._outcomes.observer = self if is_wanted else None

    def settled(
        self,
        incoming: IncomingLink,
        outgoing: OutgoingLink | None,
        code: int,
        age_s: float,
        count: int,
    ) -> None:
        """Pass on settled deliveries (`router.core.deliveries.outcomes.OutcomeObserver`)."""
        if OutcomesSettled in self._wanted:
            self._translate(
                incoming, lambda now: outcomes_settled(now, incoming, outgoing, code, age_s, count)
            )

    def expired(self, incoming: IncomingLink, address: str, count: int) -> None:
        """Pass on expired messages (`router.core.deliveries.outcomes.OutcomeObserver`)."""
        if MessagesExpired in self._wanted:
            self._translate(
                incoming, lambda now: MessagesExpired(now, link_info(incoming), address, count)
            )

    def _translate(self, link: IncomingLink, make: Callable[[float], Event | None]) -> None:
        if not link.session.connection.settings.is_own:
            self._pass_on(make)

    def _connection_event(self, connection: Connection, event: object) -> None:
        found = OF_CONNECTIONS.get(type(event))
        if found is None or connection.settings.is_own:
            return
        types, translate = found
        if not types & self._wanted:
            return
        self._pass_on(lambda now: translate(now, connection, event))

    def _pass_on(self, make: Callable[[float], Event | None]) -> None:
        try:
            self._put(make(self._wall_clock()))
        except Exception:
            # a bug in the translation for plugins must not affect anything else
            log.exception("event not passed on to plugins")

    def _network_event(self, event: News) -> None:
        self._put(of_network(self._wall_clock(), event))

    def _put(self, event: Event | None) -> None:
        if event is not None:
            for queue in self._queues:
                if type(event) in queue.types:
                    queue.put(event)
