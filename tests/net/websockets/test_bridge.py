"""The bridge between a pump and a WebSocket; test_server.py shows what clients see of it."""

from __future__ import annotations

import pytest
import trio
from wsproto.events import CloseConnection

from router.config.listeners import ListenerSettings
from router.config.model import Configuration
from router.errors import AmqpError
from router.net.websockets import bridge
from router.net.websockets.bridge import socket_pair

from support.loopback import running_node
from support.web_sockets import OPENING, opened

PEER_OPEN = b"\x00\x53\x10"
WEB = Configuration(listeners=(ListenerSettings(port=0, http=True, websockets=True),))


async def test_the_socket_of_a_pump_does_not_block() -> None:
    near, far = socket_pair()
    async with far:
        with near:
            assert not near.getblocking()
            near.send(b"x")
            assert await far.receive_some() == b"x"
            with pytest.raises(BlockingIOError):
                near.recv(1)
        assert await far.receive_some() == b""


async def test_a_pump_that_gives_up_closes_the_web_socket() -> None:
    async with running_node(WEB) as running, opened(running.address) as peer:
        await peer.send(OPENING)
        await peer.hear(PEER_OPEN)
        (pump,) = running.pumps
        pump.give_up(AmqpError("amqp:connection:forced", "enough"))
        await peer.until_closed()
        await running.until_empty()


async def test_a_failure_of_the_pump_ends_its_web_socket_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with running_node(WEB) as running, opened(running.address) as peer:
        await peer.send(OPENING)
        await peer.hear(PEER_OPEN)
        (pump,) = running.pumps

        def fail() -> None:
            raise ZeroDivisionError

        monkeypatch.setattr(pump.connection, "owner", pump)
        pump._guarded(fail)
        await peer.until_closed()
        async with opened(running.address) as other:
            await other.send(OPENING)
            await other.hear(PEER_OPEN)


async def test_a_client_that_does_not_answer_the_close_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bridge, "CLOSE_S", 0.1)
    async with running_node(WEB) as running, opened(running.address) as peer:
        await peer.send(OPENING)
        await peer.hear(PEER_OPEN)
        running.stop.set()
        # it neither reads nor closes
        await running.over.wait()


async def test_a_client_may_close_while_much_is_to_be_sent() -> None:
    async with running_node(WEB) as running, opened(running.address) as peer:
        await peer.send(OPENING)
        await peer.hear(PEER_OPEN)
        await peer.say(CloseConnection(1001, "gone"))
        assert await peer.until_closed() == 1001
        await running.until_empty()
        assert isinstance(peer.stream, trio.SocketStream)
