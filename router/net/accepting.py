"""Accepting connections for as long as a listener lives, also when there is nothing left to do it
with.
"""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Awaitable, Callable, Iterable

import structlog
import trio

log = structlog.get_logger("router.listener")

Handler = Callable[[trio.SocketStream], Awaitable[object]]

# What accept says when descriptors or memory are short, of the process or of the system.
SHORTAGES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS})
# How long accepting pauses then. Who connects meanwhile waits in the backlog of the socket.
PAUSE_S = 0.1
# How often it is said while it lasts.
WARN_EVERY_S = 10.0


async def accept_connections(
    name: str,
    sockets: Iterable[trio.SocketListener],
    handler: Handler,
    connections: trio.Nursery,
) -> None:
    """Accept until cancelled, on all sockets of the listener `name`, and then close them.

    Each connection is handled by a task of its own in `connections`, and closed after.
    """
    shortage = _Shortage(name)
    async with trio.open_nursery() as accepting:
        for socket in sockets:
            accepting.start_soon(_accept, socket, handler, connections, shortage)


class _Shortage:
    """What keeps a listener from accepting, said now and then."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._said_at = float("-inf")

    async def wait(self, number: int) -> None:
        """Pause, for the reason with this errno."""
        now = trio.current_time()
        if now - self._said_at >= WARN_EVERY_S:
            self._said_at = now
            facts: dict[str, object] = {"listener": self._name, "reason": os.strerror(number)}
            if number == errno.EMFILE:
                facts["descriptors_allowed"], _ = resource.getrlimit(resource.RLIMIT_NOFILE)
            log.warning("cannot accept connections", **facts)
        await trio.sleep(PAUSE_S)


async def _accept(
    socket: trio.SocketListener, handler: Handler, connections: trio.Nursery, shortage: _Shortage
) -> None:
    async with socket:
        while True:
            try:
                stream = await socket.accept()
            except OSError as error:
                if error.errno not in SHORTAGES:
                    raise
                await shortage.wait(error.errno)
            else:
                connections.start_soon(_handle, stream, handler)


async def _handle(stream: trio.SocketStream, handler: Handler) -> None:
    try:
        await handler(stream)
    finally:
        await trio.aclose_forcefully(stream)
