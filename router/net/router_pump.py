"""Pump of a router's connection: log and count its events, and authenticate the peer."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

import structlog
import trio

from router.amqp.constants import Condition
from router.amqp.performatives import Error
from router.core.addresses.access import provide
from router.core.links import cbs
from router.core.links.cbs import TokenAccepted, TokenNotAccepted
from router.engine import events, opening, sasl
from router.engine.connection import Connection
from router.engine.states import ConnectionState
from router.errors import AmqpError
from router.net.authentication import Authenticator, Login
from router.net.callouts import Attempt, CalloutFailed, time_left_s
from router.net.connection_counters import ConnectionCounters
from router.net.endpoint_names import endpoint_counted_host
from router.net.event_log import log_event
from router.net.failing import RecentTries
from router.net.own_logins import OwnLogin
from router.net.pump import Pump
from router.net.tls.channel import Security

if TYPE_CHECKING:
    from router.core.addresses.claims import VerifiedToken
    from router.net.authorization import Authorization
    from router.net.claims.verifier import LiveClaims
    from router.net.router_hub import RouterHub
    from router.net.tls.channel import TlsChannel
    from router.net.tls.profiles import ServerTls

log = structlog.get_logger("router.connection")
link_log = structlog.get_logger("router.link")
authentication_log = structlog.get_logger("router.authentication")

T = TypeVar("T")

# A long turn takes as long as this many steps of a connection that is not open yet.
LONG_TURN_STEPS: Final = 2

TOO_MANY_LOGINS = AmqpError(Condition.RESOURCE_LIMIT_EXCEEDED, "too many clients are logging in")


class RouterPump(Pump):
    """Pump of a connection that a router has accepted or opened."""

    def __init__(
        self,
        sock: socket.socket,
        connection: Connection,
        hub: RouterHub,
        authenticator: Authenticator | None,
        counters: ConnectionCounters | None = None,
        tls: TlsChannel | None = None,
        server_tls: ServerTls | None = None,
    ) -> None:
        super().__init__(sock, connection, hub, tls)
        self.server_tls = server_tls
        # authentication in progress
        self._login: Login | None = None
        # whether a plugin decides about it, and whether its failure has been counted
        self._is_plugin_login = False
        self._has_failed = False
        # whether it was closed because the router had too much to do, not because of its peer
        self.was_turned_away = False
        # the rights of the shared access key that the peer has logged in with, if it has
        self._token: VerifiedToken | None = None
        # asks a plugin whether the peer may open the connection, and attach its links
        self.authorization: Authorization | None = None
        self._own_login: OwnLogin | None = None
        # version, cipher and bits of its key, once TLS is in use
        self.security: Security | None = None
        self.authenticator = authenticator
        self.counters = counters
        # whether its frames are logged; None to follow the general setting
        self.logs_frames: bool | None = connection.settings.traced or None
        # the host that the peer is counted as (`fairness.counted_host`)
        self.counted_host = endpoint_counted_host(connection.name)
        ids = {"connection": self.number, "peer": connection.name}
        self.log = log.bind(**ids)
        self.link_log = link_log.bind(**ids)
        self.opened = trio.Event()
        # called with each event of the connection
        self.observer: Callable[[object], None] | None = None
        # the error with which the peer closed, if any
        self.close_error: Error | None = None
        # verifies the tokens that the peer puts at `$cbs`; None if it has no such node
        self.claims: LiveClaims | None = None
        self._core = hub.forwarder
        self._low_priority = hub.low_priority
        # the links and tokens that the peer asks for
        self._requests = RecentTries()
        hub.pump_changed(self)

    def event_received(self, event: object) -> None:
        """Log and count an event of the connection; if it is a SASL init, authenticate."""
        if self.counters is not None:
            self.counters.count(event)
        if self.observer is not None:
            self.observer(event)
        if isinstance(event, events.SaslInitReceived | events.SaslResponseReceived):
            assert self._nursery is not None
            self._nursery.start_soon(self._authenticate, event)
        elif isinstance(event, events.LOGIN_EVENTS):
            assert self._nursery is not None
            if self._own_login is None:
                self._own_login = OwnLogin(self)
            self._nursery.start_soon(self._own_login.step, event)
        elif isinstance(event, events.OpenReceived):
            self._open_received()
        elif isinstance(event, events.ConnectionOpened):
            self.opened.set()
            # the peer's container-id is known now, and a trace may select by it
            self.hub.pump_changed(self)
        elif isinstance(event, events.ConnectionClosed):
            self._is_over = True
            if event.by_peer:
                self.close_error = event.error
        self._count_request(event)
        if not self.connection.settings.is_own:
            log_event(self.log, self.link_log, event, self.connection.user)

    def _count_request(self, event: object) -> None:
        now = self.hub.turn.now
        if isinstance(event, events.LinkAttachReceived | TokenAccepted | TokenNotAccepted):
            self._requests.tried(now)
        if isinstance(event, events.LinkRefused | TokenNotAccepted):
            self._requests.failed(now)
            self._mostly_fails = self._requests.mostly_fail(now)

    async def _rest(self) -> None:
        """Rest if most of the peer's requests fail, and others are active."""
        low_priority = self._low_priority
        self._mostly_fails = self._requests.mostly_fail(self.hub.clock())
        if self._mostly_fails and low_priority.others_are_active():
            await low_priority.step(self.counted_host, LONG_TURN_STEPS, "requests", fails=True)

    def _tick(self) -> None:
        super()._tick()
        if self.claims is not None:
            node = cbs.node_of(self.connection)
            if node is not None:
                node.tick(self._core)

    def secured(self, channel: TlsChannel) -> None:
        """Note the peer's user, and what TLS has agreed on."""
        super().secured(channel)
        self.security = channel.security()
        if self.server_tls is not None:
            self.connection.external_user = self.server_tls.user_of(channel)
            self.connection.requested_host = channel.requested_host

    def _open_received(self) -> None:
        """Serve `$cbs` to a peer, and ask the authorization plugin about its open.

        The policy has decided already; its rules apply as well.
        """
        if self.connection.state != ConnectionState.OPEN_RCVD:
            # it has been refused
            return
        if self.claims is not None:
            cbs.serve(self.connection, self.claims, self._token)
            if self.connection.state != ConnectionState.OPEN_RCVD:
                # the key that the peer has logged in with is not for its tenant
                return
        if self.authorization is not None:
            # only here: few routers have such a plugin
            from router.net.link_authorization import LinkAuthorization

            assert self._nursery is not None
            access = provide(self.connection)
            access.asks = LinkAuthorization(
                self.authorization, self.hub, self._core, self._nursery
            ).ask
            opening.hold_open(self.connection)
            self._nursery.start_soon(self._authorize_open, self.authorization)

    async def _authenticate(
        self, event: events.SaslInitReceived | events.SaslResponseReceived
    ) -> None:
        """Take one step of the peer's authentication, in a thread if that takes time.

        The answer is a challenge or the SASL outcome.
        """
        connection = self.connection
        assert self.authenticator is not None
        host, failed = self.counted_host, self.authenticator.failed
        try:
            if isinstance(event, events.SaslInitReceived):
                failed.check(host)
                self._login = self._begin_login(self.authenticator, event)
                response = event.initial_response
            else:
                response = event.response
            login = self._login
            assert login is not None
            if self._is_plugin_login:
                step = await self._while_connected(partial(login.step, response))
            else:
                step = await login.step(response)
            is_failure = step is not None and step.fails and not self._has_failed
            if is_failure:
                self._has_failed = True
                await failed.delay(host)
        except trio.TooSlowError:
            self.was_turned_away = True
            self.hub.begin_turn()
            # No SASL outcome is sent: clients take any outcome but success for a wrong password,
            # even one that asks them to try again. After a lost connection they try again by
            # themselves.
            self.connection.close(TOO_MANY_LOGINS)
        except CalloutFailed as problem:
            self.hub.begin_turn()
            self._callout_failed(problem)
        else:
            self.hub.begin_turn()
            if is_failure:
                self._authentication_failed()
            if step is None:
                connection.end_of_input()
            elif step.challenge is not None:
                sasl.challenge(connection, step.challenge)
            else:
                accepted = step.user is not None
                sasl.outcome(connection, accepted, step.user, step.proof, step.groups)
                self._token = step.token
                self._login = None
        self.hub.finish_turn()
        self.read_again()

    def _begin_login(self, authenticator: Authenticator, event: events.SaslInitReceived) -> Login:
        """Return a login for a peer's SASL init, by the plugin or by the router itself."""
        connection = self.connection
        host, external_user = self.counted_host, connection.external_user
        plugin = authenticator.plugin
        self._is_plugin_login = authenticator.is_left_to_plugin(event.mechanism)
        if plugin is None or not self._is_plugin_login:
            hostname = event.hostname or connection.requested_host
            return authenticator.begin(event.mechanism, host, external_user, hostname)
        # only here: few routers have such a plugin
        from router.net.plugin_logins import PluginLogin

        attempt = Attempt(event.mechanism, b"", event.hostname, connection.name, external_user)
        left = self._time_left_s
        return PluginLogin(plugin, authenticator.callouts, host, attempt, left)

    def _time_left_s(self) -> float:
        return time_left_s(self.connection, self.hub.clock())

    def _authentication_failed(self) -> None:
        """Count and log that the peer has failed to authenticate."""
        if self.counters is not None:
            self.counters.unauthenticated += 1
        self._low_priority.failing_hosts.count_failed_login(self.counted_host)
        authentication_log.warning(
            "authentication failed",
            connection=self.number,
            peer=self.connection.name,
            mechanism=str(self.connection.mechanism),
        )

    def _callout_failed(self, problem: CalloutFailed) -> None:
        """End a login that a plugin could not decide; it is not counted as a failed one."""
        self.was_turned_away = True
        authentication_log.warning(
            "authentication callout failed",
            connection=self.number,
            peer=self.connection.name,
            mechanism=str(self.connection.mechanism),
            plugin=problem.plugin,
            reason=problem.reason,
        )
        sasl.fail(self.connection, problem.code, f"authentication is not possible: {problem}")
        self._login = None

    async def _while_connected(self, work: Callable[[], Awaitable[T]]) -> T | None:
        """Do work while nothing is read from the peer, and return its result.

        If the peer hangs up first, the work is cancelled, and None is returned. Raises
        CalloutFailed if the work does.
        """
        from router.net.hanging_up import until_hung_up

        answer: T | None = None
        failure: CalloutFailed | None = None
        async with trio.open_nursery() as nursery:

            async def watch() -> None:
                await until_hung_up(self.sock)
                nursery.cancel_scope.cancel()

            nursery.start_soon(watch)
            try:
                answer = await work()
            except CalloutFailed as failed:
                failure = failed
            nursery.cancel_scope.cancel()
        if failure is not None:
            raise failure
        return answer

    async def _authorize_open(self, authorization: Authorization) -> None:
        """Ask a plugin whether the peer may open the connection, and answer its open."""
        connection = self.connection

        async def ask() -> tuple[AmqpError | None]:
            left = self._time_left_s()
            return (await authorization.objection("open", "", connection, left),)

        answer = await self._while_connected(ask)
        self.hub.begin_turn()
        if answer is None:
            connection.end_of_input()
        elif answer[0] is None:
            opening.release_open(connection)
        elif connection.state == ConnectionState.OPEN_RCVD:
            opening.refuse(connection, answer[0])
        self.hub.finish_turn()
        self.read_again()
