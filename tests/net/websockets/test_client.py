"""Opening a WebSocket as a client, at servers that do not play along."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing

from router.net.dialling import NotConnected
from router.net.websockets.client import HANDSHAKE_S, Target, carry

TARGET = Target("h", 80, "/")


@asynccontextmanager
async def answered(answer: bytes, *, stays: bool = False) -> AsyncIterator[socket.socket]:
    """Yield a socket whose server answers the request with these octets, and then closes."""
    near, far = socket.socketpair()
    stream = trio.SocketStream(trio.socket.from_stdlib_socket(far))

    async def serve() -> None:
        async with stream:
            while b"\r\n\r\n" not in await stream.receive_some():
                pass
            try:
                await stream.send_all(answer)
            except trio.BrokenResourceError:
                return
            if stays:
                await trio.sleep_forever()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve)
        yield near
        nursery.cancel_scope.cancel()


async def failure(answer: bytes, *, stays: bool = False) -> tuple[str, str]:
    """Return the kind and text of the failure to open a WebSocket."""
    async with answered(answer, stays=stays) as sock, trio.open_nursery() as nursery:
        with pytest.raises(NotConnected) as caught:
            await nursery.start(carry, sock, TARGET, None)
    return caught.value.failure.kind, caught.value.failure.reason


ACCEPTED = (
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Accept: %s\r\n\r\n"
)
ANSWERS = {
    "nothing": (b"", "closed", "before the WebSocket was open"),
    "half": (b"HTTP/1.1 101 Swi", "closed", "before the WebSocket was open"),
    "noise": (b"\0\1\2\r\n\r\n", "protocol", "not speak WebSocket"),
    "404": (
        b"HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\n\r\nnot found",
        "protocol",
        "refused the WebSocket with status 404: not found",
    ),
    "401": (b"HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n", "unauthorized", "status 401"),
    "wrong key": (ACCEPTED % b"x", "protocol", "not speak WebSocket"),
    "endless head": (b"HTTP/1.1 101 x\r\na: " + b"b" * 10**6, "protocol", "not speak WebSocket"),
    "endless body": (
        b"HTTP/1.1 500 x\r\nContent-Length: 1000000000\r\n\r\n" + b"b" * 10**6,
        "closed",
        "before the WebSocket was open",
    ),
}


@pytest.mark.parametrize(("answer", "kind", "said"), ANSWERS.values(), ids=ANSWERS)
async def test_answers_that_open_nothing(answer: bytes, kind: str, said: str) -> None:
    found, text = await failure(answer)
    assert (found, said in text) == (kind, True), text


async def test_a_silent_server_is_left(
    autojump_clock: trio.testing.MockClock,
) -> None:
    found, text = await failure(b"", stays=True)
    assert found == "silent"
    assert f"within {HANDSHAKE_S:g} s" in text


@pytest.mark.parametrize(
    ("target", "has_tls", "host"),
    [
        (Target("h", 80, "/"), False, "h"),
        (Target("h", 443, "/"), True, "h"),
        (Target("h", 443, "/"), False, "h:443"),
        (Target("::1", 8080, "/"), False, "[::1]:8080"),
        (Target("::1", 80, "/"), False, "[::1]"),
    ],
    ids=str,
)
def test_the_host_of_a_request(target: Target, has_tls: bool, host: str) -> None:
    assert target.host_header(has_tls) == host


@pytest.mark.spec("W2.1-1")
async def test_a_client_proposes_amqp() -> None:
    near, far = socket.socketpair()
    stream = trio.SocketStream(trio.socket.from_stdlib_socket(far))
    async with stream, trio.open_nursery() as nursery:
        nursery.start_soon(carry, near, Target("h", 8080, "/p?q"), None)
        head = await stream.receive_some()
        nursery.cancel_scope.cancel()
    lines = bytes(head).split(b"\r\n")
    assert lines[0] == b"GET /p?q HTTP/1.1"
    assert b"Host: h:8080" in lines
    assert b"Sec-WebSocket-Protocol: amqp" in lines
    assert not [line for line in lines if line.startswith(b"Sec-WebSocket-Extensions")]
