"""TLS on real sockets: what blocks, what is flushed, and sockets that fail."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from router.config.ssl_profiles import SslProfileSettings
from router.net.tls.channel import TlsChannel, TlsFailed
from router.net.tls.contexts import client_context, server_context
from router.net.tls.tls_socket import TlsSocket

from support.certificates import Authority

Pair = tuple[TlsSocket, TlsSocket, socket.socket, socket.socket]


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    """Yield TLS on both ends of a connection, client first, and the two sockets."""
    authority = Authority(tmp_path)
    trusting = SslProfileSettings(name="client", ca_cert_file=authority.ca_file)
    one, other = socket.socketpair()
    with one, other:
        one.setblocking(False)
        other.setblocking(False)
        client = TlsChannel(client_context(trusting, True), server_hostname="localhost")
        server = TlsChannel(server_context(authority.profile()))
        yield TlsSocket(one, client), TlsSocket(other, server), one, other


def received(end: TlsSocket) -> bytes:
    """Return what an end receives now, or nothing if it would have to wait."""
    buffer = memoryview(bytearray(2**18))
    try:
        return bytes(buffer[: end.recv_into(buffer)])
    except BlockingIOError:
        return b""


def agree(pair: Pair) -> None:
    """Complete the handshake."""
    client, server, *_ = pair
    while not (client.channel.is_secured and server.channel.is_secured):
        for end in (client, server):
            end.flush()
            received(end)
            end.flush()
    received(client)


def test_octets_pass(pair: Pair) -> None:
    agree(pair)
    client, server, *_ = pair
    assert client.send(memoryview(b"hello")) == 5
    assert received(server) == b"hello"
    assert server.send(memoryview(b"hello, too")) == 10
    assert received(client) == b"hello, too"


def test_nothing_is_there_yet(pair: Pair) -> None:
    agree(pair)
    with pytest.raises(BlockingIOError):
        pair[0].recv_into(memoryview(bytearray(2**18)))


def test_a_full_socket_loses_nothing(pair: Pair) -> None:
    agree(pair)
    client, server, *_ = pair
    data = bytes(range(256)) * 2**15
    rest, heard = memoryview(data), b""
    blocked = 0
    while rest or client.channel.has_output:
        try:
            rest = rest[client.send(rest) :] if rest else rest
            client.flush()
        except BlockingIOError:
            blocked += 1
            while more := received(server):
                heard += more
    while more := received(server):
        heard += more
    assert blocked
    assert heard == data


def test_a_peer_is_told_why_it_is_refused(pair: Pair) -> None:
    _, server, plain, _ = pair
    plain.send(b"GET / HTTP/1.1\r\n\r\n")
    with pytest.raises(TlsFailed, match="the peer began with b'GET"):
        server.recv_into(memoryview(bytearray(2**18)))
    # before it, the client's own beginning of a handshake was never sent
    assert plain.recv(100) == b"AMQP\x02\x01\x00\x00"


def test_the_end_of_a_stream_is_zero_octets(pair: Pair) -> None:
    agree(pair)
    client, server, *_ = pair
    client.end()
    assert server.recv_into(memoryview(bytearray(2**18))) == 0


def test_an_end_without_a_word_is_zero_octets_too(pair: Pair) -> None:
    agree(pair)
    _, server, one, _ = pair
    one.close()
    assert server.recv_into(memoryview(bytearray(2**18))) == 0


def test_output_for_a_socket_that_failed_is_discarded(pair: Pair) -> None:
    agree(pair)
    client, _, _, other = pair
    other.close()
    assert client.send(memoryview(b"hello")) == 5
    assert client.flush()
    assert not client.channel.has_output
