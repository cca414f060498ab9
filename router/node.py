"""Run a router: build its parts and open its nurseries; the logic is in the parts."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import structlog
import trio

from router.config.listeners import ListenerSettings
from router.config.model import Configuration
from router.config.saved import BaseConfiguration, StateFile
from router.control.network.first_sync import FirstSync
from router.core.model.address import UNAVAILABLE
from router.core.routers.membership import ROLES
from router.core.routers.names import MANAGEMENT_NODE
from router.endpoints import Endpoints, Prepared
from router.hosting.callouts import PluginCallouts
from router.hosting.host import PluginHost
from router.logs.journal import Journal
from router.management.agent import Agent, node_names
from router.management.running_traces import RunningTraces
from router.management.views import RouterView
from router.metrics.exposition import Exposition
from router.metrics.policy import PolicyReader
from router.metrics.readiness import STOPPING, Readiness
from router.net.internal_connections import internal_connection
from router.net.listeners import run_guarded
from router.net.network_log import log_news
from router.net.policy_log import log_denial
from router.net.shutdown import close_all
from router.parts import Parts
from router.reconfiguration import ReconfigurableRouter
from router.running_listeners import ListenerAddresses

if TYPE_CHECKING:
    from router.metrics.http import App

log = structlog.get_logger("router")

# A dynamic address is a capability: anyone who knows it may use it. 120 bits cannot be guessed.
DYNAMIC_NAME_BYTES = 15


def _make_token() -> str:
    return secrets.token_urlsafe(DYNAMIC_NAME_BYTES)


class Node(ReconfigurableRouter):
    """Router with a configuration; `run` runs it from start to shutdown.

    `base` is the content of the configuration file, from which `configuration` may differ.
    `state_file` stores changes that are not in the configuration file; without it, changes are lost
    when the router stops. `revision` is the revision number of `configuration`.
    """

    def __init__(
        self,
        configuration: Configuration,
        journal: Journal | None = None,
        *,
        base: BaseConfiguration | None = None,
        state_file: StateFile | None = None,
        revision: int = 1,
    ) -> None:
        super().__init__(
            base or BaseConfiguration(configuration), state_file, configuration, revision
        )
        self.journal = journal or Journal()
        parts = Parts(configuration, _make_token)
        self.container_id = parts.container_id
        self.table = parts.table
        self.hub = parts.hub
        self.control = parts.control
        self.gate = parts.gate
        self.gate.denied = log_denial
        self.treating = parts.treating
        self.table.add_own_node(*node_names(self.container_id))
        traces = self.hub.tracer
        traces.log = self.journal.log_frame
        traces.log_all(self.journal.logs_frames())
        self.journal.watchers.append(lambda _: traces.log_all(self.journal.logs_frames()))
        self.readiness = Readiness()
        self.exposition = Exposition(self.hub, configuration.metrics, self.readiness)
        self.exposition.collector.log_lines = self.journal.lines_by_level
        self.exposition.collector.accounts["log"] = self.journal.recent.characters
        self.exposition.collector.policy = PolicyReader(self.gate).read
        self.plugins = PluginHost(
            self.hub, self.container_id, self.exposition.registry, self.control.network
        )
        self.plugins.change(configuration.plugins)
        self.hub.callouts = PluginCallouts(self.plugins)
        # called once all connections are closed, if a plugin cannot be stopped; the caller of `run`
        # may end the process then; otherwise the router waits for the plugin
        self.on_stuck: Callable[[], None] = lambda: None
        self.exposition.collector.plugins = self.plugins.reading
        self.hub.tidy_callbacks.append(lambda _: self.treat_addresses())
        self.endpoints = Endpoints(self.hub, self.container_id, self._http_app)
        self.control.auto_links.redirected.port = self.endpoints
        self.readiness.watch(self._needed_connector)
        network = self.control.network
        if network is not None:
            network.watchers.append(log_news)
            first_sync = FirstSync(network, self._unreached_routers, self.hub.turn.now)
            self.readiness.watch(first_sync.missing_reason)

    async def run(
        self,
        stop: trio.Event,
        task_status: trio.TaskStatus[list[ListenerAddresses]] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Listen, connect and forward until `stop` is set, then close all connections gracefully.

        Reports the listening addresses once all sockets are bound; raises `OSError` if one cannot
        be bound.
        """
        prepared = await self.endpoints.prepare(self.configuration)
        try:
            # HTTP outlives the connections: it reports the progress of the shutdown until the end.
            async with trio.open_nursery() as serving:
                await self._run_amqp(prepared, serving, stop, task_status.started)
                self.endpoints.close_http()
        except BaseException:
            prepared.discard()
            raise

    async def _run_amqp(
        self,
        prepared: Prepared,
        serving: trio.Nursery,
        stop: trio.Event,
        started: Callable[[list[ListenerAddresses]], None],
    ) -> None:
        async with trio.open_nursery() as connections:
            async with trio.open_nursery() as own:
                # deferred work of connections goes on until the last of them is closed
                own.start_soon(self.hub.work_off)
                own.start_soon(self.hub.low_priority.run)
                await self._start_agent(own, connections)
                await own.start(self.plugins.run, connections)
                async with trio.open_nursery() as accepting:
                    accepting.start_soon(self.hub.run_timers)
                    self.endpoints.start(accepting, serving, connections)
                    self.endpoints.commit(prepared)
                    self.refuses = None
                    self.readiness.has("router")
                    started([each.listening for each in self.endpoints.listeners.values()])
                    await stop.wait()
                    self.refuses = STOPPING
                    self.endpoints.stop()
                    self.readiness.lacks("router", STOPPING)
                    log.info("shutting down", connections=len(self.hub.pumps))
                    accepting.cancel_scope.cancel()
                stuck = await self.plugins.stop()
                await close_all(self.hub)
                if stuck:
                    log.error("plugins did not stop", plugins=stuck)
                    self.on_stuck()
                own.cancel_scope.cancel()
            connections.cancel_scope.cancel()
        # deferred work of the last connections
        await self.hub.catch_up()

    async def _start_agent(self, own: trio.Nursery, connections: trio.Nursery) -> None:
        """Start the agent of `$management`, unless the address is configured to be unavailable."""
        if self.table.treatment(MANAGEMENT_NODE) == UNAVAILABLE:
            return
        hub = self.hub

        def dial() -> socket.socket:
            pump, sock = internal_connection(hub, self.container_id)
            connections.start_soon(run_guarded, pump)
            return sock

        host, now = socket.gethostname(), hub.turn.now
        self.view = view = RouterView(
            self.container_id,
            host,
            self.configuration,
            hub,
            now,
            self.journal,
            running_traces=RunningTraces(self.table),
            configurable=self,
            control=self.control,
            gate=self.gate,
            plugins=self.plugins,
        )
        # this container-id cannot be guessed, so no peer can steal the agent's links
        agent_id = f"{self.container_id}.{_make_token()}"
        own.start_soon(view.running_traces.run)
        await own.start(Agent(view, dial, agent_id).run)
        self.readiness.watch(self._lost_agent)

    def _needed_connector(self) -> str | None:
        """Return why a needed connection is missing; None if no needed connection is missing."""
        lacking = (each.missing_reason() for each in self.endpoints.connectors.values())
        return next((reason for reason in lacking if reason is not None), None)

    def _unreached_routers(self) -> Iterator[str]:
        """Yield the names of connectors to other routers that have never had a connection."""
        for each in self.endpoints.connectors.values():
            if each.connector.role in ROLES and not each.counters.opened:
                yield each.connector.name

    def _lost_agent(self) -> str | None:
        node = self.table.in_use(MANAGEMENT_NODE)
        return None if node and node.consumers else f"{MANAGEMENT_NODE} has no agent"

    def _http_app(self, listener: ListenerSettings) -> App:
        # only here: a router without such a listener needs no HTTP server, nor its memory
        from router.metrics.http import App, Health

        return App(
            self.exposition if listener.metrics else None,
            Health(self.hub.round_trip, self.readiness) if listener.healthz else None,
        )
