"""Client of WebSockets by wsproto, for octets that no ordinary client sends."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import attrs
import trio
from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Event,
    Ping,
    Pong,
    RejectConnection,
    RejectData,
    Request,
)

from router.amqp.framing import AMQP_HEADER, encode_frame
from router.amqp.performatives import Open

OPENING = AMQP_HEADER + encode_frame(0, Open(container_id="web"))
"""What a client without SASL begins with."""


@attrs.define
class RawWebSocket:
    """WebSocket of a test. All octets of messages so far are in `heard`."""

    stream: trio.abc.Stream
    state: WSConnection = attrs.field(factory=lambda: WSConnection(ConnectionType.CLIENT))
    heard: bytes = b""
    # the messages, or parts of messages
    messages: list[bytes] = attrs.Factory(list)
    # the accepted or rejected request
    answer: AcceptConnection | RejectConnection | None = None
    refusal: bytes = b""
    # the server's close code, 1006 without one
    code: int | None = None
    pongs: list[bytes] = attrs.Factory(list)

    async def ask(self, path: str = "/", *subprotocols: str, host: str = "h", **more: Any) -> None:
        """Send the request, and wait for the answer."""
        request = Request(host=host, target=path, subprotocols=list(subprotocols), **more)
        await self.say(request)
        await self.until(lambda: self.answer is not None)
        if isinstance(self.answer, RejectConnection):
            await self.until(lambda: self.code is not None)

    async def say(self, event: Event) -> None:
        """Send an event."""
        await self.stream.send_all(self.state.send(event))

    async def send(self, octets: bytes, **more: Any) -> None:
        """Send a binary message, or a part of one."""
        await self.say(BytesMessage(octets, **more))

    async def until(self, is_true: Any) -> None:
        """Receive until something is true; fail if the stream ends before."""
        while not is_true():
            assert self.code is None, (self.code, self.heard, self.refusal)
            try:
                octets = await self.stream.receive_some(65536)
            except trio.BrokenResourceError:
                octets = b""
            if not octets:
                self.code = 1006
            else:
                self.state.receive_data(bytes(octets))
            for event in self.state.events():
                await self._hear(event)

    async def _hear(self, event: Event) -> None:
        if isinstance(event, AcceptConnection | RejectConnection):
            self.answer = event
        elif isinstance(event, RejectData):
            self.refusal += event.data
            if event.body_finished:
                self.code = 0
        elif isinstance(event, BytesMessage):
            self.heard += event.data
            self.messages.append(bytes(event.data))
        elif isinstance(event, CloseConnection):
            self.code = event.code
            if self.state.state.name == "REMOTE_CLOSING":
                await self.say(event.response())
        elif isinstance(event, Ping):
            await self.say(event.response())
        elif isinstance(event, Pong):
            self.pongs.append(bytes(event.payload))

    async def hear(self, octets: bytes) -> None:
        """Receive until these octets have been heard."""
        await self.until(lambda: octets in self.heard)

    async def until_closed(self) -> int:
        """Receive until the server closes, and return the code."""
        await self.until(lambda: self.code is not None)
        assert self.code is not None
        return self.code

    async def until_ended(self) -> None:
        """Receive until the server closes the connection."""
        try:
            while await self.stream.receive_some(65536):
                pass
        except trio.BrokenResourceError:
            pass


@asynccontextmanager
async def dialled(
    address: tuple[str, int], context: ssl.SSLContext | None = None
) -> AsyncIterator[RawWebSocket]:
    """Yield a WebSocket that has asked for nothing yet; with a context, over TLS."""
    async with await trio.open_tcp_stream(*address) as stream:
        if context is None:
            yield RawWebSocket(stream)
        else:
            yield RawWebSocket(
                trio.SSLStream(stream, context, server_hostname="localhost", https_compatible=True)
            )


@asynccontextmanager
async def opened(address: tuple[str, int], **more: Any) -> AsyncIterator[RawWebSocket]:
    """Yield an open WebSocket for AMQP."""
    async with dialled(address) as web_socket:
        await web_socket.ask("/", "amqp", **more)
        assert isinstance(web_socket.answer, AcceptConnection), web_socket.answer
        yield web_socket
