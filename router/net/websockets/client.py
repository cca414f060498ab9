"""Client of AMQP over WebSockets, for connectors."""

from __future__ import annotations

import socket
import ssl
from typing import Final

import attrs
import structlog
import trio

from router.engine.failures import Failure
from router.net.dialling import NotConnected
from router.net.endpoint_names import endpoint_name
from router.net.router_pump import RouterPump
from router.net.tls.channel import Security, reason_of
from router.net.tls.profiles import ClientTls
from router.net.tls.streams import stream_below_tls
from router.net.websockets.bridge import run_over, socket_pair
from router.net.websockets.subprotocols import AMQP
from router.net.websockets.websocket import (
    HandshakeStream,
    OctetStream,
    WebSocket,
    client_web_socket,
)

log = structlog.get_logger("router.connector")

# How long the handshakes of TLS and the WebSocket may take.
HANDSHAKE_S: Final = 10.0
_USUAL_PORTS: Final = {False: 80, True: 443}
_UNAUTHORIZED: Final = (401, 403, 407)
# How many octets of a refusal's body are shown.
_SHOWN_OCTETS: Final = 200


@attrs.frozen
class Target:
    """Server to connect to: its name and port, and the path of the request."""

    hostname: str
    port: int
    path: str

    def host_header(self, has_tls: bool) -> str:
        """Return the value of the Host header, which leaves out the usual port."""
        name = endpoint_name(self.hostname, self.port)
        return name.rpartition(":")[0] if self.port == _USUAL_PORTS[has_tls] else name


class OpenWebSocket:
    """WebSocket to a server, which carries one connection.

    The connection's pump uses the socket `near`.
    """

    def __init__(self, web_socket: WebSocket, security: Security | None) -> None:
        self._web_socket = web_socket
        self.near, self._far = socket_pair()
        self.security = security
        # set when the connection has ended
        self.over = trio.Event()

    async def run(self, pump: RouterPump) -> None:
        """Run the connection until it or the WebSocket ends."""
        try:
            await run_over(self._web_socket, self._far, pump)
        finally:
            self.over.set()


async def carry(
    sock: socket.socket,
    target: Target,
    tls: ClientTls | None,
    task_status: trio.TaskStatus[OpenWebSocket] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Open a WebSocket on a connected socket, and keep it until its connection has ended.

    The task's status gets the open WebSocket. Raises `NotConnected` before that if it fails.
    """
    stream = trio.SocketStream(trio.socket.from_stdlib_socket(sock))
    stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    octets: OctetStream = stream if tls is None else _secured(stream, tls, target.hostname)
    web_socket = client_web_socket(
        HandshakeStream(octets), target.host_header(tls is not None), target.path, [AMQP]
    )
    opened: OpenWebSocket | None = None
    failure = Failure("protocol", "the WebSocket failed; the log says more")
    try:
        async with trio.open_nursery() as nursery:
            security, found = await _open(octets, web_socket, nursery)
            if found is None:
                opened = OpenWebSocket(web_socket, security)
                task_status.started(opened)
                await opened.over.wait()
            else:
                failure = found
            nursery.cancel_scope.cancel()
    except* Exception:
        # As in `run_guarded`: a failure of ours, or of a library, ends this connection alone.
        log.exception("WebSocket failed", peer=endpoint_name(target.hostname, target.port))
    finally:
        await trio.aclose_forcefully(octets)
    if opened is None:
        raise NotConnected(failure)


async def _open(
    octets: OctetStream, web_socket: WebSocket, nursery: trio.Nursery
) -> tuple[Security | None, Failure | None]:
    """Do the handshakes of TLS and the WebSocket.

    Return what TLS has agreed on, if it is used, and why the WebSocket is not open, or None.
    """
    security, failure = None, None
    with trio.move_on_after(HANDSHAKE_S) as handshake:
        if isinstance(octets, trio.SSLStream):
            security, failure = await _shake_hands(octets)
        if failure is None:
            nursery.start_soon(web_socket.read)
            failure = await _failure(web_socket)
    if handshake.cancelled_caught:
        failure = Failure("silent", f"no WebSocket was open within {HANDSHAKE_S:g} s")
    return security, failure


def _secured(
    stream: trio.SocketStream, tls: ClientTls, hostname: str
) -> trio.SSLStream[trio.SocketStream]:
    below = stream_below_tls(stream)
    return trio.SSLStream(below, tls.context, server_hostname=hostname, https_compatible=True)


async def _shake_hands(
    octets: trio.SSLStream[trio.SocketStream],
) -> tuple[Security | None, Failure | None]:
    """Do the TLS handshake; return what was agreed on, or why it has failed."""
    try:
        await octets.do_handshake()
    except (trio.BrokenResourceError, ValueError) as broken:
        cause = broken.__cause__
        reason = reason_of(cause) if isinstance(cause, ssl.SSLError) else "the connection is lost"
        is_refusal = isinstance(cause, ssl.SSLCertVerificationError)
        kind = "unauthorized" if is_refusal else "protocol"
        return None, Failure(kind, f"TLS failed: {reason}")
    cipher, _, bits = octets.cipher()
    return Security(octets.version(), cipher, bits), None


async def _failure(web_socket: WebSocket) -> Failure | None:
    """Wait for the server's answer, and return why there is no WebSocket, or None if it is open."""
    if await web_socket.opened():
        if web_socket.subprotocol is None or web_socket.subprotocol.lower() != AMQP:
            return Failure("protocol", "the server has not accepted the subprotocol amqp")
        return None
    rejection = web_socket.rejection
    if rejection is not None:
        status = rejection.status_code
        kind = "unauthorized" if status in _UNAUTHORIZED else "protocol"
        reason = f"the server refused the WebSocket with status {status}"
        text = (rejection.body or b"")[:_SHOWN_OCTETS].decode("utf-8", "replace").strip()
        if text and text.isprintable():
            reason += f": {text}"
        return Failure(kind, reason)
    if web_socket.mistake:
        return Failure("protocol", f"the server does not speak WebSocket: {web_socket.mistake}")
    return Failure("closed", "the server closed the connection before the WebSocket was open")
