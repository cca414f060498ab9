"""Listeners and connectors of a running router, and their changes under traffic.

A change has two steps. `prepare` does everything that can fail, such as binding sockets and reading
files, without touching the running listeners and connectors. `commit` cannot fail and does not
wait, so no turn runs in the middle of it. Instead of `commit`, `discard` gives up a prepared
change, and leaves everything as it was.

A listener that replaces another one at the same address takes over the sockets of the other, so
connections that arrive meanwhile wait in the same listen queue
(docs/decisions/0038-changes-under-traffic.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING

import attrs
import structlog
import trio

from router.amqp.redirects import Redirect
from router.config.connectors import ConnectorSettings
from router.config.listeners import ListenerSettings
from router.config.model import Configuration
from router.config.proxy_profiles import ProxyProfileSettings
from router.config.ssl_profiles import SslProfileSettings
from router.config.users import Users
from router.engine.connection import Connection
from router.engine.sasl import largest_frame
from router.net.arrivals import accept_fairly
from router.net.claims.verifier import LoadedClaims, load_all, renew
from router.net.connectors import AmqpConnector
from router.net.listeners import (
    AmqpListener,
    AmqpPort,
    bind_sockets,
    close_sockets,
)
from router.net.redirect_chain import place_of, redirect_objection
from router.net.router_hub import RouterHub
from router.net.tls.contexts import ProfileUnusable
from router.net.tls.profiles import Expiries, ServerTls, expiries_of, renewed_server_tls
from router.running_listeners import RunningListener, handed_over, port_of, reread

if TYPE_CHECKING:
    from router.metrics.http import App, HttpListener
    from router.net.websockets.server import WebSocketPort

log = structlog.get_logger("router.connector")
tls_log = structlog.get_logger("router.listener")

# How often the files of certificates are checked for changes.
CERTIFICATE_CHECK_S = 10.0

# Attributes of a connector that cannot change without a new connection: its target, and how the
# router authenticates there.
_OF_CONNECTION = (
    *("host", "port", "role", "sasl_username", "sasl_mechanisms"),
    *("ssl_profile", "verify_hostname", "ssl_upgrade", "web_socket_path", "proxy_profile"),
)


@attrs.define
class Prepared:
    """Prepared change of the listeners and connectors, ready to replace the running ones."""

    listeners: dict[str, RunningListener] = attrs.Factory(dict)
    opened: list[RunningListener] = attrs.Factory(list)
    ended: list[RunningListener] = attrs.Factory(list)
    # listeners whose users file has changed
    reread: list[tuple[AmqpPort, Users]] = attrs.Factory(list)
    # listeners whose TLS has changed
    secured: list[tuple[RunningListener, ServerTls]] = attrs.Factory(list)
    profiles: Mapping[str, SslProfileSettings] = attrs.Factory(dict)
    expiries: Expiries = attrs.Factory(Expiries)
    proxies: Mapping[str, ProxyProfileSettings] = attrs.Factory(dict)
    claims: Mapping[str, LoadedClaims] = attrs.Factory(dict)
    connectors: tuple[ConnectorSettings, ...] = ()

    def discard(self) -> None:
        """Close the new sockets; running listeners and connectors stay as they are."""
        for standing in self.opened:
            close_sockets(standing.sockets)


class Endpoints:
    """Owner of a router's listeners and connectors.

    `make_app` returns the application that an HTTP listener serves.
    """

    def __init__(
        self,
        hub: RouterHub,
        container_id: str,
        make_app: Callable[[ListenerSettings], App],
    ) -> None:
        self._hub = hub
        self._container_id = container_id
        self._make_app = make_app
        self.listeners: dict[str, RunningListener] = {}
        self.profiles: Mapping[str, SslProfileSettings] = {}
        self.proxies: Mapping[str, ProxyProfileSettings] = {}
        self.connectors: dict[str, AmqpConnector] = {}
        # connectors for single links that a container has redirected, by name
        self.redirect_connectors: dict[str, AmqpConnector] = {}
        # nurseries for accepting and connecting, for serving HTTP, and for connections
        self._nurseries: tuple[trio.Nursery, trio.Nursery, trio.Nursery] | None = None
        self._is_stopping = False

    def start(
        self, accepting: trio.Nursery, serving: trio.Nursery, connections: trio.Nursery
    ) -> None:
        """Set the nurseries in which `commit` starts tasks.

        Listeners and connectors run in `accepting`, HTTP servers in `serving`, and AMQP connections
        in `connections`.
        """
        self._nurseries = accepting, serving, connections
        accepting.start_soon(self._watch_certificates)

    async def prepare(self, wanted: Configuration) -> Prepared:
        """Bind the sockets and read the files that a new configuration needs.

        Raises `OSError` if a socket cannot be bound,
        `router.config.mistakes.InvalidConfiguration` if a users file is invalid,
        `router.net.tls.contexts.ProfileUnusable` if a TLS profile is, and
        `router.net.claims.verifier.ClaimsUnusable` if keys of claims are.
        """
        prepared = Prepared(connectors=wanted.connectors)
        prepared.profiles = {str(each.name): each for each in wanted.ssl_profiles}
        prepared.proxies = {str(each.name): each for each in wanted.proxy_profiles}
        staying = {
            listener.name
            for listener in wanted.listeners
            if listener.name in self.listeners
            and self.listeners[listener.name].settings == listener
        }
        prepared.ended = [each for name, each in self.listeners.items() if name not in staying]
        givers = list(prepared.ended)
        try:
            for listener in wanted.listeners:
                if listener.name in staying:
                    standing = self.listeners[listener.name]
                    prepared.reread.extend(reread(standing))
                    tls = await _load_tls(standing.tls, listener, prepared.profiles)
                    if tls is not None and tls is not standing.tls:
                        prepared.secured.append((standing, tls))
                else:
                    tls = await _load_tls(None, listener, prepared.profiles)
                    standing = await self._open(listener, givers, tls)
                    prepared.opened.append(standing)
                prepared.listeners[listener.name] = standing
            if wanted.claims:
                prepared.claims = await trio.to_thread.run_sync(load_all, wanted)
            if prepared.profiles:
                prepared.expiries = await trio.to_thread.run_sync(expiries_of, wanted.ssl_profiles)
        except BaseException:
            prepared.discard()
            raise
        return prepared

    async def _open(
        self, listener: ListenerSettings, givers: list[RunningListener], tls: ServerTls | None
    ) -> RunningListener:
        sockets = handed_over(listener, givers)
        if sockets is None:
            beside = [s for each in givers for s in each.sockets if port_of(s) == listener.port]
            sockets = await bind_sockets(listener, beside)
        try:
            web_sockets = self._web_sockets(listener, tls)
            server = self._server(listener, sockets, tls, web_sockets)
            return RunningListener(listener, sockets, server, tls, web_sockets)
        except BaseException:
            close_sockets(sockets)
            raise

    def _server(
        self,
        listener: ListenerSettings,
        sockets: list[trio.SocketListener],
        tls: ServerTls | None,
        web_sockets: WebSocketPort | None,
    ) -> AmqpListener | HttpListener:
        if listener.http:
            # only here: a router without such a listener needs no HTTP server, nor its memory
            from router.metrics.http import HttpListener

            accept = partial(accept_fairly, listener.name, sockets, self._hub.low_priority)
            app = self._make_app(listener)
            return HttpListener(listener.name, accept, app, tls, web_sockets)
        return AmqpListener(listener, sockets, self._hub, self._container_id, tls)

    def _web_sockets(
        self, listener: ListenerSettings, tls: ServerTls | None
    ) -> WebSocketPort | None:
        if not listener.websockets:
            return None
        # only here: the library takes time and memory
        from router.net.websockets.server import WebSocketPort

        return WebSocketPort(listener, self._hub, self._container_id, tls)

    def commit(self, prepared: Prepared) -> None:
        """Replace running listeners and connectors with prepared ones; call this between turns."""
        sizes = [
            *(each.settings.max_frame_size for each in prepared.opened),
            *(connector.max_frame_size for connector in prepared.connectors),
            *(largest_frame(each.settings.sasl_mechanisms) for each in prepared.opened),
            *(largest_frame(connector.sasl_mechanisms) for connector in prepared.connectors),
        ]
        self._hub.provide_for(max(sizes, default=0))
        for standing in prepared.ended:
            standing.end()
        for standing in prepared.opened:
            self._begin(standing)
        for listener, users in prepared.reread:
            listener.admit(users)
        for standing, tls in prepared.secured:
            standing.renew_tls(tls)
        renew(self._hub.claims, prepared.claims)
        self.profiles = prepared.profiles
        self.proxies = prepared.proxies
        self._note(prepared.expiries)
        self.listeners = prepared.listeners
        self._connect(prepared.connectors)

    async def _watch_certificates(self) -> None:
        """Load certificates again whenever their files have changed, until cancelled."""
        while True:
            await trio.sleep(CERTIFICATE_CHECK_S)
            if self.profiles:
                await self.renew_certificates()

    async def renew_certificates(self) -> None:
        """Load certificates again if their files have changed; existing connections continue.

        If new files cannot be used, the old certificate stays in use, and the log says why.
        """
        profiles = self.profiles
        for standing in list(self.listeners.values()):
            before = standing.tls
            if before is None:
                continue
            name = standing.settings.name
            try:
                tls = await _load_tls(before, standing.settings, profiles)
            except ProfileUnusable as unusable:
                if standing.unusable != str(unusable):
                    standing.unusable = str(unusable)
                    tls_log.warning("certificate not renewed", listener=name, reason=str(unusable))
                continue
            standing.unusable = ""
            # another configuration may have come meanwhile
            if tls is not None and tls is not before and standing.tls is before:
                standing.renew_tls(tls)
        expiries = await trio.to_thread.run_sync(expiries_of, list(profiles.values()))
        if profiles is self.profiles:
            self._note(expiries)

    def _note(self, expiries: Expiries) -> None:
        """Show in metrics and management when certificates and revocation lists expire."""
        self._hub.certificate_expiries = expiries.certificates
        self._hub.crl_expiries = expiries.lists

    def _begin(self, standing: RunningListener) -> None:
        assert self._nurseries is not None
        accepting, serving, connections = self._nurseries
        server = standing.server
        if isinstance(server, AmqpListener):
            server.begin()
            accepting.start_soon(_serve, standing.scope, server, connections)
        else:
            if standing.web_sockets is not None:
                standing.web_sockets.begin()
                standing.web_sockets.start(connections)
            serving.start_soon(server.serve, standing.stop)

    def _connect(self, wanted: Iterable[ConnectorSettings]) -> None:
        assert self._nurseries is not None
        accepting, _, connections = self._nurseries
        before, self.connectors = self.connectors, {}
        ended = []
        for settings in wanted:
            connector = before.pop(settings.name, None)
            if connector is not None and _is_same_connection(connector.connector, settings):
                connector.renew(settings, self._profile_of(settings), self._proxy_of(settings))
            else:
                if connector is not None:
                    ended.append((connector, "the connector was reconfigured"))
                connector = AmqpConnector(
                    settings,
                    self._hub,
                    self._container_id,
                    profile=self._profile_of(settings),
                    proxy=self._proxy_of(settings),
                )
                accepting.start_soon(connector.serve, connections)
            self.connectors[settings.name] = connector
        ended.extend((connector, "the connector is removed") for connector in before.values())
        for connector, why in ended:
            connector.stop(why)
        # a reconfigured connector continues the counters of the previous one
        for connector in self.connectors.values():
            connector.counters.is_removed = False

    def _profile_of(self, connector: ConnectorSettings) -> SslProfileSettings | None:
        name = connector.ssl_profile
        return None if name is None else self.profiles[name]

    def _proxy_of(self, connector: ConnectorSettings) -> ProxyProfileSettings | None:
        name = connector.proxy_profile
        return None if name is None else self.proxies[name]

    # Redirected links (`router.control.redirected`).

    def follow(self, connection: Connection, redirect: Redirect, name: str) -> str:
        """Open and keep a connection to the target of a link redirect, under the given name.

        `connection` is the connection on which the redirect arrived. Returns why the redirect is
        not followed, as text for people, or an empty string if it is followed.
        """
        reason = self._follow(connection, redirect, name)
        facts = {"connection": connection.number, "to": str(redirect)}
        if reason:
            log.warning("link redirect not followed", **facts, reason=reason)
        else:
            log.info("following a link redirect", **facts, connector=name)
        return reason

    def _follow(self, connection: Connection, redirect: Redirect, name: str) -> str:
        for home in self.connectors.values():
            if home.pump is not None and home.pump.connection is connection:
                break
        else:
            return "its connection was not opened by a connector"
        if self._is_stopping:
            return "the router is shutting down"
        settings = home.connector
        place = place_of(settings, redirect)
        reason = redirect_objection(settings, home.places.here, redirect)
        if reason or place is None:
            return reason
        there = attrs.evolve(
            settings,
            name=name,
            host=place.host,
            port=place.port,
            backup_urls=(),
            failover_hosts=(),
            allow_redirect=False,
            redirect_hosts=(),
            needed_for="nothing",
        )
        connector = AmqpConnector(
            there, self._hub, self._container_id, place, home.profile, home.proxy
        )
        self.redirect_connectors[name] = connector
        assert self._nurseries is not None
        accepting, _, connections = self._nurseries
        accepting.start_soon(connector.serve, connections)
        return ""

    def leave(self, name: str) -> None:
        """End the connection that `follow` keeps under this name, after the current turn."""
        connector = self.redirect_connectors.pop(name, None)
        if connector is not None and not self._is_stopping and self._nurseries is not None:
            self._nurseries[0].start_soon(_stop, connector)

    def stop(self) -> None:
        """Follow no more redirects, because the router shuts down.

        The caller stops the connectors, and `router.net.shutdown` closes the connections.
        """
        self._is_stopping = True

    def close_http(self) -> None:
        """Stop accepting HTTP requests; responses under way are finished."""
        for standing in self.listeners.values():
            standing.stop.set()


async def _load_tls(
    before: ServerTls | None,
    listener: ListenerSettings,
    profiles: Mapping[str, SslProfileSettings],
) -> ServerTls | None:
    """Return the TLS of a listener, which is `before` if nothing has changed."""
    if listener.ssl_profile is None:
        return None
    return await trio.to_thread.run_sync(renewed_server_tls, before, listener, profiles)


async def _stop(connector: AmqpConnector) -> None:
    connector.stop("its redirected link has ended")


async def _serve(
    scope: trio.CancelScope, listener: AmqpListener, connections: trio.Nursery
) -> None:
    with scope:
        await listener.serve(connections)


def _is_same_connection(one: ConnectorSettings, other: ConnectorSettings) -> bool:
    return all(getattr(one, name) == getattr(other, name) for name in _OF_CONNECTION)
