"""Run the plugins of the configuration, isolated so that none can bring the router down.

A plugin runs while its section is in the configuration, unchanged. A plugin that fails is stopped,
and is started again only once its section has changed, because it would probably fail again.
"""

from __future__ import annotations

import socket
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from functools import partial
from typing import Any, Final, Literal, Protocol

import attrs
import structlog
import trio
from prometheus_client import CollectorRegistry

from router.config.mistakes import format_path
from router.config.plugin_classes import PluginUnusable, load_plugin, read_settings
from router.config.plugins import PluginSettings
from router.errors import PluginHung, describe_exception
from router.hosting.handle import Handle
from router.hosting.metrics import PluginMetrics
from router.hosting.observers import Observers, WatchedNetwork
from router.hosting.watchdog import Watchdog, code_folder
from router.metrics.plugins import PluginsReading
from router.net.fair_limiter import FairLimiter
from router.net.internal_connections import plugin_connection
from router.net.listeners import run_guarded
from router.net.router_hub import RouterHub
from router.plugin import ManagedType, Router

log = structlog.get_logger("router.plugin")

# Time limit for the previous plugin with the same name to end, and then for the new one to report
# that it is set up.
START_S: Final = 30.0
# Time that a stopping router waits for its plugins.
STOP_S: Final = 2.0
# How many callouts to one plugin (`callouts`) are in progress at a time.
MAX_CALLS: Final = 64
# Maximum number of lines that are logged from a crashed plugin's traceback.
MAX_TRACEBACK_LINES: Final = 30
HUNG: Final = "it blocked the event loop for more than a second"
FLOODED: Final = "its code ran for more than half of the last 10 s"

Status = Literal["starting", "running", "finished", "stopped", "failed"]


# The plugin that the current task belongs to.
EXECUTED: ContextVar[HostedPlugin | None] = ContextVar("executed plugin", default=None)


class Runnable(Protocol):
    """Instance of a plugin; its class need not be derived from `router.plugin.Plugin`."""

    async def run(self, router: Router) -> None:
        """Do the plugin's work (`router.plugin.Plugin.run`)."""


class _Late(Exception):
    """Error for a plugin that is not set up in time, or whose predecessor does not end in time."""


@attrs.define(eq=False)
class HostedPlugin:
    """Configured plugin: its section of the configuration, and its state.

    `reason` says why the plugin is not running. `failure` is the kind of failure: `unusable`,
    `crashed`, `hung`, `flooded` or `slow-start`; it is empty if the plugin has not failed.
    """

    section: PluginSettings
    status: Status = "starting"
    reason: str = ""
    failure: str = ""
    handle: Handle | None = None
    # set when the plugin is set up or has ended; and when it has ended
    is_settled: trio.Event = attrs.field(factory=trio.Event, repr=False)
    over: trio.Event = attrs.field(factory=trio.Event, repr=False)
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope, repr=False)
    folder: str = ""
    # the plugin itself, once it is made
    instance: Runnable | None = attrs.field(default=None, repr=False)
    # calls of it that are in progress (`callouts`), and the turns of those that wait
    calls: set[trio.CancelScope] = attrs.field(factory=set, repr=False)
    turns: FairLimiter = attrs.field(factory=lambda: FairLimiter(MAX_CALLS), repr=False)

    @property
    def name(self) -> str:
        """Return the plugin's name in the configuration."""
        return self.section.name

    @property
    def is_alive(self) -> bool:
        """Return whether the plugin is starting or running."""
        return self.status in ("starting", "running")

    @property
    def is_running(self) -> bool:
        """Return whether the plugin is running."""
        return self.status == "running"

    @property
    def lost_events(self) -> int:
        """Return how many events were lost because the plugin read too slowly."""
        return 0 if self.handle is None else self.handle.lost_events

    @property
    def types(self) -> Iterable[ManagedType]:
        """Return the types of management entities that the plugin reports while it runs."""
        return () if self.handle is None else list(self.handle.types.values())

    def stop(self, status: Status, reason: str, failure: str = "") -> None:
        """Cancel the plugin. Only the first call sets status, reason and failure."""
        if self.is_alive:
            self.status, self.reason, self.failure = status, reason, failure
        self.scope.cancel()
        self.cancel_calls()

    def cancel_calls(self) -> None:
        """Cancel the calls of the plugin that are in progress."""
        for call in self.calls:
            call.cancel()


class PluginHost:
    """Host of a router's plugins, which starts and stops them."""

    def __init__(
        self,
        hub: RouterHub,
        router_id: str,
        registry: CollectorRegistry,
        network: WatchedNetwork | None = None,
    ) -> None:
        self.plugins: dict[str, HostedPlugin] = {}
        # by the plugin's name and the kind of failure
        self.failures: Counter[tuple[str, str]] = Counter()
        self._hub = hub
        self._router_id = router_id
        self._registry = registry
        self._observers = Observers(hub, network, outcomes=hub.forwarder.outcomes)
        self._wanted: dict[str, PluginSettings] = {}
        self._metric_owners: dict[str, PluginMetrics] = {}
        # the latest plugin of each name, which may still be ending after its section was removed
        self._last: dict[str, HostedPlugin] = {}
        self._nursery: trio.Nursery | None = None
        self._connections: trio.Nursery | None = None
        self._watchdog: Watchdog | None = None
        self._token: trio.lowlevel.TrioToken | None = None

    async def run(
        self,
        connections: trio.Nursery,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Run plugins until cancelled; serve their connections in the nursery `connections`."""
        self._connections = connections
        self._token = trio.lowlevel.current_trio_token()
        self._watchdog = Watchdog(lambda: self._hub.turn.now, self._flooded, self._hung)
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                self._adjust()
                task_status.started()
                await trio.sleep_forever()
        finally:
            self._nursery = None

    async def stop(self) -> list[str]:
        """Stop all plugins, and wait up to `STOP_S` until they have ended.

        Returns the names of the plugins that have not ended.
        """
        ending = list(self._last.values())
        for hosted in ending:
            hosted.stop("stopped", "the router stops")
        with trio.move_on_after(STOP_S):
            for hosted in ending:
                await hosted.over.wait()
        return [hosted.name for hosted in ending if not hosted.over.is_set()]

    def change(self, sections: Iterable[PluginSettings]) -> None:
        """Run the plugins of these sections: start new ones, and stop or restart others."""
        self._wanted = {each.name: each for each in sections}
        self._adjust()

    def _adjust(self) -> None:
        if self._nursery is None:
            return
        for name, hosted in list(self.plugins.items()):
            wanted = self._wanted.get(name)
            if wanted != hosted.section:
                hosted.stop("stopped", "its section was changed or removed")
                if wanted is None:
                    del self.plugins[name]
        for name, section in self._wanted.items():
            there = self.plugins.get(name)
            if there is None or there.section != section:
                hosted = HostedPlugin(section)
                before = self._last.get(name)
                self.plugins[name] = self._last[name] = hosted
                self._nursery.start_soon(self._run_one, hosted, before)

    async def _run_one(self, hosted: HostedPlugin, before: HostedPlugin | None) -> None:
        """Run one plugin, once the previous one with its name has ended."""
        try:
            try:
                with hosted.scope:
                    if before is not None:
                        await _over_in_time(before)
                    await self._run_plugin(hosted)
            except* trio.Cancelled:
                raise
            except* BaseException as group:  # noqa: BLE001 - a plugin may raise anything
                kind = "unusable" if hosted.handle is None else _kind_of(group)
                self._failed(hosted, kind, group)
            if hosted.is_alive:
                hosted.status, hosted.reason = "finished", "its work is done"
                log.info("plugin finished", plugin=hosted.name)
        finally:
            if hosted.is_alive:
                hosted.status, hosted.reason = "stopped", "the router stops"
            hosted.is_settled.set()
            hosted.over.set()
            hosted.cancel_calls()
            if self._last.get(hosted.name) is hosted and hosted.name not in self.plugins:
                del self._last[hosted.name]

    async def _run_plugin(self, hosted: HostedPlugin) -> None:
        async with trio.open_nursery() as nursery:
            EXECUTED.set(hosted)
            nursery.start_soon(self._see_it_start, hosted)
            plugin = await trio.to_thread.run_sync(_made, hosted.section, abandon_on_cancel=True)
            await trio.lowlevel.checkpoint()
            hosted.instance = plugin
            metrics = PluginMetrics(
                hosted.name, partial(self._metrics_failed, hosted), self._metric_owners
            )
            folder = code_folder(type(plugin).__module__)
            handle = Handle(
                hosted.name,
                self._router_id,
                self._hub,
                self._observers,
                metrics,
                partial(self._dial, hosted.name),
            )
            handle.on_started = partial(self._started, hosted)
            assert self._watchdog is not None
            hosted.handle = handle
            hosted.folder = folder
            self._registry.register(metrics)
            self._watchdog.watch(folder)
            try:
                # in a separate task, in which the plugin may leave a nursery open
                async with trio.open_nursery() as own:
                    own.start_soon(plugin.run, handle)
            finally:
                self._watchdog.forget(folder)
                self._registry.unregister(metrics)
                metrics.close()
                handle.close()
            nursery.cancel_scope.cancel()

    async def _see_it_start(self, hosted: HostedPlugin) -> None:
        """Raise `_Late` if a plugin is not imported and set up in time."""
        with trio.move_on_after(START_S):
            await hosted.is_settled.wait()
            return
        raise _Late(f"run did not call router.started() within {START_S:g} s")

    def _started(self, hosted: HostedPlugin) -> None:
        if hosted.status == "starting":
            hosted.status = "running"
            hosted.is_settled.set()
            log.info("plugin running", plugin=hosted.name)

    def _dial(self, plugin: str, container_id: str) -> socket.socket:
        assert self._connections is not None
        pump, sock = plugin_connection(self._hub, container_id, plugin)
        self._connections.start_soon(run_guarded, pump)
        return sock

    # Failures.

    def _failed(self, hosted: HostedPlugin, failure: str, error: BaseException) -> None:
        """Stop a plugin that has raised an exception, unless it is stopped already."""
        cause = cause_of(error)
        if isinstance(cause, _Late):
            failure = "slow-start"
        is_ours = isinstance(cause, (_Late, PluginUnusable))
        reason = str(cause) if is_ours else _words(cause)
        self._stop_failed(hosted, failure, reason, None if is_ours else cause)

    def _stop_failed(
        self,
        hosted: HostedPlugin,
        failure: str,
        reason: str,
        error: BaseException | None = None,
    ) -> None:
        """Stop a plugin that has failed, unless it is stopped already."""
        if not hosted.is_alive:
            return
        hosted.stop("failed", reason, failure)
        self.failures[hosted.name, failure] += 1
        log.error("plugin failed", plugin=hosted.name, failure=failure, reason=reason)
        for line in () if error is None else _last_lines(error):
            log.error("plugin traceback", plugin=hosted.name, line=line)

    def _metrics_failed(self, hosted: HostedPlugin, why: str, error: BaseException | None) -> None:
        if error is None:
            self._stop_failed(hosted, "flooded", why)
        else:
            self._stop_failed(hosted, _kind_of(error), _words(error), error)

    def _hung(self) -> None:
        """Stop the plugin that the current task belongs to, as it blocks the event loop."""
        hosted = EXECUTED.get()
        if hosted is not None:
            self._stop_failed(hosted, "hung", HUNG)

    def _flooded(self, folder: str) -> None:
        """Stop the plugins with code in `folder`, which takes too much time.

        The watchdog calls this in its own thread.
        """
        assert self._token is not None
        try:
            self._token.run_sync_soon(self._stop_flooding, folder)
        except trio.RunFinishedError:
            return

    def _stop_flooding(self, folder: str) -> None:
        for hosted in list(self.plugins.values()):
            if hosted.folder == folder:
                self._stop_failed(hosted, "flooded", FLOODED)

    # State for management and metrics.

    def state_of(self, name: str) -> HostedPlugin | None:
        """Return the state of a plugin; None if no plugin has this name."""
        return self.plugins.get(name)

    def reported(self) -> Iterator[tuple[str, ManagedType]]:
        """Yield the management types of all plugins, as pairs of the plugin's name and the type."""
        for name, hosted in list(self.plugins.items()):
            for each in hosted.types:
                yield name, each

    def read_failed(self, plugin: str, error: BaseException) -> None:
        """Stop a plugin whose code has raised an exception when the router called it."""
        hosted = self.plugins.get(plugin)
        if hosted is not None:
            self._stop_failed(hosted, _kind_of(error), _words(error), error)

    def reading(self) -> PluginsReading:
        """Return the state of all plugins, for metrics."""
        failures = [(name, kind, count) for (name, kind), count in self.failures.items()]
        return PluginsReading(list(self.plugins.values()), failures)


async def _over_in_time(before: HostedPlugin) -> None:
    """Wait until a plugin has ended; raise `_Late` if that takes too long."""
    with trio.move_on_after(START_S):
        await before.over.wait()
        return
    raise _Late(f"the plugin that had this name did not end within {START_S:g} s")


def _made(section: PluginSettings) -> Runnable:
    """Import a plugin and create its instance. Runs in a thread, because imports may take long."""
    assert section.plugin is not None
    plugin_class: Any = load_plugin(section.plugin)
    settings, findings = read_settings(plugin_class, section.settings)
    if findings:
        first = findings[0]
        where = format_path(first.path)
        raise PluginUnusable(f"{where} {first.problem}; {first.allowed}".rstrip("; "))
    made: Runnable = plugin_class(settings)
    return made


def cause_of(error: BaseException) -> BaseException:
    """Return the first exception inside nested exception groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _kind_of(error: BaseException) -> str:
    return "hung" if isinstance(cause_of(error), PluginHung) else "crashed"


def _words(error: BaseException) -> str:
    return HUNG if isinstance(error, PluginHung) else describe_exception(error)


def _last_lines(error: BaseException) -> list[str]:
    """Return the end of a traceback, or one line if the exception cannot be formatted."""
    try:
        lines = "".join(traceback.format_exception(error)).splitlines()
    except Exception:  # noqa: BLE001 - formatting may run code of the plugin
        lines = [describe_exception(error)]
    return lines[-MAX_TRACEBACK_LINES:]
