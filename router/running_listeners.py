"""Running listeners, and the sockets that a new listener takes over from an ending one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import attrs
import structlog
import trio

from router.config.listeners import ListenerSettings
from router.config.users import Users
from router.net.listeners import AmqpListener, AmqpPort, close_sockets, read_users
from router.net.tls.profiles import ServerTls

if TYPE_CHECKING:
    from router.metrics.http import HttpListener
    from router.net.websockets.server import WebSocketPort

log = structlog.get_logger("router.listener")


@attrs.frozen
class ListenerAddresses:
    """Listener and the addresses at which it can be reached."""

    listener: ListenerSettings
    addresses: tuple[tuple[str, int], ...]


@attrs.define(eq=False)
class RunningListener:
    """Bound listener, with the means to stop it."""

    settings: ListenerSettings
    sockets: list[trio.SocketListener]
    server: AmqpListener | HttpListener
    tls: ServerTls | None = None
    # AMQP at an HTTP listener
    web_sockets: WebSocketPort | None = None
    # why changed files of its certificates cannot be used
    unusable: str = ""
    scope: trio.CancelScope = attrs.Factory(trio.CancelScope)
    # stops an HTTP server, which finishes responses under way
    stop: trio.Event = attrs.Factory(trio.Event)

    @property
    def place(self) -> tuple[str, int, str | None]:
        """Return the configured host, port and address family."""
        listener = self.settings
        return listener.host.lower(), listener.port, listener.socket_address_family

    @property
    def amqp(self) -> AmqpPort | None:
        """Return the server of AMQP, over TCP or WebSockets; None if AMQP is not served."""
        return self.server if isinstance(self.server, AmqpListener) else self.web_sockets

    @property
    def listening(self) -> ListenerAddresses:
        """Return the listener with the addresses at which it can be reached."""
        bound = tuple(s.socket.getsockname()[:2] for s in self.sockets)
        return ListenerAddresses(self.settings, bound)

    def renew_tls(self, tls: ServerTls) -> None:
        """Use other certificates for new connections; existing connections continue."""
        self.tls = self.server.tls = tls
        if self.web_sockets is not None:
            self.web_sockets.tls = tls
        log.info("certificate renewed", listener=self.settings.name)

    def end(self) -> None:
        """Stop accepting connections; existing connections continue."""
        self.scope.cancel()
        self.stop.set()
        if self.amqp is not None:
            self.amqp.counters.is_removed = True


def handed_over(
    listener: ListenerSettings, givers: list[RunningListener]
) -> list[trio.SocketListener] | None:
    """Return socket copies from an ending listener at the same address as `listener`, or None.

    `givers` has the listeners that end. The one whose sockets are copied is removed from it.
    Returns None if no listener in `givers` qualifies.
    """
    place = (listener.host.lower(), listener.port, listener.socket_address_family)
    found = [each for each in givers if each.place == place]
    # with port 0 there may be several; only one with the same name qualifies
    found.sort(key=lambda each: each.settings.name != listener.name)
    if not found or (listener.port == 0 and found[0].settings.name != listener.name):
        return None
    givers.remove(found[0])
    copies: list[trio.SocketListener] = []
    try:
        copies.extend(trio.SocketListener(each.socket.dup()) for each in found[0].sockets)
    except BaseException:
        close_sockets(copies)
        raise
    return copies


def port_of(listener: trio.SocketListener) -> int:
    """Return the port that a socket is bound to."""
    port: int = listener.socket.getsockname()[1]
    return port


def reread(standing: RunningListener) -> Iterator[tuple[AmqpPort, Users]]:
    """Yield a listener with its new users if its users file has changed; otherwise nothing."""
    port = standing.amqp
    if port is not None:
        users = read_users(standing.settings)
        if users is not None and users != port.authenticator.users:
            yield port, users
