"""Fuzz targets for what is below AMQP: TLS, WebSockets, and the answers of HTTP proxies."""

from __future__ import annotations

import contextlib
import socket
import ssl
from functools import cache
from typing import Any

import trio
import trustme
from trio.testing import MockClock

from router.net.dialling import NotConnected
from router.net.proxies import MAX_HEAD_BYTES, _check, _read_head
from router.net.tls.channel import (
    RECORD_BYTES,
    RECORD_OVERHEAD_BYTES,
    TLS_HEADER,
    Phase,
    ServerSide,
    TlsChannel,
    TlsFailed,
)
from router.net.websockets.origins import origin_objection
from router.net.websockets.protocol_headers import HeaderSplitter
from router.net.websockets.subprotocols import choose
from router.net.websockets.websocket import (
    HandshakeStream,
    WebSocket,
    WebSocketClosed,
    WebSocketFailed,
    client_web_socket,
    server_web_socket,
)

MARGIN = 2 * (RECORD_BYTES + RECORD_OVERHEAD_BYTES)
# Plain text: what a client says over TLS.
_SPOKEN = bytes(range(256)) * 8
# What OpenSSL says itself in a handshake, and alerts.
MOST_OWN_OUTPUT = 16 * 1024
MOST_ACTIONS = 60
# A record in the clear: a request to shake hands anew, an alert, and an update of keys.
_HELLO_REQUEST = bytes.fromhex("16 0303 0004 00000000")
_ALERT = bytes.fromhex("15 0303 0002 0100")
_KEY_UPDATE = bytes.fromhex("16 0303 0005 18 000001 01")
_PROXY_LIMIT = 300


@cache
def _contexts(version: ssl.TLSVersion) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Return the contexts of a client and of a server."""
    authority = trustme.CA()
    client, server = ssl.create_default_context(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.configure_trust(client)
    authority.issue_cert("localhost").configure_cert(server)
    server.sslobject_class = ServerSide
    for each in (client, server):
        each.minimum_version = each.maximum_version = version
    return client, server


class _End:
    """Side of TLS; what it has decrypted is in `heard`, what it was given to say in `spoken`."""

    def __init__(self, channel: TlsChannel) -> None:
        self.channel = channel
        self.heard = b""
        self.spoken = b""
        self.is_failed = False
        self.received = 0
        self.produced = 0

    def receive(self, octets: bytes) -> None:
        """Receive octets of the socket; a failure is the end of this side."""
        if self.is_failed or not octets:
            return
        self.received += len(octets)
        into = memoryview(bytearray(len(octets) + MARGIN))
        count, failure = 0, None
        try:
            count = self.channel.receive(memoryview(octets), into)
            while self.channel.has_rest:
                count += self.channel.receive(memoryview(b""), into[count:])
        except TlsFailed as failed:
            failure = failed
        if failure is not None:
            assert str(failure).isprintable()
            assert self.channel.phase is Phase.FAILED
            self.is_failed = True
        assert count <= self.received
        self.heard += bytes(into[:count])

    def say(self, octets: bytes) -> None:
        """Encrypt octets, if that is possible."""
        if self.channel.is_secured and not self.is_failed:
            with contextlib.suppress(TlsFailed):
                self.spoken += octets[: self.channel.encrypt(memoryview(octets))]

    def take(self) -> bytes:
        """Take the octets for the socket."""
        found = b""
        while self.channel.has_output:
            found += bytes(self.channel.take_output())
            self.channel.unsent = memoryview(b"")
        self.produced += len(found)
        return found


def tls(octets: bytes) -> None:
    """Disturb TLS between a client and a server.

    The first octet has the version and how the client begins. Then there are two octets for each
    action: what is done, and a number for it.
    """
    bits = octets[0] if octets else 0
    version = ssl.TLSVersion.TLSv1_2 if bits & 1 else ssl.TLSVersion.TLSv1_3
    contexts = _contexts(version)
    upgrade = bool(bits & 2)
    client = _End(TlsChannel(contexts[0], server_hostname="localhost", upgrade=upgrade))
    server = _End(TlsChannel(contexts[1], allows_plain=bool(bits & 4)))
    if not bits & 8:
        _pass_on(client, server)
        assert client.channel.is_secured
        assert server.channel.is_secured
    for at in range(1, min(len(octets) - 1, 2 * MOST_ACTIONS), 2):
        _act(client, server, octets[at], octets[at + 1], octets[at + 2 : at + 66])
    _pass_on(client, server)
    for end, other in ((client, server), (server, client)):
        end.channel.end()
        end.take()
        if end.channel.phase is not Phase.PLAIN:
            assert other.spoken.startswith(end.heard), "altered octets were decrypted"
        bound = MOST_OWN_OUTPUT + 2 * len(end.spoken) + end.received
        assert end.produced <= bound, "more output than input"


def _act(client: _End, server: _End, what: int, number: int, raw: bytes) -> None:
    """Take one action; the highest bit of `what` says which side acts."""
    one, other = (client, server) if what & 0x80 else (server, client)
    match what % 10:
        case 0:
            one.say(_SPOKEN[: 8 * number])
            other.receive(one.take())
        case 1:
            one.say(_SPOKEN[: 8 * number + 1])
            record = bytearray(one.take())
            if record:
                record[number * len(record) // 256] ^= 1 << number % 8
            other.receive(bytes(record))
        case 2:
            one.say(_SPOKEN[: number + 1])
            record = bytearray(one.take())
            other.receive(bytes(record))
            other.receive(bytes(record))
        case 3:
            one.say(_SPOKEN[: number + 1])
            one.take()
        case 4:
            one.say(_SPOKEN[: number + 1])
            octets = one.take()
            for part in (octets[:number], octets[number:]):
                other.receive(part)
        case 5:
            other.receive(raw[: number % 64 + 1])
        case 6:
            other.receive((_HELLO_REQUEST, _ALERT, _KEY_UPDATE, TLS_HEADER)[number % 4])
        case 7:
            one.channel.end()
            other.receive(one.take())
        case 8:
            other.receive(bytes((0x14 + number % 5, 3, 3, 0, len(raw))) + raw)
        case _:
            other.receive(one.take())


def _pass_on(client: _End, server: _End) -> None:
    for _ in range(20):
        for one, other in ((client, server), (server, client)):
            other.receive(one.take())


def first(octets: bytes) -> None:
    """Say the first octets to a server, or to a client that has asked for TLS by a header.

    The first octet has whether the server allows peers without TLS, and the size of reads.
    """
    bits, rest = (octets[0] if octets else 0), octets[1:]
    contexts = _contexts(ssl.TLSVersion.TLSv1_3)

    def side() -> _End:
        if bits & 1:
            return _End(TlsChannel(contexts[0], server_hostname="localhost", upgrade=True))
        return _End(TlsChannel(contexts[1], allows_plain=bool(bits & 2)))

    whole, parts = side(), side()
    whole.receive(rest)
    step = (bits >> 2) + 1
    for at in range(0, len(rest), step):
        parts.receive(rest[at : at + step])
    assert whole.channel.phase is parts.channel.phase, "the size of reads makes a difference"
    if whole.channel.is_plain:
        assert whole.heard == parts.heard == rest
        assert bits & 2
    else:
        assert whole.heard == parts.heard == b"", "octets without any key were decrypted"
    for end in (whole, parts):
        end.take()
        assert end.produced <= MOST_OWN_OUTPUT


# WebSockets.


class _Carried(trio.abc.Stream):
    """Stream whose peer says given octets, in pieces, and then ends."""

    def __init__(self, octets: bytes, step: int) -> None:
        self._octets = octets
        self._step = step
        self.output = 0

    def skip(self, size: int) -> None:
        """Leave out so many octets."""
        self._octets = self._octets[size:]

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Return the next octets."""
        await trio.lowlevel.checkpoint()
        size = min(self._step, max_bytes or self._step)
        found, self._octets = self._octets[:size], self._octets[size:]
        return found

    async def send_all(self, data: Any) -> None:
        """Count what is sent."""
        await trio.lowlevel.checkpoint()
        self.output += len(data)

    async def wait_send_all_might_not_block(self) -> None:
        """Return at once."""
        await trio.lowlevel.checkpoint()

    async def aclose(self) -> None:
        """Say no more."""
        self._octets = b""
        await trio.lowlevel.checkpoint()


_UPGRADE = (
    b"GET / HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
    b"Sec-WebSocket-Protocol: amqp\r\n\r\n"
)


def websocket(octets: bytes) -> None:
    """Talk to a server or a client of WebSockets.

    The first octet says whether the octets are a client's request, what follows a right one, or a
    server's answer. The second is the size of reads, and 255 means all at once.
    """
    kind, step, rest = octets[:1] or b"\0", octets[1:2] or b"\xff", octets[2:]
    stream = _Carried(rest, 1 << 20 if step[0] == 255 else step[0] + 1)
    trio.run(_talk, kind[0] % 3, stream, rest, clock=MockClock(autojump_threshold=0))
    # its answers: one for each ping, a refusal, a close
    assert stream.output <= 2 * len(rest) + 4096


async def _talk(kind: int, stream: _Carried, octets: bytes) -> None:
    limit = len(octets)
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            # the streams of these functions are those of sockets elsewhere
            given: Any = stream
            if kind == 2:
                web_socket = client_web_socket(HandshakeStream(given), "h", "/", ["amqp"])
                nursery.start_soon(web_socket.read)
                if await web_socket.opened():
                    await _listen(web_socket, limit)
            else:
                # the head of a request is read before, and a few octets behind it
                at = octets.find(b"\n\r\n")
                size = at + 3 if kind == 0 and at >= 0 else 0
                head = octets[:size] if kind == 0 else _UPGRADE
                if not head.startswith(b"GET "):
                    # the HTTP listener passes nothing else on
                    return
                behind = octets[size : size + 10]
                stream.skip(size + len(behind))
                web_socket = server_web_socket(HandshakeStream(given, head, behind))
                nursery.start_soon(web_socket.read)
                await _serve(web_socket, limit)
            assert len(web_socket.mistake) <= 2 * limit + 200
            nursery.cancel_scope.cancel()


async def _serve(web_socket: WebSocket, limit: int) -> None:
    request = await web_socket.request()
    if request is None:
        return
    origins = [value for key, value in request.headers if key == b"origin"]
    objection = origin_objection(origins, b"h", ())
    subprotocol = choose(request.proposed_subprotocols)
    if objection is not None or subprotocol is None:
        assert (objection or "x").isprintable()
        await request.reject(403, body=(objection or "").encode())
        return
    if await web_socket.accept(request, subprotocol):
        await _listen(web_socket, limit)


async def _listen(web_socket: WebSocket, limit: int) -> None:
    """Receive until the other side has said all; no more comes out than went in."""
    heard, failure = 0, None
    splitter = HeaderSplitter()
    try:
        while True:
            octets = await web_socket.receive()
            assert octets
            heard += len(octets)
            assert heard <= limit
            for message in splitter.split(octets):
                assert message
    except WebSocketClosed:
        pass
    except WebSocketFailed as failed:
        failure = failed
    if failure is not None:
        assert 1000 <= failure.code < 5000
        await web_socket.close(failure.code, failure.reason)


# Proxies.


def proxy(octets: bytes) -> None:
    """Answer as an HTTP proxy; the first octet is the size of the pieces."""
    step, answer = (octets[0] if octets else 0) + 1, octets[1:]
    trio.run(_ask, answer, step * 16, clock=MockClock(autojump_threshold=0))


async def _ask(answer: bytes, step: int) -> None:
    near, far = trio.socket.socketpair()
    with near, far:
        refusal = ""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_answer, far, answer, step)
            head = await _read_head(near)
            assert answer.startswith(head)
            assert len(head) <= MAX_HEAD_BYTES
            try:
                _check(head, "proxy:1", "host:1")
            except NotConnected as refused:
                refusal = refused.failure.reason
            assert refusal.isprintable()
            assert len(refusal) <= _PROXY_LIMIT
            if refusal:
                nursery.cancel_scope.cancel()
            else:
                # what is behind the head is the host's
                rest = b""
                while octets := await near.recv(65536):
                    rest += octets
                assert head + rest == answer


async def _answer(far: trio.socket.SocketType, answer: bytes, step: int) -> None:
    with contextlib.suppress(OSError):
        for at in range(0, len(answer), step):
            rest = answer[at : at + step]
            while rest:
                rest = rest[await far.send(rest) :]
        far.shutdown(socket.SHUT_WR)


# Seeds.


def tls_seeds() -> list[bytes]:
    """Return actions of each kind, after a handshake and within one."""
    actions = bytes(octet for what in range(10) for octet in (what, 9, what | 0x80, 200))
    return [bytes((bits,)) + actions for bits in range(16)] + [
        bytes((bits, 0, 255, what | side, 77, 0x80, 100, 0, 3))
        for bits in (0, 1, 9)
        for what in range(10)
        for side in (0, 0x80)
    ]


def first_seeds() -> list[bytes]:
    """Return first octets of TLS, of AMQP and of others."""
    context = _contexts(ssl.TLSVersion.TLSv1_2)[0]
    said = _End(TlsChannel(context, server_hostname="localhost")).take()
    # without its random octets, so that seeds are always the same
    hello = said[:11] + bytes(32) + said[43:]
    begins = (
        hello,
        hello[:1],
        TLS_HEADER,
        TLS_HEADER + hello,
        b"AMQP\x00\x01\x00\x00",
        b"AMQP\x03\x01\x00\x00",
        b"GET / HTTP/1.1\r\n\r\n",
        _ALERT,
        _KEY_UPDATE,
    )
    return [bytes((bits,)) + begin for bits in (0, 1, 2, 12, 254) for begin in begins]


def websocket_seeds() -> list[bytes]:
    """Return requests, frames of a client, and answers of a server."""
    answer = (
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Accept: x\r\nSec-WebSocket-Protocol: amqp\r\n\r\n"
    )
    frames = _frames()
    other = _UPGRADE.replace(b"amqp", b"other").replace(b"Host", b"Origin: http://x\r\nHost")
    found = [bytes((0, step)) + head for step in (0, 255) for head in (_UPGRADE, other)]
    found += [bytes((1, step)) + frame for step in (0, 3, 255) for frame in frames]
    found += [bytes((0, 255)) + _UPGRADE + frames[0]]
    refusal = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 3\r\n\r\nno\n"
    found += [bytes((2, step)) + each for step in (0, 255) for each in (answer, refusal)]
    return found


def _frame(kind: int, octets: bytes, *, is_last: bool = True) -> bytes:
    """Return a client's frame; its mask is zero, so that seeds are always the same."""
    size = len(octets)
    length = bytes((0x80 | size,)) if size < 126 else b"\xfe" + size.to_bytes(2, "big")
    return bytes((kind | 0x80 * is_last,)) + length + bytes(4) + octets


def _frames() -> list[bytes]:
    text, binary, close, ping = 1, 2, 8, 9
    header = _frame(binary, b"AMQP\x00\x01\x00\x00")
    return [
        header + _frame(ping, b"p") + _frame(close, b"\x03\xe8"),
        _frame(binary, b"a", is_last=False) + _frame(0, b"b" * 300),
        _frame(text, b"text"),
        _frame(ping, b"p" * 125) * 3,
        _frame(close, b"\x13\x87why"),
        # of no client: without a mask, of an unknown kind, too long, cut
        b"\x82\x01a",
        b"\x8f\x80aaaa",
        b"\x82\xff" + b"\xff" * 12,
        b"\x88\x81aaaaa",
    ]


def proxy_seeds() -> list[bytes]:
    """Return answers of proxies."""
    answers = (
        b"HTTP/1.1 200 Connection established\r\nvia: x\r\n\r\nAMQP\x00\x01\x00\x00",
        b"HTTP/1.0 200\r\n\r\n",
        b"HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\n\r\n",
        b"HTTP/1.1 502 " + b"x" * 200 + b"\n\n",
        b"SSH-2.0-x\r\n",
        b"HTTP/1.1 200 x\n" + b"a: b\r\n" * 3000 + b"\r\n",
        b"",
    )
    return [bytes((step,)) + each for step in (0, 255) for each in answers]
