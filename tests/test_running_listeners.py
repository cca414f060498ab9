"""Sockets that a new listener takes over from an ending one."""

from __future__ import annotations

import trio

from router.config.listeners import ListenerSettings
from router.config.model import Configuration
from router.running_listeners import handed_over, port_of

from support.loopback import Running, running_node

WEB = ListenerSettings(port=0, name="web", http=True, websockets=True)


async def sockets_for(running: Running, wanted: ListenerSettings) -> list[trio.SocketListener]:
    """Return the sockets that a new listener gets from those that run."""
    found = handed_over(wanted, list(running.node.endpoints.listeners.values())) or []
    for each in found:
        each.socket.close()
    return found


async def test_sockets_are_handed_over_at_the_same_place() -> None:
    async with running_node(Configuration(listeners=(WEB,))) as running:
        (standing,) = running.node.endpoints.listeners.values()
        assert standing.listening.addresses == (running.address,)
        assert port_of(standing.sockets[0]) == running.address[1]
        assert len(await sockets_for(running, WEB)) == 1
        assert await sockets_for(running, ListenerSettings(port=0, name="other")) == []
        assert await sockets_for(running, ListenerSettings(port=1, name="web")) == []


async def test_amqp_is_served_over_tcp_or_web_sockets() -> None:
    listeners = (
        ListenerSettings(port=0, name="tcp"),
        WEB,
        ListenerSettings(port=0, name="http", http=True),
    )
    async with running_node(Configuration(listeners=listeners)) as running:
        standing = running.node.endpoints.listeners
        assert standing["tcp"].amqp is standing["tcp"].server
        assert standing["web"].amqp is standing["web"].web_sockets is not None
        assert standing["http"].amqp is None
