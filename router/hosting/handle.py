"""Interface of a running plugin to its router: the implementation of `router.plugin.Router`."""

from __future__ import annotations

import secrets
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from itertools import count
from typing import Final

import structlog
import trio
from prometheus_client import Counter, Gauge, Histogram

from router.client import ClientConnection
from router.client.connection import connect_over
from router.hosting.metrics import PluginMetrics
from router.hosting.observers import EventQueue, Observers
from router.hosting.sampling import Sampling
from router.hosting.translation import connection_info, link_totals
from router.net.router_hub import RouterHub
from router.plugin import (
    BoundLogger,
    DeliverySamples,
    Event,
    ManagedAttribute,
    ManagedType,
    Subscription,
)
from router.plugin_events import ConnectionInfo, LinkTotals

# Number of links that are read before other tasks run.
LINKS_PER_CHECKPOINT: Final = 128
# Maximum capacity for sampled deliveries, which take 128 octets each.
MAX_SAMPLES: Final = 1_000_000
# Types of management attributes.
ATTRIBUTE_TYPES: Final = ("string", "integer", "boolean", "list", "map")


class Handle:
    """Interface of one plugin to its router, while the plugin runs."""

    def __init__(
        self,
        name: str,
        router_id: str,
        hub: RouterHub,
        observers: Observers,
        metrics: PluginMetrics,
        dial: Callable[[str], socket.socket],
    ) -> None:
        self.id = router_id
        self.name = name
        self.log: BoundLogger = structlog.get_logger("router.plugin").bind(plugin=name)
        # called when the plugin is set up
        self.on_started: Callable[[], None] = lambda: None
        self.types: dict[str, ManagedType] = {}
        self.queues: list[EventQueue] = []
        self._hub = hub
        self._observers = observers
        self._metrics = metrics
        self._dial = dial
        self._sampling: Sampling | None = None
        self._connections = count(1)
        self._is_closed = False

    def started(self) -> None:
        """Report that the plugin is set up."""
        self.on_started()

    def counter(self, name: str, description: str, labels: Sequence[str] = ()) -> Counter:
        """Add a counter to the router's metrics."""
        return self._metrics.counter(name, description, labels)

    def gauge(self, name: str, description: str, labels: Sequence[str] = ()) -> Gauge:
        """Add a gauge to the router's metrics."""
        return self._metrics.gauge(name, description, labels)

    def histogram(
        self,
        name: str,
        description: str,
        labels: Sequence[str] = (),
        buckets: Sequence[float] = Histogram.DEFAULT_BUCKETS,
    ) -> Histogram:
        """Add a histogram to the router's metrics."""
        return self._metrics.histogram(name, description, labels, buckets)

    def subscribe(self, *types: type[Event], capacity: int = 10_000) -> Subscription:
        """Subscribe to events of these types from now on.

        Raises ValueError if a type or `capacity` is invalid.
        """
        self._check_open()
        known = Event.__subclasses__()
        if not types or not set(types) <= set(known):
            names = ", ".join(each.__name__ for each in known)
            raise ValueError(f"a subscription needs one or more of these event types: {names}")
        if capacity < 1:
            raise ValueError(f"capacity must be at least 1, not {capacity}")
        queue = EventQueue(types, capacity)
        queue.on_close = self._observers.remove
        self.queues.append(queue)
        self._observers.add(queue)
        return queue

    def sample_deliveries(self, share: float, capacity: int = 65_536) -> DeliverySamples:
        """Sample this share of the deliveries that enter the network at this router.

        Raises ValueError if an argument is out of range, or deliveries are sampled already.
        """
        self._check_open()
        if not 0 <= share <= 1:
            raise ValueError(f"the share of sampled deliveries must be from 0 to 1, not {share}")
        if not 1 <= capacity <= MAX_SAMPLES:
            raise ValueError(f"capacity must be from 1 to {MAX_SAMPLES}, not {capacity}")
        if self._hub.forwarder.outcomes.sampler is not None:
            raise ValueError("deliveries are sampled already, for this plugin or for another one")
        self._sampling = Sampling(self._hub, share, capacity)
        return self._sampling

    def connections(self) -> Iterator[ConnectionInfo]:
        """Iterate over the connections that are open now."""
        for pump in list(self._hub.pumps.values()):
            if pump.connection.remote_open is not None:
                yield connection_info(pump.connection)

    async def links(self) -> list[LinkTotals]:
        """Return the totals so far of each link.

        Other tasks may run before all links are read, so the totals may be from different moments.
        """
        found: list[LinkTotals] = []
        for pump in list(self._hub.pumps.values()):
            for session in list(pump.connection.local_sessions.values()):
                for link in list(session.local_links.values()):
                    if link.owner is None:
                        continue
                    found.append(link_totals(link))
                    if len(found) % LINKS_PER_CHECKPOINT == 0:
                        await trio.lowlevel.checkpoint()
        return found

    def manage(self, entity_type: ManagedType) -> None:
        """Add a type of management entities. Raise ValueError if it is invalid or added twice."""
        self._check_open()
        _check_type(entity_type)
        if entity_type.type in self.types:
            raise ValueError(f"management type {entity_type.type!r} was added twice")
        self.types[entity_type.type] = entity_type

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[ClientConnection]:
        """Open an AMQP connection to the plugin's own router."""
        # Containers with the same id could steal each other's links, so each connection has its own
        # id, which other clients cannot guess.
        number = next(self._connections)
        container_id = f"{self.id}/plugin/{self.name}/{number}-{secrets.token_hex(8)}"
        async with connect_over(self._dial(container_id), container_id) as connection:
            yield connection

    def _check_open(self) -> None:
        if self._is_closed:
            raise RuntimeError("the plugin has been stopped")

    def close(self) -> None:
        """End the plugin's sampling, subscriptions and management types, and refuse new ones."""
        self._is_closed = True
        if self._sampling is not None:
            self._sampling.close()
        for queue in self.queues:
            self._observers.remove(queue)
        self.types.clear()

    @property
    def lost_events(self) -> int:
        """Return how many events were lost because the plugin read too slowly."""
        return sum(queue.lost for queue in self.queues)


def _check_type(entity_type: ManagedType) -> None:
    """Raise ValueError if the type of management entities is invalid."""
    if not _is_name(entity_type.type):
        raise ValueError(f"the name of a management type must be text, not {entity_type.type!r}")
    attributes: tuple[object, ...] = tuple(entity_type.attributes)
    for each in attributes:
        if not isinstance(each, ManagedAttribute) or not _is_name(each.name):
            raise ValueError(f"an attribute must be a ManagedAttribute with a name, not {each!r}")
        if each.type not in ATTRIBUTE_TYPES:
            known = ", ".join(ATTRIBUTE_TYPES)
            raise ValueError(f"the type of attribute {each.name} must be one of {known}")
    texts: list[object] = [entity_type.description]
    texts.extend(each.description for each in entity_type.attributes)
    if not all(isinstance(text, str) for text in texts):
        raise ValueError(f"each description of management type {entity_type.type} must be text")
    if not callable(entity_type.read):
        raise ValueError(f"read of management type {entity_type.type} must be a function")


def _is_name(name: object) -> bool:
    return isinstance(name, str) and name.isprintable() and name.isascii() and 0 < len(name) < 100
