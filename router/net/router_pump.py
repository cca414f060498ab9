"""Pump of a router's connection: log and count its events, and authenticate the peer."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

import structlog
import trio

from router.amqp.constants import Condition
from router.amqp.performatives import Error
from router.engine import events
from router.engine.connection import Connection
from router.errors import AmqpError
from router.net.authentication import Authenticator
from router.net.connection_counters import ConnectionCounters
from router.net.endpoints import endpoint_host
from router.net.event_log import log_event
from router.net.pump import Pump
from router.net.tls.channel import Security

if TYPE_CHECKING:
    from router.net.router_hub import RouterHub
    from router.net.tls.channel import TlsChannel
    from router.net.tls.profiles import ServerTls

log = structlog.get_logger("router.connection")
link_log = structlog.get_logger("router.link")
authentication_log = structlog.get_logger("router.authentication")

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
        hub.pump_changed(self)

    def event_received(self, event: object) -> None:
        """Log and count an event of the connection; if it is a SASL init, authenticate."""
        if self.counters is not None:
            self.counters.count(event)
        if self.observer is not None:
            self.observer(event)
        if isinstance(event, events.SaslInitReceived):
            assert self._nursery is not None
            self._nursery.start_soon(self._authenticate, event)
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

    def secured(self, channel: TlsChannel) -> None:
        """Note the peer's user, and what TLS has agreed on."""
        super().secured(channel)
        self.security = channel.security()
        if self.server_tls is not None:
            self.connection.external_user = self.server_tls.user_of(channel)

    async def _authenticate(self, event: events.SaslInitReceived) -> None:
        """Authenticate the peer, in a thread if that takes time, and send the SASL outcome."""
        assert self.authenticator is not None
        host = endpoint_host(self.connection.name)
        mechanism = event.mechanism
        try:
            user = await self.authenticator.authenticate(
                mechanism, event.initial_response, host, self.connection.external_user
            )
        except trio.TooSlowError:
            self.hub.begin_turn()
            # No SASL outcome is sent: clients take any outcome but success for a wrong password,
            # even one that asks them to try again. After a lost connection they try again by
            # themselves.
            self.connection.close(TOO_MANY_LOGINS)
        else:
            self.hub.begin_turn()
            if user is None:
                if self.counters is not None:
                    self.counters.unauthenticated += 1
                peer = self.connection.name
                authentication_log.warning(
                    "authentication failed",
                    connection=self.number,
                    peer=peer,
                    mechanism=mechanism,
                )
            self.connection.sasl_outcome(user is not None, user)
        self.hub.finish_turn()
        self.read_again()
