"""Set-up for tests of connectors: a router with a connector, and a server for it."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest
import trio
from structlog.typing import EventDict

from router.amqp.constants import SaslCode
from router.amqp.framing import AMQP_HEADER
from router.amqp.performatives import Close, Error, Open, SaslInit
from router.amqp.redirects import Redirect
from router.amqp.types import Symbol
from router.config.connectors import ConnectorSettings
from router.config.model import Configuration
from router.net import connectors

from support.loopback import Peer

HERE = "127.0.0.1"


def connecting(port: int, **fields: Any) -> Configuration:
    """Return a configuration with one connector."""
    return Configuration(connectors=(ConnectorSettings(port=port, name="out", **fields),))


async def open_as_server(peer: Peer, code: SaslCode = SaslCode.OK) -> str:
    """Let the router in by SASL and answer its open; return its SASL response."""
    init = await peer.authenticate("PLAIN", "ANONYMOUS", code=code)
    if code is SaslCode.OK:
        assert await peer.octets(8) == AMQP_HEADER
        await peer.hear(Open)
        await peer.say(AMQP_HEADER, Open("broker"))
    return bytes(init.initial_response or b"").decode()


class Server:
    """Server on its own port, which the router may connect to or not."""

    def __init__(self, listener: socket.socket) -> None:
        self.listener = listener
        self.host: str = listener.getsockname()[0]
        self.port: int = listener.getsockname()[1]

    def at(self, host: str = HERE, name: str = "there") -> Redirect:
        """Return its place as a redirect."""
        return Redirect(name, host, self.port)

    @asynccontextmanager
    async def visited(self) -> AsyncIterator[Peer]:
        """Accept the router's connection, and keep it until the end of the block."""
        await trio.lowlevel.wait_readable(self.listener)
        sock, _ = self.listener.accept()
        sock.setblocking(False)
        async with trio.SocketStream(trio.socket.from_stdlib_socket(sock)) as stream:
            yield Peer(stream)

    def is_untouched(self) -> bool:
        """Return whether nobody has tried to connect since."""
        try:
            self.listener.accept()[0].close()
        except BlockingIOError:
            return True
        return False


@contextmanager
def places(count: int, *more: str) -> Iterator[list[Server]]:
    """Servers that run until the block ends; `more` are the addresses of further ones."""
    hosts = [HERE] * count + list(more)
    listeners = [socket.create_server((host, 0)) for host in hosts]
    for listener in listeners:
        listener.setblocking(False)
    try:
        yield [Server(listener) for listener in listeners]
    finally:
        for listener in listeners:
            listener.close()


async def meet(peer: Peer, **fields: Any) -> tuple[SaslInit, Open]:
    """Let the router in; return its SASL response and its open. `fields` are of our open."""
    init = await peer.authenticate("PLAIN", "ANONYMOUS")
    assert await peer.octets(8) == AMQP_HEADER
    opened = await peer.hear(Open)
    await peer.say(AMQP_HEADER, Open("broker", **fields))
    return init, opened


async def leave(peer: Peer, to: Redirect | None, condition: str = "connection") -> None:
    """Close, with a redirect or none."""
    error = None
    if to is not None:
        error = Error(Symbol(f"amqp:{condition}:redirect"), "not here", to.info())
    await peer.say(Close(error=error))
    await peer.hear_until(Close)


def of(logs: list[EventDict], event: str) -> list[EventDict]:
    """Return the log lines of one event."""
    return [line for line in logs if line["event"] == event]


class Waits:
    """Record of the waits that the connector asked for, in place of waiting."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[float] = []

        async def wait(seconds: float) -> None:
            self.asked.append(seconds)
            await trio.lowlevel.checkpoint()

        class Trio:
            def __getattr__(self, name: str) -> Any:
                return wait if name == "sleep" else getattr(trio, name)

        monkeypatch.setattr(connectors, "trio", Trio())
