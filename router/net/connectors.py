"""Connectors: connections that the router opens, and opens again whenever they are lost."""

from __future__ import annotations

import random
import socket
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

import attrs
import structlog
import trio

from router.amqp.constants import Condition
from router.amqp.failover import FAILOVER_SERVER_LIST
from router.amqp.performatives import Open
from router.amqp.redirects import redirect_of
from router.config.connectors import ConnectorSettings
from router.config.proxy_profiles import ProxyProfileSettings
from router.config.secret import SecretUnavailable
from router.config.ssl_profiles import SslProfileSettings
from router.engine.connection import Connection
from router.engine.events import ConnectionClosed, ConnectionOpened, OpenRefused
from router.engine.failures import Failure, failure_of
from router.net.connector_status import ConnectorStatus
from router.net.dialling import NotConnected, connect_socket
from router.net.endpoint_names import endpoint_name
from router.net.endpoints import connector_settings
from router.net.listeners import run_guarded
from router.net.own_host import is_on_this_host
from router.net.places import Place, Places
from router.net.proxies import connect_through
from router.net.redirect_chain import RedirectChain
from router.net.router_hub import RouterHub
from router.net.router_pump import RouterPump
from router.net.shutdown import close_in_order
from router.net.tls.channel import TlsChannel
from router.net.tls.contexts import ProfileUnusable
from router.net.tls.profiles import ClientTls, renewed_client_tls

if TYPE_CHECKING:
    from router.net.websockets.client import OpenWebSocket

log = structlog.get_logger("router.connector")

FIRST_DELAY_S = 0.25
# A broker restart takes some seconds; afterwards clients wait no longer than this. Each attempt to
# reach a dead host costs a packet.
LONGEST_DELAY_S = 5.0
# How long a connection has to last to count as a success. If a server opens and then closes
# immediately, the delay grows as if it did not answer.
LASTING_CONNECTION_S = 10.0
# How long a peer whose open announces a refusal may take to close the connection.
REFUSAL_S = 5.0
# How many rejected entries of a failover list are logged, with a line for each.
MOST_LOGGED: Final = 5


def backoff_delays(uniform: Callable[[float, float], float] = random.uniform) -> Iterator[float]:
    """Yield the delay in seconds before each further attempt: doubling up to a limit, with jitter.

    The jitter is at most half of the delay. It keeps a hundred routers from reconnecting at the
    same moment to a broker that comes back. `uniform` returns a random number between its two
    arguments.
    """
    longest = FIRST_DELAY_S
    while True:
        yield uniform(longest / 2, longest)
        longest = min(LONGEST_DELAY_S, longest * 2)


def _channel(tls: ClientTls, hostname: str) -> TlsChannel:
    """Return the TLS layer of a connection to a host; raise `NotConnected` for an unusable name."""
    try:
        return tls.channel(hostname)
    except ValueError as error:
        reason = f"{hostname} cannot be used with TLS: {error}"
        raise NotConnected(Failure("unresolved", reason)) from None


class AmqpConnector:
    """Connector that keeps an AMQP connection open.

    If `only` is given, it replaces the hosts and ports in the configuration.
    """

    def __init__(
        self,
        connector: ConnectorSettings,
        hub: RouterHub,
        container_id: str,
        only: Place | None = None,
        profile: SslProfileSettings | None = None,
        proxy: ProxyProfileSettings | None = None,
    ) -> None:
        # TLS profile, and what was loaded from it for the last connection
        self.profile = profile
        self.proxy = proxy
        self._tls: ClientTls | None = None
        self.connector = connector
        self.hub = hub
        self.container_id = container_id
        self.places = Places(connector, only)
        self.counters = hub.add_counters(connector.name, "out", connector.role)
        self.status = ConnectorStatus(self.places.round, time.monotonic())
        if self.counters.status is not None:
            # a reconfigured connector keeps its counters
            self.status.counts = self.counters.status.counts
        self.counters.status = self.status
        self.log = log.bind(connector=connector.name)
        # the current connection, which may not be open yet
        self.pump: RouterPump | None = None
        # and what carries it, if that is a WebSocket
        self._web_socket: OpenWebSocket | None = None
        self._closed: ConnectionClosed | None = None
        self._is_refused = False
        # set once it is known whether the peer accepts the connection
        self._known = trio.Event()
        self._serving = trio.CancelScope()
        self._pause = trio.CancelScope()
        self._waits = backoff_delays()

    async def serve(self, connections: trio.Nursery) -> None:
        """Keep a connection open until cancelled or stopped.

        An open connection runs in `connections`, so it stays open if this call is cancelled.
        """
        with self._serving:
            await self._keep_connected(connections)

    def stop(self, why: str) -> None:
        """Stop connecting, and close the current connection gracefully for the reason `why`."""
        self._serving.cancel()
        self.counters.is_removed = True
        if self.counters.status is self.status:
            self.counters.status = None
        if self.pump is not None and self.pump.number in self.hub.pumps:
            close_in_order(self.hub, [self.pump], why)

    def renew(
        self,
        connector: ConnectorSettings,
        profile: SslProfileSettings | None,
        proxy: ProxyProfileSettings | None,
    ) -> None:
        """Use new settings for all later connections, and keep the current connection.

        If there is no connection, connect immediately: the new settings may have corrected a
        mistake.
        """
        if (connector, profile, proxy) == (self.connector, self.profile, self.proxy):
            return
        self.profile = profile
        self.proxy = proxy
        self._tls = None
        self.connector = connector
        self.places.renew(connector)
        self.status.places = self.places.round
        self._waits = backoff_delays()
        self._pause.cancel()

    def missing_reason(self) -> str | None:
        """Return why this connector keeps the router from being ready; None if it does not."""
        needed, status = self.connector.needed_for, self.status
        # `counters` also counts connections from before the connector was reconfigured
        if (
            needed == "nothing"
            or status.is_connected
            or (needed == "start" and self.counters.opened)
        ):
            return None
        why = f": {status.failure.reason}" if status.failure is not None else ""
        return f"connector {self.connector.name} is not connected{why}"

    async def _keep_connected(self, connections: trio.Nursery) -> None:
        while True:
            if await self._visit(connections):
                self._waits = backoff_delays()
                self.places.restart_round()
            before = self.places.here
            is_new = self.places.advance()
            place = self.places.here
            self.status.places = self.places.round
            self.status.counts.failovers += place != before
            # all hosts are tried before the back-off grows
            delay_s = next(backoff_delays() if is_new else self._waits)
            self.status.next_at = time.monotonic() + delay_s
            self.log.info("reconnecting", to=str(place), in_s=round(delay_s, 3))
            self._pause = trio.CancelScope()
            with self._pause:
                await trio.sleep(delay_s)

    async def _visit(self, connections: trio.Nursery) -> bool:
        """Connect to the current host, and follow redirects from there as far as allowed.

        Return after the first failure, with True if any of these connections was open for at least
        `LASTING_CONNECTION_S`.
        """
        trail = RedirectChain(self.connector, self.places.here)
        has_lasted = False
        while True:
            pump = await self._connect(trail.here, connections)
            if pump is None:
                return has_lasted
            began = trio.current_time()
            self.pump = pump
            await self._until_over(pump, connections)
            self.pump = None
            if pump.opened.is_set() and trio.current_time() - began >= LASTING_CONNECTION_S:
                has_lasted = True
                trail.restart()
            if not self._is_sent_on(trail, pump):
                was_open = pump.opened.is_set()
                failure = failure_of(self._closed, was_open, self._is_refused)
                self._failed(failure, pump.number)
                return has_lasted

    def _failed(self, failure: Failure, number: int | None = None) -> None:
        self.status.failed(time.monotonic(), failure, number)

    def _is_sent_on(self, trail: RedirectChain, pump: RouterPump) -> bool:
        """If the peer closed with an allowed redirect, append it to `trail` and return True."""
        error = pump.close_error
        if error is None or error.condition != Condition.CONNECTION_REDIRECT:
            return False
        redirect = redirect_of(error)
        assert redirect is not None
        reason = trail.follow(redirect)
        facts = {"connection": pump.number, "to": str(redirect)}
        if reason:
            self.counters.failed += 1
            self.log.warning("redirect not followed", **facts, reason=reason)
            return False
        self.counters.followed += 1
        self.status.ended(time.monotonic())
        self.log.info("following a redirect", **facts, hops=trail.hops)
        return True

    async def _connect(self, place: Place, connections: trio.Nursery) -> RouterPump | None:
        """Return the pump of a newly connected socket, or None if connecting failed."""
        name = endpoint_name(place.host, place.port)
        connector = self.connector
        self.status.attempt_started(place)
        try:
            tls = await self._load_tls()
            try:
                settings = connector_settings(
                    self.container_id,
                    connector,
                    place.hostname,
                    self.hub.membership,
                    has_certificate=tls is not None and tls.has_certificate,
                    port=place.port,
                )
            except SecretUnavailable as unavailable:
                raise NotConnected(Failure("unauthorized", str(unavailable))) from None
            channel = None if tls is None else _channel(tls, place.hostname)
            sock = await self._connect_socket(place)
            if self.proxy is None and is_on_this_host(sock):
                # nobody else can read what is sent; a proxy here may lead to anywhere
                settings = attrs.evolve(settings, plain_needs_tls=False)
            opened = self._web_socket = await self._open_web_socket(sock, place, tls, connections)
        except NotConnected as error:
            self.counters.failed += 1
            self._failed(error.failure)
            self.log.warning("connection failed", peer=name, reason=error.failure.reason)
            return None
        hub = self.hub
        connection = Connection(settings, hub.forwarder, hub.turn, name, True)
        self._closed, self._is_refused = None, False
        if opened is None:
            pump = RouterPump(sock, connection, hub, None, self.counters, channel)
        else:
            pump = RouterPump(opened.near, connection, hub, None, self.counters)
            pump.security = opened.security
            connection.is_encrypted = opened.security is not None
        pump.observer = self._heard
        return pump

    async def _connect_socket(self, place: Place) -> socket.socket:
        """Return a socket that is connected to a host, maybe through a proxy."""
        family = self.connector.protocol_family
        if self.proxy is not None:
            return await connect_through(self.proxy, place.host, place.port, family)
        return await connect_socket(place.host, place.port, family)

    async def _open_web_socket(
        self, sock: socket.socket, place: Place, tls: ClientTls | None, connections: trio.Nursery
    ) -> OpenWebSocket | None:
        """Return a WebSocket on a connected socket, or None if the connector uses none."""
        if place.path is None:
            return None
        # only here: the library takes time and memory
        from router.net.websockets.client import OpenWebSocket, Target, carry

        target = Target(place.hostname, place.port, place.path)
        opened = await connections.start(carry, sock, target, tls)
        assert isinstance(opened, OpenWebSocket)
        return opened

    async def _load_tls(self) -> ClientTls | None:
        """Return the TLS to connect with, loaded again if its files have changed.

        Raises `NotConnected` if the profile cannot be used.
        """
        if self.profile is None:
            return None
        try:
            self._tls = await trio.to_thread.run_sync(
                renewed_client_tls, self._tls, self.connector, self.profile
            )
        except ProfileUnusable as unusable:
            raise NotConnected(Failure("unauthorized", str(unusable))) from None
        return self._tls

    async def _until_over(self, pump: RouterPump, connections: trio.Nursery) -> None:
        """Run a connection, and wait until it has ended.

        The connection runs in the nursery `connections`, which outlives the connector, so that the
        connection can be closed gracefully on shutdown.
        """
        over = trio.Event()
        opened, self._web_socket = self._web_socket, None

        async def live() -> None:
            await (run_guarded(pump) if opened is None else opened.run(pump))
            self._known.set()
            over.set()

        self._known = trio.Event()
        connections.start_soon(live)
        await self._known.wait()
        if self._is_refused:
            with trio.move_on_after(REFUSAL_S):
                await over.wait()
            if not over.is_set():
                close_in_order(self.hub, [pump], "the peer refused the connection")
        await over.wait()

    # Events of the connection.

    def _heard(self, event: object) -> None:
        """Update the status after an event of the connection; read the peer's failover list."""
        if isinstance(event, ConnectionOpened):
            self._known.set()
            self._opened(event.remote_open)
        elif isinstance(event, OpenRefused):
            self._known.set()
            self._is_refused = True
        elif isinstance(event, ConnectionClosed):
            self._closed = event

    def _opened(self, remote: Open) -> None:
        pump = self.pump
        assert pump is not None
        properties = remote.properties or {}
        self.status.opened(time.monotonic(), str(remote.container_id), pump.number)
        if FAILOVER_SERVER_LIST in properties:
            self._learn(properties[FAILOVER_SERVER_LIST], pump.number)

    def _learn(self, value: object, number: int) -> None:
        """Replace the learnt hosts with those in a peer's failover-server-list, and log them."""
        try:
            learnt = self.places.learn(value)
        except ValueError as damaged:
            self.log.warning("failover list ignored", connection=number, reason=str(damaged))
            return
        self.status.places = self.places.round
        if learnt.places:
            places = " ".join(str(place) for place in learnt.places)
            self.log.info("failover list received", connection=number, places=places)
        for place, reason in learnt.left_out[:MOST_LOGGED]:
            self.log.warning("failover host ignored", connection=number, to=place, reason=reason)
        if learnt.damaged:
            self.log.warning(
                "unreadable entries in failover list", connection=number, entries=learnt.damaged
            )
