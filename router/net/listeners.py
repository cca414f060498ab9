"""Listeners: bind sockets, and serve each accepted connection with a pump of its own."""

from __future__ import annotations

import errno
import socket
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING

import attrs
import structlog
import trio

from router.config.listeners import ListenerSettings
from router.config.users import Users, load_users
from router.core.addresses.management_access import is_loopback
from router.engine.connection import Connection
from router.net.accepting import accept_connections
from router.net.authentication import Authenticator
from router.net.connection_counters import ConnectionCounters
from router.net.dialling import SocketAddress
from router.net.endpoint_names import endpoint_counted_host, endpoint_name
from router.net.endpoints import listener_settings
from router.net.router_hub import RouterHub
from router.net.router_pump import RouterPump
from router.net.tls.profiles import ServerTls
from router.net.unopened import UnopenedConnections

if TYPE_CHECKING:
    from router.net.authorization import Authorization
    from router.net.claims.verifier import LiveClaims

log = structlog.get_logger("router.listener")

BACKLOG = 1024
_FAMILIES = {"IPv4": socket.AF_INET, "IPv6": socket.AF_INET6, None: socket.AF_UNSPEC}


async def bind_sockets(
    listener: ListenerSettings, beside: Iterable[trio.SocketListener] = ()
) -> list[trio.SocketListener]:
    """Bind the sockets of a listener, one for each address of its host.

    `beside` are listening sockets of this process that are about to be closed. A new socket may be
    bound to the same address as one of them, so that there is always a listening socket.

    Raises `OSError`, naming the listener, if its host has no address or a port cannot be bound.
    """
    old = list(beside)
    for each in old:
        each.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        return await _open_listeners(listener, is_shared=bool(old))
    finally:
        for each in old:
            each.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 0)


async def _open_listeners(listener: ListenerSettings, is_shared: bool) -> list[trio.SocketListener]:
    listeners: list[trio.SocketListener] = []
    place = f"{endpoint_name(listener.host, listener.port)} ({listener.name})"
    try:
        for kind, protocol, address in await _resolve(listener):
            sock = trio.socket.socket(kind, socket.SOCK_STREAM, protocol)
            listeners.append(trio.SocketListener(await _bound(sock, address, is_shared)))
    except OSError as error:
        close_sockets(listeners)
        raise OSError(error.errno, f"{error.strerror}: {place}") from error
    except UnicodeError as error:
        # raised by the resolver for a name that is not a valid host name
        raise OSError(errno.EINVAL, f"not a host name: {place}") from error
    except BaseException:
        close_sockets(listeners)
        raise
    return listeners


def close_sockets(listeners: Iterable[trio.SocketListener]) -> None:
    """Close listening sockets that no task accepts connections on."""
    for listener in listeners:
        listener.socket.close()


async def _resolve(listener: ListenerSettings) -> list[tuple[int, int, SocketAddress]]:
    """Return the family, protocol and address of each socket to open, without duplicates."""
    found = await trio.socket.getaddrinfo(
        listener.host,
        listener.port,
        family=_FAMILIES[listener.socket_address_family],
        type=socket.SOCK_STREAM,
        flags=socket.AI_PASSIVE,
    )
    return list(dict.fromkeys((kind, protocol, address) for kind, _, protocol, _, address in found))


async def _bound(
    sock: trio.socket.SocketType, address: SocketAddress, is_shared: bool
) -> trio.socket.SocketType:
    """Bind a socket to an address, listen, and return the socket; close it on failure."""
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if is_shared:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if sock.family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        await sock.bind(address)
        sock.listen(BACKLOG)
        # with this option, another process of this user could take our connections
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 0)
    except BaseException:
        sock.close()
        raise
    return sock


def read_users(listener: ListenerSettings) -> Users | None:
    """Return the users that a listener admits by password, or None without a users file.

    Raises `router.config.mistakes.InvalidConfiguration` if the users file has mistakes.
    """
    return None if listener.users_file is None else load_users(listener.users_file)


class AmqpPort:
    """Rules and users of an AMQP listener, and its connections that are not open yet."""

    def __init__(
        self,
        listener: ListenerSettings,
        hub: RouterHub,
        container_id: str,
        tls: ServerTls | None = None,
    ) -> None:
        # replaced when its files change
        self.tls = tls
        self.listener = listener
        self.hub = hub
        self.settings = listener_settings(container_id, listener, hub.membership)
        # for peers on this host: nobody else can read what they send
        self.local_settings = attrs.evolve(self.settings, plain_needs_tls=False)
        self.counters = ConnectionCounters(listener.name, "in", listener.role)
        self.authenticator = self._authenticating(read_users(listener))
        self.authorization: Authorization | None = None
        if listener.authorization_plugin is not None:
            # only here: few routers have such a plugin
            from router.net.authorization import Authorization

            self.authorization = Authorization(listener.authorization_plugin, hub.callouts)
        self.unopened = UnopenedConnections(hub.low_priority.failing_hosts)

    @property
    def claims(self) -> LiveClaims | None:
        """Return the verifier of its peers' security tokens, or None if it takes none."""
        name = self.listener.claims
        return None if name is None else self.hub.claims.get(name)

    def _authenticating(self, users: Users | None) -> Authenticator:
        plugin, callouts = self.listener.authentication_plugin, self.hub.callouts
        return Authenticator(
            users, plugin, callouts, lambda: self.claims, self.hub.low_priority.is_slowed
        )

    def admit(self, users: Users) -> None:
        """Admit other users from now on; existing connections continue."""
        self.authenticator = self._authenticating(users)

    def begin(self) -> None:
        """Continue the counters of a previous listener with this name, if there was one."""
        self.counters = self.hub.add_counters(self.counters.name, "in", self.counters.role)

    def new_connection(self, name: str, is_of_web_page: bool = False) -> Connection:
        """Return the engine's side of a new connection to the peer `name`.

        A web page in a browser on this host is not trusted just for that.
        """
        settings = self.local_settings if is_loopback(name) else self.settings
        if is_of_web_page:
            settings = attrs.evolve(settings, trusts_loopback=False)
        if self.authenticator.plugin is not None or self.listener.claims is not None:
            offered = self.authenticator.offered(settings.sasl_mechanisms)
            settings = attrs.evolve(settings, sasl_mechanisms=offered)
        return Connection(settings, self.hub.forwarder, self.hub.turn, name, False)

    async def serve_connection(
        self, pump: RouterPump, run: Callable[[RouterPump], Awaitable[object]]
    ) -> None:
        """Apply this port's rules to a new connection, and let `run` serve it until it ends."""
        pump.authorization = self.authorization
        pump.claims = self.claims
        pump.log.debug("connection accepted", listener=self.listener.name)
        self.unopened.watch(pump)
        try:
            await run(pump)
        finally:
            self.unopened.ended(pump)


class AmqpListener(AmqpPort):
    """AMQP listener whose sockets are bound."""

    def __init__(
        self,
        listener: ListenerSettings,
        sockets: list[trio.SocketListener],
        hub: RouterHub,
        container_id: str,
        tls: ServerTls | None = None,
    ) -> None:
        super().__init__(listener, hub, container_id, tls)
        self.sockets = sockets

    async def serve(self, connections: trio.Nursery) -> None:
        """Accept connections until cancelled.

        Accepted connections run in `connections`, and stay open when this call is cancelled.
        """
        await accept_connections(
            self.listener.name,
            self.sockets,
            self._serve_one,
            connections,
            self.unopened.make_room,
            self.hub.low_priority,
        )

    async def _serve_one(self, stream: trio.SocketStream) -> None:
        try:
            name = endpoint_name(*stream.socket.getpeername()[:2])
        except OSError:
            # reset before it was served
            log.debug("connection lost before it was served", listener=self.listener.name)
            return
        await self.hub.low_priority.begin(endpoint_counted_host(name))
        sock = socket.socket(fileno=stream.socket.detach())
        sock.setblocking(False)
        tls = self.tls
        pump = RouterPump(
            sock,
            self.new_connection(name),
            self.hub,
            self.authenticator,
            self.counters,
            None if tls is None else tls.channel(),
            tls,
        )
        await self.serve_connection(pump, run_guarded)


async def run_guarded(pump: RouterPump) -> None:
    """Run a connection; log an unexpected exception, which then ends only this connection."""
    try:
        await pump.run()
    except* trio.Cancelled:
        raise
    except* Exception:
        # The only place where any exception is caught: a bad peer never disturbs another one, not
        # even through a defect of ours. It is logged with its traceback, and the connection is
        # gone.
        pump.log.exception("connection failed")
