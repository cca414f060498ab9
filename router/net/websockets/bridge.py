"""Bridge between a WebSocket and the pump of an AMQP connection.

The pump has one end of a pair of sockets, and two tasks copy octets between the other end and the
WebSocket. Each waits while there is no room where it copies to, so nothing piles up on the way
(docs/decisions/0112).
"""

from __future__ import annotations

import socket
from typing import Final

import trio

from router.net.listeners import run_guarded
from router.net.router_pump import RouterPump
from router.net.websockets.protocol_headers import HeaderSplitter
from router.net.websockets.websocket import (
    CLOSE_S,
    WebSocket,
    WebSocketClosed,
    WebSocketFailed,
)

# The most octets in one message that is sent.
SENT_BYTES: Final = 64 * 1024


def socket_pair() -> tuple[socket.socket, trio.SocketStream]:
    """Return a socket for a pump, and the stream that is connected to it."""
    near, far = socket.socketpair()
    near.setblocking(False)
    return near, trio.SocketStream(trio.socket.from_stdlib_socket(far))


async def run_over(web_socket: WebSocket, far: trio.SocketStream, pump: RouterPump) -> None:
    """Run a connection over a WebSocket until one of them ends, and then close the other.

    `far` is connected to the socket of the pump.
    """
    async with far, trio.open_nursery() as nursery:
        nursery.start_soon(_receive, web_socket, far, pump)
        nursery.start_soon(_send, web_socket, far)
        await run_guarded(pump)
        # time for `_send` to pass on the last octets, and to close the WebSocket
        nursery.cancel_scope.deadline = trio.current_time() + CLOSE_S


async def _receive(web_socket: WebSocket, far: trio.SocketStream, pump: RouterPump) -> None:
    """Copy to the pump until the WebSocket ends; then end the stream of the pump."""
    try:
        while True:
            await far.send_all(await web_socket.receive())
    except WebSocketClosed:
        pass
    except WebSocketFailed as failed:
        pump.log.warning("WebSocket failed", reason=failed.reason, code=failed.code)
        await web_socket.close(failed.code, failed.reason)
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        # the connection has ended, and `_send` closes the WebSocket
        return
    await far.aclose()


async def _send(web_socket: WebSocket, far: trio.SocketStream) -> None:
    """Copy from the pump until it ends its stream; then close the WebSocket."""
    headers = HeaderSplitter()
    try:
        while octets := await far.receive_some(SENT_BYTES):
            for message in headers.split(bytes(octets)):
                await web_socket.send(message)
    except WebSocketClosed:
        return
    except trio.BrokenResourceError:
        # the pump has closed its socket before everything was read from it
        pass
    except trio.ClosedResourceError:
        return
    await web_socket.close()
    await far.aclose()
