"""Pump of a router's connection: log and count its events, and authenticate the peer."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

import structlog
import trio

from router.amqp.constants import Condition
from router.amqp.performatives import Error
from router.core.links import cbs
from router.engine import events, sasl
from router.engine.connection import Connection
from router.errors import AmqpError
from router.net.authentication import Authenticator, Login
from router.net.connection_counters import ConnectionCounters
from router.net.endpoints import endpoint_host
from router.net.event_log import log_event
from router.net.pump import Pump
from router.net.tls.channel import Security

if TYPE_CHECKING:
    from router.net.claims.verifier import LiveClaims
    from router.net.router_hub import RouterHub
    from router.net.scram import ScramClientLogin
    from router.net.tls.channel import TlsChannel
    from router.net.tls.profiles import ServerTls

log = structlog.get_logger("router.connection")
link_log = structlog.get_logger("router.link")
authentication_log = structlog.get_logger("router.authentication")

TOO_MANY_LOGINS = AmqpError(Condition.RESOURCE_LIMIT_EXCEEDED, "too many clients are logging in")

SERVER_NOT_PROVED = AmqpError(
    Condition.UNAUTHORIZED_ACCESS,
    "the server did not prove that it knows the user, or its messages are not those of SCRAM",
)

LoginEvent = events.SaslInitDue | events.SaslChallengeReceived | events.SaslSuccessReceived
"""Events of a login by SCRAM at a server."""
LOGIN_EVENTS = (events.SaslInitDue, events.SaslChallengeReceived, events.SaslSuccessReceived)


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
        self._own_login: ScramClientLogin | None = None
        # version, cipher and bits of its key, once TLS is in use
        self.security: Security | None = None
        self.authenticator = authenticator
        self.counters = counters
        # whether its frames are logged; None to follow the general setting
        self.logs_frames: bool | None = connection.settings.traced or None
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
        elif isinstance(event, LOGIN_EVENTS):
            assert self._nursery is not None
            self._nursery.start_soon(self._log_in, event)
        elif isinstance(event, events.OpenReceived) and self.claims is not None:
            # after the policy, whose rules apply as well
            cbs.serve(self.connection, self.claims)
        elif isinstance(event, events.ConnectionOpened):
            self.opened.set()
            # the peer's container-id is known now, and a trace may select by it
            self.hub.pump_changed(self)
        elif isinstance(event, events.ConnectionClosed):
            self._is_over = True
            if event.by_peer:
                self.close_error = event.error
        if not self.connection.settings.is_own:
            log_event(self.log, self.link_log, event, self.connection.user)

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

    async def _authenticate(
        self, event: events.SaslInitReceived | events.SaslResponseReceived
    ) -> None:
        """Take one step of the peer's authentication, in a thread if that takes time.

        The answer is a challenge or the SASL outcome.
        """
        connection = self.connection
        mechanism = str(connection.mechanism)
        assert self.authenticator is not None
        host, failed = endpoint_host(connection.name), self.authenticator.failed
        try:
            if isinstance(event, events.SaslInitReceived):
                failed.check(host)
                self._login = self.authenticator.begin(mechanism, host, connection.external_user)
                response = event.initial_response
            else:
                response = event.response
            assert self._login is not None
            step = await self._login.step(response)
            if step.challenge is None and step.user is None:
                await failed.delay(host)
        except trio.TooSlowError:
            self.hub.begin_turn()
            # No SASL outcome is sent: clients take any outcome but success for a wrong password,
            # even one that asks them to try again. After a lost connection they try again by
            # themselves.
            self.connection.close(TOO_MANY_LOGINS)
        else:
            self.hub.begin_turn()
            if step.challenge is None and step.user is None:
                if self.counters is not None:
                    self.counters.unauthenticated += 1
                peer = connection.name
                authentication_log.warning(
                    "authentication failed",
                    connection=self.number,
                    peer=peer,
                    mechanism=mechanism,
                )
            if step.challenge is not None:
                sasl.challenge(connection, step.challenge)
            else:
                sasl.outcome(connection, step.user is not None, step.user, step.proof)
                self._login = None
        self.hub.finish_turn()
        self.read_again()

    async def _log_in(self, event: LoginEvent) -> None:
        """Take one step of a login by SCRAM at a server; its hashes are computed in a thread."""
        from router.net.scram import LoginRefused, ScramClientLogin

        connection = self.connection
        settings = connection.settings
        try:
            if isinstance(event, events.SaslInitDue):
                user, password = settings.sasl_username or "", settings.sasl_password or ""
                self._own_login = ScramClientLogin(event.mechanism, user, password)
                response = self._own_login.first()
                self.hub.begin_turn()
                sasl.send_init(connection, response)
            elif isinstance(event, events.SaslChallengeReceived):
                assert self._own_login is not None
                response = await trio.to_thread.run_sync(self._own_login.answer, event.challenge)
                self.hub.begin_turn()
                sasl.respond(connection, response)
            else:
                assert self._own_login is not None
                self._own_login.check(event.proof)
                self._own_login = None
                self.hub.begin_turn()
                sasl.proceed(connection)
        except LoginRefused:
            self.hub.begin_turn()
            connection.close(SERVER_NOT_PROVED)
        self.hub.finish_turn()
        self.read_again()
