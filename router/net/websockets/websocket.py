"""WebSocket of trio-websocket that passes binary messages on in pieces, as they arrive.

trio-websocket would collect each message, with an object for each piece of it that arrives, however
small. Here no message is collected: AMQP does not need the boundaries between messages, so neither
the size of a message nor the number of its pieces matters.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Sequence
from typing import Any, Final

import attrs
import trio
from trio_websocket import (
    ConnectionClosed,
    ConnectionRejected,
    WebSocketConnection,
    WebSocketRequest,
)
from wsproto import ConnectionType, WSConnection
from wsproto.connection import ConnectionState
from wsproto.events import BytesMessage, CloseConnection, Event, TextMessage
from wsproto.utilities import LocalProtocolError, RemoteProtocolError

# Octets received at once, and how many after octets that were mostly frames without data: such a
# frame has 6 octets, and takes 8 microseconds.
RECEIVED_BYTES: Final = 64 * 1024
LEAN_BYTES: Final = 1024
# Most octets received before the WebSocket is open.
HANDSHAKE_BYTES: Final = 64 * 1024
# How long the other side may take to read our close, and to answer it.
CLOSE_S: Final = 2.0

NORMAL: Final = 1000
NOT_SUPPORTED: Final = 1003

OctetStream = trio.SocketStream | trio.SSLStream[trio.SocketStream]
"""Connected stream, or TLS on it."""


@attrs.frozen
class WebSocketFailed(Exception):
    """Failure of a WebSocket: the close code for the other side, and the reason for operators."""

    code: int
    reason: str


class WebSocketClosed(Exception):
    """End of a WebSocket, in order or not."""


class Pace:
    """Number of octets that are received at once, before other tasks run.

    If a quarter or more of what was received are not data, few octets are received next. With data
    the number grows again.
    """

    def __init__(self) -> None:
        self._most = LEAN_BYTES
        self._received = 0
        self._data = 0

    def received(self, count: int) -> None:
        """Note received octets."""
        self._received += count

    def passed_on(self, count: int) -> None:
        """Note octets of data."""
        self._data += count

    def next(self) -> int:
        """Return how many octets to receive next, when all data so far have been passed on."""
        if self._data * 4 < self._received * 3:
            self._most = LEAN_BYTES
        else:
            self._most = min(RECEIVED_BYTES, self._most + self._data)
        self._received = self._data = 0
        return self._most


class HandshakeStream(trio.abc.Stream):
    """Stream for a WebSocket that bounds what is received before the WebSocket is open.

    A server passes the head of the request, which it has read already, and what it has read after
    the head. Nothing after the head is received before `is_open` is set: the library would lose
    what a client sends before its request is accepted.
    """

    def __init__(self, stream: OctetStream, head: bytes = b"", behind: bytes = b"") -> None:
        self._stream = stream
        self._is_server = bool(head)
        self._head = head
        self._behind = behind
        self._left = HANDSHAKE_BYTES
        self.is_open = trio.Event()
        self.pace = Pace()
        # waits before each step that follows from what was received; None if nothing has to wait
        self.wait_for_turn: Callable[[], Awaitable[None]] | None = None

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        """Return the next octets."""
        head, self._head = self._head, b""
        if head:
            return head
        if self.is_open.is_set():
            octets: bytes | bytearray
            octets, self._behind = self._behind, b""
            if not octets:
                most = self.pace.next()
                octets = await self._stream.receive_some(min(most, max_bytes or most))
            self.pace.received(len(octets))
            if self.wait_for_turn is not None:
                await self.wait_for_turn()
            return octets
        if self._is_server:
            await self.is_open.wait()
            return await self.receive_some(max_bytes)
        if not self._left:
            raise trio.BrokenResourceError("the answer is too long")
        received = await self._stream.receive_some(self._left)
        self._left -= len(received)
        return received

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send octets."""
        await self._stream.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        """Wait until octets can be sent."""
        await self._stream.wait_send_all_might_not_block()

    async def aclose(self) -> None:
        """Close the stream."""
        await self._stream.aclose()


class _Pieces(WSConnection):
    """Protocol state that makes each piece of a binary message a message of its own."""

    def __init__(self, kind: ConnectionType, pace: Pace) -> None:
        super().__init__(kind)
        self._pace = pace
        self.failure: WebSocketFailed | None = None
        # what is wrong with the other side's octets
        self.mistake = ""

    def receive_data(self, data: bytes | None) -> None:
        """Process octets, and note what is wrong with them."""
        try:
            super().receive_data(data)
        except RemoteProtocolError as error:
            self.mistake = str(error)
            if self.client:
                # the library would try to send this answer, which only a server can
                error.event_hint = None
            raise

    def events(self) -> Generator[Event, None, None]:
        """Yield the events; a failure becomes an empty text message, and is in `failure`."""
        for event in super().events():
            if isinstance(event, BytesMessage):
                if event.data:
                    self._pace.passed_on(len(event.data))
                    yield BytesMessage(data=event.data)
            elif isinstance(event, TextMessage):
                self.failure = WebSocketFailed(
                    NOT_SUPPORTED, "AMQP needs binary messages, and this is a text message"
                )
                yield TextMessage(data="")
            elif isinstance(event, CloseConnection) and self.state is ConnectionState.OPEN:
                # the library has found a mistake, and would end the stream without saying so
                self.failure = WebSocketFailed(int(event.code), event.reason or "protocol error")
                yield TextMessage(data="")
            else:
                yield event


class WebSocket:
    """WebSocket on a stream; `read` must run in a task while it is used."""

    def __init__(self, stream: HandshakeStream, kind: ConnectionType, **request: Any) -> None:
        self._stream = stream
        self._pieces = _Pieces(kind, stream.pace)
        self._connection = WebSocketConnection(
            stream, self._pieces, receive_buffer_size=RECEIVED_BYTES, **request
        )
        self.ended = trio.Event()
        # the server's answer, if it refuses a client
        self.rejection: ConnectionRejected | None = None

    @property
    def mistake(self) -> str:
        """Return what is wrong with the other side's octets; empty if nothing is."""
        return self._pieces.mistake

    @property
    def subprotocol(self) -> str | None:
        """Return the subprotocol that the server has chosen."""
        return self._connection.subprotocol

    async def read(self) -> None:
        """Receive until the WebSocket ends."""
        try:
            await self._connection._reader_task()
        except (ConnectionClosed, LocalProtocolError, trio.BrokenResourceError):
            # lost, or an answer that the library would send after the close
            pass
        except ConnectionRejected as rejection:
            self.rejection = rejection
        except UnicodeError:
            # a header whose octets the library decodes without a check
            self._pieces.mistake = "a header is not text"
        finally:
            self.ended.set()

    async def request(self) -> WebSocketRequest | None:
        """Return a client's request, or None if there is no valid one."""
        found: list[WebSocketRequest] = []

        async def wait() -> None:
            found.append(await self._connection._get_request())

        await self._unless_ended(wait)
        return found[0] if found else None

    async def accept(self, request: WebSocketRequest, subprotocol: str) -> bool:
        """Accept a client's request; return whether the client is still there."""
        try:
            await request.accept(subprotocol=subprotocol)
        except ConnectionClosed:
            return False
        self._stream.is_open.set()
        return True

    async def opened(self) -> bool:
        """Wait for a server's answer, and return whether the WebSocket is open."""
        await self._unless_ended(self._connection._open_handshake.wait)
        self._stream.is_open.set()
        return self._connection._open_handshake.is_set()

    async def _unless_ended(self, wait: Callable[[], Awaitable[object]]) -> None:
        """Call `wait`, and cancel it when the WebSocket has ended."""

        async def watch(scope: trio.CancelScope) -> None:
            await self.ended.wait()
            scope.cancel()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch, nursery.cancel_scope)
            await wait()
            nursery.cancel_scope.cancel()

    async def receive(self) -> bytes:
        """Return the next octets; raise WebSocketClosed, or WebSocketFailed for a mistake."""
        try:
            message = await self._connection.get_message()
        except ConnectionClosed:
            raise WebSocketClosed from None
        if isinstance(message, str):
            assert self._pieces.failure is not None
            raise self._pieces.failure
        return message

    async def send(self, octets: bytes) -> None:
        """Send a binary message; raise WebSocketClosed."""
        try:
            await self._connection.send_message(octets)
        except ConnectionClosed:
            raise WebSocketClosed from None

    async def close(self, code: int = NORMAL, reason: str | None = None) -> None:
        """Close, and wait for the other side's close, for `CLOSE_S` at most."""
        with trio.move_on_after(CLOSE_S):
            await self._connection.aclose(code, reason)


def server_web_socket(stream: HandshakeStream) -> WebSocket:
    """Return the server's side of a WebSocket."""
    return WebSocket(stream, ConnectionType.SERVER)


def client_web_socket(
    stream: HandshakeStream, host: str, path: str, subprotocols: Sequence[str]
) -> WebSocket:
    """Return the client's side of a WebSocket; `host` and `path` are those of its request."""
    return WebSocket(
        stream, ConnectionType.CLIENT, host=host, path=path, client_subprotocols=subprotocols
    )
