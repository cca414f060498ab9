"""WebSockets that pass messages on in pieces, between two ends in the test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing

from router.net.websockets.websocket import (
    HANDSHAKE_BYTES,
    LEAN_BYTES,
    RECEIVED_BYTES,
    HandshakeStream,
    Pace,
    WebSocket,
    WebSocketClosed,
    WebSocketFailed,
    client_web_socket,
    server_web_socket,
)

from support.web_sockets import RawWebSocket

HEAD = (
    b"GET / HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    b"Sec-WebSocket-Protocol: amqp\r\n\r\n"
)


def pair() -> tuple[trio.SocketStream, trio.SocketStream]:
    """Return two connected streams."""
    one, other = trio.socket.socketpair()
    return trio.SocketStream(one), trio.SocketStream(other)


@asynccontextmanager
async def connected() -> AsyncIterator[tuple[WebSocket, RawWebSocket]]:
    """Yield the server's end of an open WebSocket, and a client."""
    near, far = pair()
    async with near, far, trio.open_nursery() as nursery:
        client = RawWebSocket(far)

        async def serve(task_status: trio.TaskStatus[WebSocket]) -> None:
            head = b""
            while b"\r\n\r\n" not in head:
                head += await near.receive_some()
            server = server_web_socket(HandshakeStream(near, head))
            nursery.start_soon(server.read)
            request = await server.request()
            assert request is not None
            assert await server.accept(request, "amqp")
            task_status.started(server)

        async def ask() -> None:
            await client.ask("/", "amqp")

        nursery.start_soon(ask)
        yield await nursery.start(serve), client
        nursery.cancel_scope.cancel()


async def test_a_message_comes_before_it_is_finished() -> None:
    async with connected() as (server, client):
        await client.send(b"one", message_finished=False)
        assert await server.receive() == b"one"
        await client.send(b"")
        await client.send(b"two")
        assert await server.receive() == b"two"


async def test_text_and_mistakes_are_failures() -> None:
    async with connected() as (server, client):
        await client.stream.send_all(b"\x81\x80\x00\x00\x00\x00")
        with pytest.raises(WebSocketFailed) as caught:
            await server.receive()
        assert caught.value.code == 1003
    async with connected() as (server, client):
        await client.stream.send_all(b"\x82\x00")
        with pytest.raises(WebSocketFailed) as caught:
            await server.receive()
        assert caught.value.code == 1002


async def test_the_end_of_the_stream_is_the_end() -> None:
    async with connected() as (server, client):
        await client.stream.aclose()
        with pytest.raises(WebSocketClosed):
            await server.receive()
        with pytest.raises(WebSocketClosed):
            await server.send(b"x")
        await server.close()


async def test_a_close_that_is_not_answered_ends(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with connected() as (server, client):
        await server.close()
        # a close with the code 1000, and the end
        assert await client.stream.receive_some() == b"\x88\x02\x03\xe8"
        assert await client.stream.receive_some() == b""


async def test_nothing_piles_up_while_nobody_receives(
    autojump_clock: trio.testing.MockClock,
) -> None:
    sent = 0
    piece = bytes(1000)
    async with connected() as (_, client):
        with trio.move_on_after(10):
            while True:
                await client.send(piece, message_finished=False)
                sent += len(piece)
        # what two sockets hold, and a few pieces
        assert 0 < sent < 4 * 2**20


async def test_nothing_piles_up_while_the_client_does_not_read(
    autojump_clock: trio.testing.MockClock,
) -> None:
    sent = 0
    async with connected() as (server, _):
        with trio.move_on_after(10):
            while True:
                await server.send(bytes(1000))
                sent += 1000
        assert 0 < sent < 4 * 2**20


async def test_a_server_reads_nothing_behind_the_head_before_it_has_accepted(
    autojump_clock: trio.testing.MockClock,
) -> None:
    near, far = pair()
    async with near, far:
        await far.send_all(b"later")
        stream = HandshakeStream(near, HEAD, b"behind")
        assert await stream.receive_some() == HEAD
        with trio.move_on_after(1) as waiting:
            await stream.receive_some()
        assert waiting.cancelled_caught
        stream.is_open.set()
        assert await stream.receive_some() == b"behind"
        assert await stream.receive_some(100) == b"later"
        await stream.wait_send_all_might_not_block()


async def test_a_client_reads_a_limited_answer() -> None:
    near, far = pair()
    async with near, far, trio.open_nursery() as nursery:
        stream = HandshakeStream(near)
        nursery.start_soon(far.send_all, bytes(10 * HANDSHAKE_BYTES))
        count = 0
        while count < HANDSHAKE_BYTES:
            count += len(await stream.receive_some())
        assert count == HANDSHAKE_BYTES
        with pytest.raises(trio.BrokenResourceError):
            await stream.receive_some()
        stream.is_open.set()
        assert await stream.receive_some(10) == bytes(10)
        nursery.cancel_scope.cancel()


async def test_a_client_opens_and_is_answered() -> None:
    near, far = pair()
    async with near, far, trio.open_nursery() as nursery:
        client = client_web_socket(HandshakeStream(near), "h", "/p", ["amqp"])
        nursery.start_soon(client.read)
        head = b""
        while b"\r\n\r\n" not in head:
            head += await far.receive_some()
        assert head.startswith(b"GET /p HTTP/1.1\r\nHost: h\r\n")
        server = server_web_socket(HandshakeStream(far, head))
        nursery.start_soon(server.read)
        request = await server.request()
        assert request is not None
        assert await server.accept(request, "amqp")
        assert await client.opened()
        assert client.subprotocol == "amqp"
        await client.send(b"x")
        assert await server.receive() == b"x"
        await client.close()
        with pytest.raises(WebSocketClosed):
            await server.receive()
        nursery.cancel_scope.cancel()


EMPTY = {
    "binary": b"\x82\x80\0\0\0\0",
    "parts": b"\0\x80\0\0\0\0",
    "pong": b"\x8a\x80\0\0\0\0",
    "ping": b"\x89\x80\0\0\0\0",
}


@pytest.mark.parametrize("frame", EMPTY.values(), ids=EMPTY)
async def test_frames_without_data_are_taken_a_few_at_a_time(frame: bytes) -> None:
    """Other tasks run in between; and whoever sends data again is served as before."""
    count = 20_000
    turns = 0

    async def take_turns() -> None:
        nonlocal turns
        while True:
            await trio.lowlevel.checkpoint()
            turns += 1

    async def drain(client: RawWebSocket) -> None:
        # the answers to pings
        while await client.stream.receive_some(65536):
            pass

    async with connected() as (server, client), trio.open_nursery() as nursery:
        if frame == EMPTY["parts"]:
            await client.send(b"", message_finished=False)
        nursery.start_soon(take_turns)
        nursery.start_soon(drain, client)
        await client.stream.send_all(frame * count)
        await client.stream.send_all(b"\x80" if frame == EMPTY["parts"] else b"\x82")
        await client.stream.send_all(b"\x81\0\0\0\0x")
        assert await server.receive() == b"x"
        # once for each piece, but for the first ones and the last
        assert turns >= count * len(frame) // (2 * LEAN_BYTES)
        nursery.cancel_scope.cancel()


async def test_data_are_received_in_large_pieces() -> None:
    async with connected() as (server, client), trio.open_nursery() as nursery:
        nursery.start_soon(client.send, bytes(2**20))
        largest = got = 0
        while got < 2**20:
            piece = await server.receive()
            got += len(piece)
            largest = max(largest, len(piece))
        assert largest > 16 * LEAN_BYTES


@pytest.mark.parametrize(("data", "most"), [(0, LEAN_BYTES), (749, LEAN_BYTES), (750, 1774)])
def test_the_pace_is_that_of_data(data: int, most: int) -> None:
    pace = Pace()
    assert pace.next() == LEAN_BYTES
    pace.received(1000)
    pace.passed_on(data)
    assert pace.next() == most
    for _ in range(10):
        pace.received(RECEIVED_BYTES)
        pace.passed_on(RECEIVED_BYTES)
        assert pace.next() <= RECEIVED_BYTES
    assert pace.next() == RECEIVED_BYTES
