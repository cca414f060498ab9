"""Router in the test's own process, and peers that talk to it over loopback, frame by frame.

    async with running_node() as running:
        async with dialled(running.address) as peer:
            await peer.begin()
            await peer.attach_receiver("q", credit=1)

Nothing waits for the clock: a peer waits for the frame that it must hear, and `until` for a
condition. All that a peer hears comes within PATIENCE_S of trio's clock, or the test fails.
"""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import attrs
import trio

from router.amqp.framing import AMQP_HEADER
from router.amqp.performatives import Attach, Begin, Flow, Open, Transfer
from router.config.listeners import ListenerSettings
from router.config.model import Configuration
from router.net.endpoint_names import endpoint_name
from router.net.router_pump import RouterPump
from router.node import Node

from support.scripted_server import ServerPeer
from support.transcripts import On, attach_receiver, attach_sender, message_format

PATIENCE_S = 30.0
WIDE = 2**31 - 1


@attrs.define
class Running:
    """Router that runs until the block ends or `stop` is set."""

    node: Node
    addresses: list[tuple[str, int]]
    stop: trio.Event
    over: trio.Event
    _turned: trio.Event = attrs.field(factory=trio.Event, init=False)

    def __attrs_post_init__(self) -> None:
        hub = self.node.hub
        finish_turn = hub.finish_turn

        def finish_and_tell() -> None:
            finish_turn()
            self._turned.set()

        # whatever changes in a router changes in a turn
        hub.finish_turn = finish_and_tell  # type: ignore[method-assign]

    @property
    def address(self) -> tuple[str, int]:
        """Return the address of its first listener."""
        return self.addresses[0]

    @property
    def pumps(self) -> list[RouterPump]:
        """Return its connections, in the order they were made."""
        return list(self.node.hub.pumps.values())

    async def pump_of(self, peer: Peer) -> RouterPump:
        """Wait for the router's end of a peer's connection, and return its pump."""
        host, port = peer.stream.socket.getsockname()[:2]
        name = endpoint_name(host, port)
        await self.until(lambda: name in [pump.connection.name for pump in self.pumps])
        return next(pump for pump in self.pumps if pump.connection.name == name)

    async def until(self, is_true: Callable[[], object]) -> None:
        """Let the router go on until something is true of it; looked at after each turn."""
        while not is_true():
            self._turned = trio.Event()
            await self._turned.wait()

    async def until_empty(self) -> None:
        """Let the router go on until it has no connection left."""
        await self.until(lambda: not self.pumps)


def listening(**fields: Any) -> Configuration:
    """Return a configuration with one listener on a free port."""
    return Configuration(listeners=(ListenerSettings(**{"port": 0, **fields}),))


@asynccontextmanager
async def running_node(
    configuration: Configuration | None = None, *, survives_defects: bool = False
) -> AsyncIterator[Running]:
    """Run a router until the block ends; then it has no connection left.

    Unless it `survives_defects`, an exception in its own work ends it, and fails the test.
    """
    node = Node(listening() if configuration is None else configuration)
    node.hub.survives_defects = survives_defects
    stop, over = trio.Event(), trio.Event()
    running = Running(node, [], stop, over)
    async with trio.open_nursery() as nursery:

        async def run(task_status: trio.TaskStatus[Any]) -> None:
            await node.run(stop, task_status)
            over.set()

        bound = await nursery.start(run)
        running.addresses.extend(address for each in bound for address in each.addresses)
        with trio.fail_after(PATIENCE_S):
            yield running
        nursery.cancel_scope.cancel()
    assert node.hub.pumps == {}


class Peer(ServerPeer):
    """Client of the router; everything is on channel 0."""

    @property
    def raw(self) -> socket.socket:
        """Return the socket, for what trio does not expose."""
        sock: socket.socket = self.stream.socket._sock  # type: ignore[attr-defined]
        return sock

    async def begin(self, **fields: Any) -> Open:
        """Open the connection without SASL and begin a session; return the router's open.

        The container-id is this peer's own, unless another is given.
        """
        fields.setdefault("container_id", f"peer-{self.raw.getsockname()[1]}")
        begin = Begin(next_outgoing_id=0, incoming_window=WIDE, outgoing_window=WIDE)
        await self.say(AMQP_HEADER, Open(**fields), begin)
        assert await self.octets(8) == AMQP_HEADER
        opened = await self.hear(Open)
        await self.hear(Begin)
        return opened

    async def attach_sender(self, address: str, handle: int = 0) -> None:
        """Attach a sender and wait for credit."""
        await self.say(attach_sender(handle, address))
        await self.hear_until(Attach)
        while not (await self.hear_until(Flow)).link_credit:
            pass

    async def attach_receiver(self, address: str, credit: int = 0, handle: int = 1) -> None:
        """Attach a receiver, and give it credit."""
        await self.say(attach_receiver(handle, address))
        await self.hear_until(Attach)
        if credit:
            await self.grant(credit, handle=handle)

    async def allow(self, frames: int, received: int = 0) -> None:
        """Let the router send so many more frames, after those received."""
        await self.say(
            Flow(
                next_incoming_id=received,
                incoming_window=frames,
                next_outgoing_id=0,
                outgoing_window=WIDE,
            )
        )

    async def transfer(self, number: int, payload: bytes = b"x", **fields: Any) -> None:
        """Send a delivery."""
        every: dict[str, Any] = {"delivery_tag": b"%d" % number}
        every["message_format"] = message_format(payload)
        await self.say(On(0, Transfer(0, delivery_id=number, **{**every, **fields}), payload))

    async def rest(self) -> bytes:
        """Return all octets until the router closes its side; a reset fails the test."""
        found, self._unread = self._unread, b""
        while more := await self.stream.receive_some():
            found += more
        return found

    def reset(self) -> None:
        """Close the socket so that the router gets a reset."""
        linger = (1).to_bytes(4, "little") + bytes(4)
        self.raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.stream.socket.close()


@asynccontextmanager
async def dialled(
    address: tuple[str, int], *, receive_buffer_bytes: int = 0, host: str | None = None
) -> AsyncIterator[Peer]:
    """Yield a connected peer, from `host` if that is given; close it at the end of the block."""
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    sock = trio.socket.socket(family)
    with sock:
        if receive_buffer_bytes:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        if host is not None:
            await sock.bind((host, 0))
        await sock.connect(address)
        yield Peer(trio.SocketStream(sock))
