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
# Makes room where descriptors are short, if it can.
Relieve = Callable[[], None]

# What accept says when descriptors or memory are short, of the process or of the system.
SHORTAGES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS})
# How long accepting pauses then. Who connects meanwhile waits in the backlog of the socket.
PAUSE_S = 0.1
# How often it is said while it lasts.
WARN_EVERY_S = 10.0
# Of the descriptors that the process may have, who leaves some to others leaves one of so many, and
# no more than this.
RESERVED_PART = 8
MOST_RESERVED = 2048


async def accept_connections(
    name: str,
    sockets: Iterable[trio.SocketListener],
    handler: Handler,
    connections: trio.Nursery,
    relieve: Relieve | None = None,
) -> None:
    """Accept until cancelled, on all sockets of the listener `name`, and then close them.

    Each connection is handled by a task of its own in `connections`, and closed after.

    With `relieve` some descriptors are left to others; it is called where no more than these are
    free, and may end connections.
    """
    shortage = Shortage(name)
    async with trio.open_nursery() as accepting:
        for each in sockets:
            accepting.start_soon(_accept, each, handler, connections, shortage, relieve)


class Shortage:
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
    listener: trio.SocketListener,
    handler: Handler,
    connections: trio.Nursery,
    shortage: Shortage,
    relieve: Relieve | None,
) -> None:
    async with listener:
        while True:
            while relieve is not None and _is_reserved(listener):
                relieve()
                await shortage.wait(errno.EMFILE)
            try:
                stream = await listener.accept()
            except OSError as error:
                if error.errno not in SHORTAGES:
                    raise
                await shortage.wait(error.errno)
            else:
                connections.start_soon(handle, stream, handler)


def _is_reserved(listener: trio.SocketListener) -> bool:
    """Whether the next descriptor of the process is one of those that are left to others."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if allowed == resource.RLIM_INFINITY:
        return False
    try:
        # always the lowest one that is free
        following = os.dup(listener.socket.fileno())
    except OSError:
        return True
    os.close(following)
    return following >= allowed - min(MOST_RESERVED, allowed // RESERVED_PART)


async def handle(stream: trio.SocketStream, handler: Handler) -> None:
    """Serve an accepted connection, and close it after."""
    try:
        await handler(stream)
    finally:
        await trio.aclose_forcefully(stream)
