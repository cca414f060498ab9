"""Ask plugins about peers, with a limit of time and number; a plugin that fails allows nothing.

A call runs in the task of the peer's connection, and is cancelled when the peer goes or the plugin
is stopped. What a plugin raises ends only the call. Its text is not logged, because it may hold a
password.
"""

from __future__ import annotations

import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, Protocol

import structlog
import trio

from router.amqp.constants import SaslCode
from router.engine.connection import Connection
from router.errors import PluginHung
from router.hosting.host import EXECUTED, HostedPlugin, cause_of
from router.hosting.translation import connection_info
from router.net.callouts import Attempt, CalloutFailed, Known
from router.plugin import AccessRequest, Identity, Login

log = structlog.get_logger("router.plugin")

# Limits for an Identity that a plugin returns.
LONGEST_NAME: Final = 1024
MAX_GROUPS: Final = 1000


class Hosts(Protocol):
    """Host of plugins, of which their states are read."""

    def state_of(self, name: str) -> HostedPlugin | None:
        """Return the state of a plugin; None if no plugin has this name."""


class PluginCallouts:
    """Callouts to the plugins of a host; implements `router.net.callouts.Callouts`."""

    def __init__(self, hosts: Hosts) -> None:
        self._hosts = hosts

    def mechanisms(self, plugin: str) -> frozenset[str] | None:
        """Return the SASL mechanisms that a plugin handles; None if that is not known yet."""
        hosted = self._hosts.state_of(plugin)
        return None if hosted is None else _mechanisms(hosted)

    async def authenticate(
        self, plugin: str, host: str, attempt: Attempt, limit_s: float
    ) -> Known | None:
        """Return whom a plugin recognizes, or None if it refuses the peer.

        Raises CalloutFailed if the plugin does not run, fails, or says nothing in time.
        """
        login = Login(
            attempt.mechanism,
            attempt.response,
            attempt.hostname,
            attempt.peer,
            attempt.external_user,
        )

        def accepted(hosted: HostedPlugin) -> None:
            if attempt.mechanism not in (_mechanisms(hosted) or ()):
                reason = f"it does not handle {attempt.mechanism}"
                raise CalloutFailed(SaslCode.SYS_TEMP, plugin, reason)

        found = await self._call(plugin, host, limit_s, "authenticate", login, accepted)
        if found is None:
            return None
        known = _known(found)
        if known is None:
            raise CalloutFailed(SaslCode.SYS, plugin, "it returned no usable Identity")
        return known

    async def authorize(
        self, plugin: str, host: str, action: str, address: str, peer: Connection, limit_s: float
    ) -> bool:
        """Return whether a plugin allows an action (`open`, `send` or `receive`).

        Raises CalloutFailed if the plugin does not run, fails, or says nothing in time.
        """
        request = AccessRequest(action, address, peer.user, peer.groups, connection_info(peer))
        answer = await self._call(plugin, host, limit_s, "authorize", request)
        if not isinstance(answer, bool):
            raise CalloutFailed(SaslCode.SYS, plugin, "it returned neither True nor False")
        return answer

    async def _call(
        self,
        plugin: str,
        host: str,
        limit_s: float,
        method: str,
        argument: object,
        check: Callable[[HostedPlugin], None] = lambda _: None,
    ) -> object:
        """Return the answer of a plugin's method, once it is the host's turn."""
        with trio.move_on_after(limit_s):
            hosted = await self._running(plugin)
            check(hosted)
            async with hosted.turns.slot(host):
                return await self._ask(hosted, method, argument)
        reason = f"no answer within {limit_s:.3g} s"
        raise CalloutFailed(SaslCode.SYS_TEMP, plugin, reason)

    async def _running(self, plugin: str) -> HostedPlugin:
        """Wait until a plugin is set up, and return it; raise CalloutFailed if it does not run."""
        hosted = self._hosts.state_of(plugin)
        if hosted is None:
            raise CalloutFailed(SaslCode.SYS_PERM, plugin, "it is not in the configuration")
        await hosted.is_settled.wait()
        if not hosted.is_running:
            raise self._stopped(hosted)
        return hosted

    def _stopped(self, hosted: HostedPlugin) -> CalloutFailed:
        """Return the failure of a call of a plugin that has stopped, for a while or for good."""
        current = self._hosts.state_of(hosted.name)
        is_replaced = current is not None and current is not hosted and current.is_alive
        code = SaslCode.SYS_TEMP if is_replaced else SaslCode.SYS_PERM
        return CalloutFailed(code, hosted.name, f"it is {hosted.status}")

    async def _ask(self, hosted: HostedPlugin, method: str, argument: object) -> object:
        """Call a plugin's method; raise CalloutFailed if it raises anything, or is stopped."""
        if not hosted.is_running:
            # stopped while it was the turn of others
            raise self._stopped(hosted)
        call: Callable[[object], Awaitable[object]] | None
        call = getattr(hosted.instance, method, None)
        if call is None:
            raise CalloutFailed(SaslCode.SYS_PERM, hosted.name, f"it has no method {method}")
        answer: object = None
        problem: BaseException | None = None
        # for the watchdog, which stops the plugin that the current task belongs to
        before = EXECUTED.set(hosted)
        scope = trio.CancelScope()
        hosted.calls.add(scope)
        try:
            with scope:
                answer = await call(argument)
        except* (trio.Cancelled, KeyboardInterrupt):
            raise
        except* BaseException as group:  # noqa: BLE001 - a plugin may raise anything
            problem = cause_of(group)
        finally:
            hosted.calls.discard(scope)
            EXECUTED.reset(before)
        if problem is not None:
            raise _raised(hosted.name, method, problem)
        if scope.cancelled_caught:
            raise self._stopped(hosted)
        return answer


def _mechanisms(hosted: HostedPlugin) -> frozenset[str] | None:
    """Return the mechanisms that a plugin declares, or None if it has not been made yet."""
    if hosted.instance is None:
        return None
    try:
        found = getattr(hosted.instance, "mechanisms", ())
    except Exception:  # noqa: BLE001 - a property may raise anything
        return frozenset()
    if not isinstance(found, (tuple, list, set, frozenset)):
        return frozenset()
    return frozenset(each for each in found if isinstance(each, str))


def _raised(plugin: str, method: str, problem: BaseException) -> CalloutFailed:
    """Return the failure of a call that has raised an exception, and log it without its text."""
    name = type(problem).__name__
    log.error("plugin call failed", plugin=plugin, call=method, exception=name, at=_place(problem))
    is_hung = isinstance(problem, PluginHung)
    reason = "it blocked the event loop" if is_hung else f"it raised {name}"
    return CalloutFailed(SaslCode.SYS, plugin, reason)


def _place(problem: BaseException) -> str:
    """Return file and line of the code that has raised an exception."""
    frames = traceback.extract_tb(problem.__traceback__)
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""


def _known(found: object) -> Known | None:
    """Return the user that a plugin's answer names, or None if it is not a valid Identity."""
    if not isinstance(found, Identity):
        return None
    groups: object = found.groups
    if not _is_name(found.user) or not isinstance(groups, (frozenset, set, tuple, list)):
        return None
    if len(groups) > MAX_GROUPS or not all(_is_name(each) for each in groups):
        return None
    return Known(found.user, frozenset(groups))


def _is_name(name: object) -> bool:
    return isinstance(name, str) and 0 < len(name) <= LONGEST_NAME
