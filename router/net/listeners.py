"""Listening sockets: each connection they accept gets a pump of its own."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterable
from typing import Any

import structlog
import trio

from router.config.model import ListenerSettings
from router.config.users import load_users
from router.engine.connection import Connection
from router.net.accepting import accept_connections
from router.net.authentication import Authenticator
from router.net.endpoints import endpoint_name, listener_settings
from router.net.exchange import Exchange
from router.net.pump import Pump

log = structlog.get_logger("router.listener")

BACKLOG = 1024
_FAMILIES = {"IPv4": socket.AF_INET, "IPv6": socket.AF_INET6, None: socket.AF_UNSPEC}


async def open_listeners(listener: ListenerSettings) -> list[trio.SocketListener]:
    """Bind the sockets of a listener, one for each address of its host.

    Raises `OSError`, naming the listener, where its host has no address or a port cannot be bound.
    """
    listeners: list[trio.SocketListener] = []
    place = f"{endpoint_name(listener.host, listener.port)} ({listener.name})"
    try:
        for kind, protocol, address in await _resolve(listener):
            sock = trio.socket.socket(kind, socket.SOCK_STREAM, protocol)
            listeners.append(trio.SocketListener(await _bound(sock, address)))
    except OSError as error:
        close_sockets(listeners)
        raise OSError(error.errno, f"{error.strerror}: {place}") from error
    except UnicodeError as error:
        # what the resolver makes of a name that no host can have
        raise OSError(errno.EINVAL, f"not a host name: {place}") from error
    except BaseException:
        close_sockets(listeners)
        raise
    return listeners


def close_sockets(listeners: Iterable[trio.SocketListener]) -> None:
    """Close listening sockets that nobody accepts from."""
    for listener in listeners:
        listener.socket.close()


async def _resolve(listener: ListenerSettings) -> list[tuple[int, int, Any]]:
    """Family, protocol and address of each socket to open, without repetitions."""
    found = await trio.socket.getaddrinfo(
        listener.host,
        listener.port,
        family=_FAMILIES[listener.socket_address_family],
        type=socket.SOCK_STREAM,
        flags=socket.AI_PASSIVE,
    )
    return list(dict.fromkeys((kind, protocol, address) for kind, _, protocol, _, address in found))


async def _bound(sock: trio.socket.SocketType, address: Any) -> trio.socket.SocketType:
    """The socket, listening on the address; closed where that fails."""
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if sock.family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        await sock.bind(address)
        sock.listen(BACKLOG)
    except BaseException:
        sock.close()
        raise
    return sock


class AmqpListener:
    """One configured listener, once it is bound."""

    def __init__(
        self,
        listener: ListenerSettings,
        sockets: list[trio.SocketListener],
        exchange: Exchange,
        container_id: str,
    ) -> None:
        self.listener = listener
        self.sockets = sockets
        self.exchange = exchange
        self.settings = listener_settings(container_id, listener)
        self.tally = exchange.add_tally(listener.name, "in", listener.role)
        users = None if listener.users_file is None else load_users(listener.users_file)
        self.authenticator = Authenticator(users)

    async def serve(self, connections: trio.Nursery) -> None:
        """Accept until cancelled; accepted connections live on in `connections`."""
        await accept_connections(self.listener.name, self.sockets, self._serve_one, connections)

    async def _serve_one(self, stream: trio.SocketStream) -> None:
        try:
            name = endpoint_name(*stream.socket.getpeername()[:2])
        except OSError:
            # reset before it was ever looked at
            log.debug("connection lost at once", listener=self.listener.name)
            return
        sock = socket.socket(fileno=stream.socket.detach())
        sock.setblocking(False)
        connection = Connection(
            self.settings, self.exchange.forwarder, self.exchange.turn, name, False
        )
        pump = Pump(sock, connection, self.exchange, self.authenticator, self.tally)
        pump.log.debug("connection accepted", listener=self.listener.name)
        await run_guarded(pump)


async def run_guarded(pump: Pump) -> None:
    """Run a connection so that a defect in how it is handled ends it and nothing else."""
    try:
        await pump.run()
    except* trio.Cancelled:
        raise
    except* Exception:
        # The one place where any exception is caught: one bad peer never disturbs another, not
        # even through a mistake of ours. It is logged whole, and the connection is gone.
        pump.log.exception("connection failed")
