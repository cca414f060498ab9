"""One running router: builds the parts, opens the nursery; no logic of its own."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable
from functools import partial

import attrs
import structlog
import trio

from router.config.model import Configuration, ListenerSettings
from router.core.address import UNAVAILABLE
from router.core.link_names import LinkNames
from router.core.table import AddressRule, AddressTable, address_name
from router.logs.journal import Journal
from router.management.agent import NODE, Agent, node_names
from router.management.views import RouterView
from router.metrics.exposition import Exposition
from router.metrics.http import App, Health, HttpListener
from router.metrics.readiness import STOPPING, Readiness
from router.net.accepting import accept_connections
from router.net.connectors import AmqpConnector
from router.net.endpoints import configured_redirects
from router.net.exchange import Exchange
from router.net.listeners import AmqpListener, close_sockets, open_listeners, run_guarded
from router.net.own import own_connection
from router.net.shutdown import close_all

log = structlog.get_logger("router")

# A dynamic address is a capability: who knows it may use it. 120 bits cannot be guessed.
DYNAMIC_NAME_BYTES = 15


@attrs.frozen
class Listening:
    """Where one listener can be reached."""

    listener: ListenerSettings
    addresses: tuple[tuple[str, int], ...]


class Node:
    """A router made from a configuration; `run` is its whole life."""

    def __init__(self, configuration: Configuration, journal: Journal | None = None) -> None:
        self.configuration = configuration
        self.journal = journal or Journal()
        router = configuration.router
        self.container_id = router.id or socket.gethostname()
        rules = [
            AddressRule(
                a.prefix is not None,
                a.prefix or a.pattern or "",
                a.distribution,
                a.redeliver,
                a.dead_letter_address and address_name(a.dead_letter_address),
            )
            for a in configuration.addresses
        ]
        redirects = configured_redirects(configuration.redirects)
        self.table = AddressTable(rules, router.default_distribution, self._dynamic_name, redirects)
        self.table.add_own_node(*node_names(self.container_id))
        frame_sizes = [
            *(listener.max_frame_size for listener in configuration.listeners),
            *(connector.max_frame_size for connector in configuration.connectors),
        ]
        largest = max(frame_sizes, default=0)
        self.exchange = Exchange(
            self.table,
            router.memory_limit_bytes,
            largest,
            LinkNames(router.link_stealing),
            router.terminus_timeout_limit_seconds,
        )
        if router.honour_absolute_expiry_time:
            self.exchange.honour_absolute_expiry()
        self.readiness = Readiness()
        self.exposition = Exposition(self.exchange, configuration.metrics, self.readiness)

    def _dynamic_name(self, maker: str) -> str:
        token = secrets.token_urlsafe(DYNAMIC_NAME_BYTES)
        return f"amqp:/_topo/0/{self.container_id}/temp.{token}.{maker}"

    async def run(
        self,
        stop: trio.Event,
        task_status: trio.TaskStatus[list[Listening]] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Listen, connect and forward until `stop` is set, then close every connection in order.

        Reports where it listens once all sockets are bound; raises `OSError` where one cannot be.
        """
        opened: list[trio.SocketListener] = []
        listening: list[Listening] = []
        listeners = []
        http = []
        try:
            for listener in self.configuration.listeners:
                sockets = await open_listeners(listener)
                opened.extend(sockets)
                bound = tuple(s.socket.getsockname()[:2] for s in sockets)
                listening.append(Listening(listener, bound))
                if listener.http:
                    accept = partial(accept_connections, listener.name, sockets)
                    http.append(HttpListener(listener.name, accept, self._http_app(listener)))
                else:
                    listeners.append(
                        AmqpListener(listener, sockets, self.exchange, self.container_id)
                    )
        except BaseException:
            close_sockets(opened)
            raise
        # HTTP outlives the connections: until the end it tells how the shutdown goes.
        http_stop = trio.Event()
        async with trio.open_nursery() as serving:
            for each in http:
                serving.start_soon(each.serve, http_stop)
            await self._run_amqp(listeners, stop, lambda: task_status.started(listening))
            http_stop.set()

    async def _run_amqp(
        self, listeners: list[AmqpListener], stop: trio.Event, started: Callable[[], None]
    ) -> None:
        async with trio.open_nursery() as connections:
            async with trio.open_nursery() as own:
                await self._start_agent(own, connections)
                async with trio.open_nursery() as accepting:
                    accepting.start_soon(self.exchange.watch_clock)
                    for listener in listeners:
                        accepting.start_soon(listener.serve, connections)
                    for connector in self.configuration.connectors:
                        endpoint = AmqpConnector(connector, self.exchange, self.container_id)
                        accepting.start_soon(endpoint.serve, connections)
                    self.readiness.has("router")
                    started()
                    await stop.wait()
                    self.readiness.lacks("router", STOPPING)
                    log.info("shutting down", connections=len(self.exchange.pumps))
                    accepting.cancel_scope.cancel()
                await close_all(self.exchange)
                own.cancel_scope.cancel()
            connections.cancel_scope.cancel()

    async def _start_agent(self, own: trio.Nursery, connections: trio.Nursery) -> None:
        """Have `$management` answered, unless it is configured to be unavailable."""
        if self.table.treatment(NODE) == UNAVAILABLE:
            return
        exchange = self.exchange

        def dial() -> socket.socket:
            pump, sock = own_connection(exchange, self.container_id)
            connections.start_soon(run_guarded, pump)
            return sock

        host, now = socket.gethostname(), exchange.turn.now
        view = RouterView(self.container_id, host, self.configuration, exchange, now, self.journal)
        # nobody can guess whose links these are, and so nobody can steal them
        agent_id = f"{self.container_id}.{secrets.token_urlsafe(DYNAMIC_NAME_BYTES)}"
        await own.start(Agent(view, dial, agent_id).run)
        self.readiness.watch(self._lost_agent)

    def _lost_agent(self) -> str | None:
        node = self.table.in_use(NODE)
        return None if node and node.consumers else f"{NODE} is not answered"

    def _http_app(self, listener: ListenerSettings) -> App:
        return App(
            self.exposition if listener.metrics else None,
            Health(self.exchange.round_trip, self.readiness) if listener.healthz else None,
        )
