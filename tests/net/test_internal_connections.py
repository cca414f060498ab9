"""The router's connection with itself is served like any other, and counted among none."""

from __future__ import annotations

import attrs
import trio
from structlog.testing import capture_logs

from router.amqp.message import AmqpValue, Message
from router.amqp.types import Symbol
from router.client.connection import connect_over
from router.config.model import Configuration
from router.core.deliveries.router_annotations import CONNECTION
from router.net.internal_connections import internal_connection
from router.net.listeners import run_guarded
from router.net.router_hub import RouterHub
from router.node import Node

HELLO = Message(body=(AmqpValue("hello"),))


def own_number(hub: RouterHub) -> int | None:
    """Return the number of the router's own connection, or None if it has ended."""
    return None if hub.own_pump is None else hub.own_pump.number


async def test_it_carries_messages_and_is_no_connection_of_the_router_s() -> None:
    hub = Node(Configuration()).hub
    pump, sock = internal_connection(hub, "solo")
    assert own_number(hub) == 0
    assert hub.pumps == {}
    with capture_logs() as logs:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run_guarded, pump)
            async with connect_over(sock, "part") as connection:
                receiver = await connection.open_receiver("q")
                sender = await connection.open_sender("q")
                nursery.start_soon(sender.send, HELLO)
                received = await receiver.receive()
                # beside what was sent stands by which connection it came
                shown = {Symbol(CONNECTION): 0}
                assert received.message == attrs.evolve(HELLO, message_annotations=shown)
                received.accept()
                await sender.wait_until_settled()
    assert own_number(hub) is None
    # nobody has to read of it in the log
    assert logs == []


async def test_it_needs_no_heartbeats(autojump_clock: trio.testing.MockClock) -> None:
    hub = Node(Configuration()).hub
    pump, sock = internal_connection(hub, "solo")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(run_guarded, pump)
        async with connect_over(sock, "part") as connection:
            await trio.lowlevel.checkpoint()
            assert pump.connection.remote_idle_s == 0
            assert not connection.is_over


async def test_other_connections_leave_it_alone() -> None:
    hub = Node(Configuration()).hub
    pump, sock = internal_connection(hub, "solo")
    hub.leave(1)
    assert own_number(hub) == 0
    hub.leave(0)
    assert own_number(hub) is None
    pump.sock.close()
    sock.close()
