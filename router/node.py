"""One running router: builds the parts, opens the nursery; no logic of its own."""

from __future__ import annotations

import secrets
import socket
import time
from collections.abc import Callable

import structlog
import trio

from router.config.mistakes import InvalidConfiguration
from router.config.model import Configuration, ListenerSettings
from router.config.reload import Applied, Difference, NotApplied, find_differences, find_impossible
from router.config.revisions import History, Revision, share
from router.config.saved import Base, Keeper
from router.config.validate import find_mistakes
from router.core.address import UNAVAILABLE
from router.core.link_names import LinkNames
from router.core.table import AddressTable
from router.core.treating import Treating
from router.endpoints import Endpoints, Listening, Prepared
from router.logs.journal import Journal
from router.management.agent import NODE, Agent, node_names
from router.management.trace_streams import Streams
from router.management.views import RouterView
from router.metrics.exposition import Exposition
from router.metrics.http import App, Health
from router.metrics.readiness import STARTING, STOPPING, Readiness
from router.net.endpoints import configured_redirects, configured_rules
from router.net.exchange import Exchange
from router.net.first_frames import find_too_long
from router.net.listeners import run_guarded
from router.net.own import own_connection
from router.net.shutdown import close_all
from router.settings import take_up

log = structlog.get_logger("router")

# A dynamic address is a capability: who knows it may use it. 120 bits cannot be guessed.
DYNAMIC_NAME_BYTES = 15
# Of how many entities that change at once the log names each.
MOST_LOGGED = 50


class Node:
    """A router made from a configuration; `run` is its whole life.

    `base` is what the configuration file says, which may be something else, and `keeper` keeps
    what is not in it; without one that is lost at the end. `revision` is the number that the
    configuration has among all that were run.
    """

    def __init__(
        self,
        configuration: Configuration,
        journal: Journal | None = None,
        *,
        base: Base | None = None,
        keeper: Keeper | None = None,
        revision: int = 1,
    ) -> None:
        self.journal = journal or Journal()
        self.base = base or Base(configuration)
        self.keeper = keeper
        self.history = History(configuration, time.time(), revision)
        router = configuration.router
        self.container_id = router.id or socket.gethostname()
        self.table = AddressTable(
            configured_rules(configuration.addresses),
            router.default_distribution,
            self._dynamic_name,
            configured_redirects(configuration.redirects),
        )
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
        traces = self.exchange.traces
        traces.log = self.journal.log_frame
        traces.log_all(self.journal.logs_frames())
        self.journal.watchers.append(lambda _: traces.log_all(self.journal.logs_frames()))
        self.readiness = Readiness()
        self.exposition = Exposition(self.exchange, configuration.metrics, self.readiness)
        self.treating = Treating(self.exchange.forwarder)
        self.exchange.chores.append(lambda _: self._treat_addresses())
        self.endpoints = Endpoints(self.exchange, self.container_id, self._http_app)
        self.view: RouterView | None = None
        self._applying = trio.Lock()
        # why it cannot become another one, if so
        self._refuses: str | None = STARTING

    @property
    def configuration(self) -> Configuration:
        """What it runs."""
        return self.history.current.configuration

    @property
    def kept_in(self) -> str | None:
        """Where what is changed is kept for the next start; None where it is lost."""
        return None if self.keeper is None else str(self.keeper.file)

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
        prepared = await self.endpoints.prepare(self.configuration)
        try:
            # HTTP outlives the connections: until the end it tells how the shutdown goes.
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
        started: Callable[[list[Listening]], None],
    ) -> None:
        async with trio.open_nursery() as connections:
            async with trio.open_nursery() as own:
                await self._start_agent(own, connections)
                async with trio.open_nursery() as accepting:
                    accepting.start_soon(self.exchange.watch_clock)
                    self.endpoints.start(accepting, serving, connections)
                    self.endpoints.commit(prepared)
                    self._refuses = None
                    self.readiness.has("router")
                    started([each.listening for each in self.endpoints.listeners.values()])
                    await stop.wait()
                    self._refuses = STOPPING
                    self.readiness.lacks("router", STOPPING)
                    log.info("shutting down", connections=len(self.exchange.pumps))
                    accepting.cancel_scope.cancel()
                await close_all(self.exchange)
                own.cancel_scope.cancel()
            connections.cancel_scope.cancel()

    async def apply(
        self, wanted: Configuration, cause: str = "", base: Base | None = None
    ) -> Applied:
        """Become what another configuration says, under traffic, as a whole or not at all.

        One after the other, where several ask; who has made `wanted` of a configuration that is
        not the one any more when it is his turn has to look again. `base` is what the
        configuration file says, where that is news. Raises `router.config.reload.NotApplied`, and
        then nothing has changed.
        """
        before = self.configuration
        async with self._applying:
            if self.configuration is not before:
                raise NotApplied(["the configuration was changed meanwhile: look again"])
            self._check_phase()
            wanted, differences = await trio.to_thread.run_sync(_readied, before, wanted)
            try:
                prepared = await self.endpoints.prepare(wanted)
            except (OSError, InvalidConfiguration) as error:
                raise NotApplied([str(error)]) from None
            try:
                if differences or base is not None:
                    await self._save(wanted, base or self.base)
                if self._refuses is not None:
                    # the end came in between, and the next start is not to run it either
                    with trio.CancelScope(shield=True):
                        await self._save(before, self.base)
                    self._check_phase()
            except BaseException:
                prepared.discard()
                raise
            # from here on nothing fails, and nothing waits
            self.exchange.begin_turn()
            take_up(self, differences, wanted)
            self.exchange.finish_turn()
            self.endpoints.commit(prepared)
            self.base = base or self.base
            revision = self._note(wanted, differences, cause)
        return Applied(differences, revision.number, self.kept_in)

    async def examine(self, wanted: Configuration) -> tuple[Difference, ...]:
        """What `apply` would change; raises `NotApplied` where it would do nothing of it.

        A large configuration takes a while, in which the router goes on.
        """
        self._check_phase()
        return await trio.to_thread.run_sync(_examined, self.configuration, wanted)

    def _check_phase(self) -> None:
        if self._refuses is not None:
            raise NotApplied([self._refuses])

    async def _save(self, wanted: Configuration, base: Base) -> None:
        """Keep what is about to be run; a crash before it is run does no harm."""
        keeper = self.keeper
        if keeper is None:
            return
        number = self.history.current.number + 1
        try:
            await trio.to_thread.run_sync(keeper.save, base, wanted, number, time.time())
        except OSError as error:
            reason = f"cannot be saved in {keeper.file}: {error.strerror or error}"
            raise NotApplied([reason]) from None

    def _note(
        self, wanted: Configuration, differences: tuple[Difference, ...], cause: str
    ) -> Revision:
        """Remember, log and show what is run from now on."""
        if not differences:
            return self.history.current
        revision = self.history.add(wanted, differences, cause, time.time())
        if self.view is not None:
            self.view.configuration = revision.configuration
        log.info("configuration changed", revision=revision.number, cause=cause)
        for difference in differences[:MOST_LOGGED]:
            log.info("changed", what=difference.what, place=difference.place)
        return revision

    def _treat_addresses(self) -> None:
        """Look again at addresses that could not be treated as they should be."""
        if self.treating.pending:
            self.exchange.begin_turn()
            self.treating.go_on()
            self.exchange.finish_turn()

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
        self.view = view = RouterView(
            self.container_id,
            host,
            self.configuration,
            exchange,
            now,
            self.journal,
            streams=Streams(self.table),
            changeable=self,
        )
        # nobody can guess whose links these are, and so nobody can steal them
        agent_id = f"{self.container_id}.{secrets.token_urlsafe(DYNAMIC_NAME_BYTES)}"
        own.start_soon(view.streams.run)
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


def _readied(
    old: Configuration, wanted: Configuration
) -> tuple[Configuration, tuple[Difference, ...]]:
    """What takes long with a large configuration, and needs nothing of the router."""
    wanted = share(old, wanted)
    return wanted, _examined(old, wanted)


def _examined(old: Configuration, wanted: Configuration) -> tuple[Difference, ...]:
    differences = find_differences(old, wanted)
    reasons = find_impossible(differences) or [
        str(mistake) for mistake in find_mistakes(wanted, [find_too_long])
    ]
    if reasons:
        raise NotApplied(reasons)
    return differences
