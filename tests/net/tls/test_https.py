"""Metrics and health over HTTPS, and clients that do not get there."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from router.config.listeners import ListenerSettings
from router.config.model import Configuration
from router.metrics import http

from support.certificates import Authority
from support.loopback import Running, running_node

GET = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    """Return an authority."""
    return Authority(tmp_path)


def serving(authority: Authority, **fields: object) -> Configuration:
    """Return a configuration with one listener for HTTPS."""
    listener = ListenerSettings(port=0, http=True, ssl_profile="tls", **fields)  # type: ignore[arg-type]
    return Configuration(ssl_profiles=(authority.profile(),), listeners=(listener,))


@asynccontextmanager
async def secured(
    running: Running, authority: Authority, certificate: Path | None = None
) -> AsyncIterator[trio.SSLStream[trio.SocketStream]]:
    """Yield a connection with TLS to the first listener."""
    context = ssl.create_default_context(cafile=str(authority.ca_file))
    if certificate is not None:
        context.load_cert_chain(certificate)
    async with await trio.open_tcp_stream(*running.address) as stream:
        yield trio.SSLStream(stream, context, server_hostname="localhost", https_compatible=True)


async def answer(stream: trio.abc.Stream) -> bytes:
    """Ask for /healthz and return the answer, or nothing if the connection ends before it."""
    found = b""
    try:
        await stream.send_all(GET)
        while b"\r\n\r\n" not in found:
            more = await stream.receive_some()
            if not more:
                break
            found += more
    except trio.BrokenResourceError:
        return b""
    return found


async def test_health_is_served(authority: Authority) -> None:
    async with (
        running_node(serving(authority)) as running,
        secured(running, authority) as stream,
    ):
        assert (await answer(stream)).startswith(b"HTTP/1.1 200")


async def test_a_client_may_have_to_show_a_certificate(authority: Authority) -> None:
    async with running_node(serving(authority, client_certificate="required")) as running:
        async with secured(running, authority) as stream:
            assert await answer(stream) == b""
        certificate = authority.issue("a@example.org")
        async with secured(running, authority, certificate) as stream:
            assert (await answer(stream)).startswith(b"HTTP/1.1 200")


async def test_http_without_tls_is_told_to_use_it(authority: Authority) -> None:
    async with running_node(serving(authority)) as running:
        async with await trio.open_tcp_stream(*running.address) as stream:
            assert (await answer(stream)).startswith(b"HTTP/1.1 400")
        async with secured(running, authority) as stream:
            assert (await answer(stream)).startswith(b"HTTP/1.1 200")


async def test_silent_clients_keep_nobody_out(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clients that stop in the middle of a handshake make room for others."""
    monkeypatch.setattr(http, "MAX_WAITING", 4)
    async with running_node(serving(authority)) as running:
        silent = [await trio.open_tcp_stream(*running.address) for _ in range(6)]
        for stream in silent:
            # the beginning of a record that never ends
            await stream.send_all(b"\x16\x03\x01\x02\x00\x01")
        async with secured(running, authority) as secure:
            assert (await answer(secure)).startswith(b"HTTP/1.1 200")
        for stream in silent:
            await trio.aclose_forcefully(stream)
