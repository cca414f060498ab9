"""Server of AMQP over WebSockets, which gets its upgrade requests from an HTTP listener."""

from __future__ import annotations

import math
import re
import socket
from functools import partial
from typing import Final

import structlog
import trio
from trio_websocket import ConnectionClosed, WebSocketRequest

from router.config.listeners import ListenerSettings
from router.engine.connection import Connection
from router.net.accepting import are_descriptors_short
from router.net.endpoint_names import endpoint_counted_host, endpoint_name
from router.net.listeners import AmqpPort
from router.net.router_hub import RouterHub
from router.net.router_pump import RouterPump
from router.net.tls.channel import Security
from router.net.tls.profiles import ServerTls
from router.net.tls.streams import stream_below_tls
from router.net.websockets.bridge import run_over, socket_pair
from router.net.websockets.origins import origin_objection
from router.net.websockets.requests import request_objection
from router.net.websockets.subprotocols import ALLOWED, choose
from router.net.websockets.waiting import WaitingRequests
from router.net.websockets.websocket import (
    HandshakeStream,
    OctetStream,
    WebSocket,
    server_web_socket,
)

log = structlog.get_logger("router.listener")

# How long a client may take to read the answer to its request.
ANSWER_S: Final = 5.0
# Answering a request costs as much as this many ordinary steps; what follows from octets that are
# received, or from their end, costs as much as these.
WEB_SOCKET_STEPS: Final = 8
READ_STEPS: Final = 4
# Each host has queues for these steps, so that a crowd of requests delays neither other connections
# of the host nor WebSockets that are open already.
QUEUE: Final = "WebSocket requests"
READS: Final = "WebSockets"
# How long a client may take to close a connection whose request is refused.
LINGER_S: Final = 1.0
_HOST: Final = re.compile(rb"\nhost[ \t]*:([^\r\n]*)", re.IGNORECASE)
_UNAVAILABLE: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
)


class WebSocketPort(AmqpPort):
    """AMQP over WebSockets at an HTTP listener.

    Connections run in the nursery that `start` gets, so they stay open when the listener ends.
    """

    def __init__(
        self,
        listener: ListenerSettings,
        hub: RouterHub,
        container_id: str,
        tls: ServerTls | None = None,
    ) -> None:
        super().__init__(listener, hub, container_id, tls)
        self._connections: trio.Nursery | None = None
        step = hub.low_priority.step
        self._waiting = WaitingRequests(partial(step, weight=WEB_SOCKET_STEPS, queue=QUEUE))

    def start(self, connections: trio.Nursery) -> None:
        """Set the nursery in which connections run, before any request is passed on."""
        self._connections = connections

    def take_over(
        self, stream: trio.SocketStream, octets: OctetStream, head: bytes, behind: bytes
    ) -> None:
        """Take over a connection whose request begins with `head`, and serve it.

        `octets` is `stream`, or TLS on it. `behind` is what was read after the head. Nothing else
        may use the connection from now on.
        """
        assert self._connections is not None
        try:
            name = endpoint_name(*stream.socket.getpeername()[:2])
        except OSError:
            log.debug("connection lost before it was served", listener=self.listener.name)
            return
        # the caller closes `stream`
        sock = trio.socket.socket(fileno=stream.socket.detach())
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        own = trio.SocketStream(sock)
        stream_of_web_socket: OctetStream = own
        if isinstance(octets, trio.SSLStream):
            octets.transport_stream = stream_below_tls(own)
            stream_of_web_socket = octets
        handshake = HandshakeStream(stream_of_web_socket, head, behind)
        self._connections.start_soon(self._serve, stream_of_web_socket, handshake, head, name)

    async def _serve(
        self, octets: OctetStream, handshake: HandshakeStream, head: bytes, name: str
    ) -> None:
        host = endpoint_counted_host(name)
        try:
            with trio.move_on_after(ANSWER_S) as answering:
                sock = octets.transport_stream if isinstance(octets, trio.SSLStream) else octets
                if are_descriptors_short(sock.socket.fileno()):
                    self.unopened.make_room()
                    await handshake.send_all(_UNAVAILABLE)
                    return
                if not await self._waiting.turn(host):
                    await handshake.send_all(_UNAVAILABLE)
                    return
                async with trio.open_nursery() as nursery:
                    web_socket = server_web_socket(handshake)
                    nursery.start_soon(web_socket.read)
                    connection = await self._accepted(web_socket, head, name)
                    if connection is None:
                        self.hub.low_priority.failing_hosts.count_unopened(host)
                    else:
                        answering.deadline = math.inf
                        handshake.wait_for_turn = partial(
                            self._wait_for_turn, handshake, connection, host
                        )
                        await self._run(web_socket, octets, connection)
                    nursery.cancel_scope.cancel()
        except* (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        except* Exception:
            # As in `run_guarded`: a failure of ours, or of a library, ends this connection alone.
            log.exception("WebSocket failed", listener=self.listener.name, peer=name)
        finally:
            await trio.aclose_forcefully(octets)

    async def _wait_for_turn(
        self, handshake: HandshakeStream, connection: Connection, host: str
    ) -> None:
        """Wait for a turn with low priority, unless the AMQP connection is open."""
        if connection.is_open():
            handshake.wait_for_turn = None
        else:
            await self.hub.low_priority.step(host, READ_STEPS, READS)

    async def _accepted(self, web_socket: WebSocket, head: bytes, name: str) -> Connection | None:
        """Answer a client's request; return its new connection if the WebSocket is open."""
        request = await web_socket.request()
        if request is None:
            self._log_refused(name, web_socket.mistake or "the connection is lost")
            return None
        objection = request_objection(head)
        if objection is not None:
            await self._refuse(web_socket, request, name, 400, objection)
            return None
        origins = [value for key, value in request.headers if key == b"origin"]
        host = _HOST.search(head)
        objection = origin_objection(
            origins, host[1] if host else b"", self.listener.allowed_origins
        )
        if objection is not None:
            await self._refuse(web_socket, request, name, 403, objection)
            return None
        subprotocol = choose(request.proposed_subprotocols)
        if subprotocol is None:
            objection = f"it has no subprotocol for AMQP 1.0; it must have {ALLOWED}"
            await self._refuse(web_socket, request, name, 400, objection)
            return None
        if not await web_socket.accept(request, subprotocol):
            return None
        connection = self.new_connection(name, is_of_web_page=bool(origins))
        if host is not None:
            connection.requested_host = host[1].decode("latin-1").strip()
        return connection

    async def _refuse(
        self, web_socket: WebSocket, request: WebSocketRequest, name: str, status: int, why: str
    ) -> None:
        self._log_refused(name, why)
        headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close")]
        try:
            await request.reject(
                status, extra_headers=headers, body=f"the request is refused: {why}\n".encode()
            )
        except ConnectionClosed:
            return
        # closing first might cause a reset, and the answer would be lost
        with trio.move_on_after(LINGER_S):
            await web_socket.ended.wait()

    def _log_refused(self, name: str, why: str) -> None:
        log.info("WebSocket refused", listener=self.listener.name, peer=name, reason=why)

    async def _run(
        self, web_socket: WebSocket, octets: OctetStream, connection: Connection
    ) -> None:
        """Serve the AMQP connection until it ends."""
        near, far = socket_pair()
        pump = RouterPump(near, connection, self.hub, self.authenticator, self.counters)
        if isinstance(octets, trio.SSLStream):
            self._secured(pump, octets)
        await self.serve_connection(pump, partial(run_over, web_socket, far))

    def _secured(self, pump: RouterPump, octets: trio.SSLStream[trio.SocketStream]) -> None:
        """Note what TLS has agreed on, and the user of the peer's certificate."""
        connection, tls = pump.connection, self.tls
        cipher, _, bits = octets.cipher()
        pump.security = Security(octets.version(), cipher, bits)
        connection.is_encrypted = True
        if tls is not None:
            certificate = octets.getpeercert(binary_form=True)
            connection.external_user = tls.user_of_certificate(certificate)
