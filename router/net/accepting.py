"""Accept connections on a listener's sockets, even when descriptors or memory run short."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Awaitable, Callable, Iterable

import structlog
import trio

log = structlog.get_logger("router.listener")

Handler = Callable[[trio.SocketStream], Awaitable[object]]
# Function that waits until a connection may be accepted.
Turn = Callable[[], Awaitable[None]]
# Function that frees descriptors, if it can, when few are left.
Relieve = Callable[[], None]

# Errors of accept when the process or the system is short of descriptors or memory.
SHORTAGES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS})
# How long accepting pauses after such an error. New connections wait in the socket's backlog
# meanwhile.
PAUSE_S = 0.1
# How often a lasting shortage is logged.
WARN_EVERY_S = 10.0
# With `relieve`, one in this many descriptors of the process is reserved, and at most this many in
# all.
RESERVED_PART = 8
MOST_RESERVED = 2048


async def accept_connections(
    name: str,
    sockets: Iterable[trio.SocketListener],
    handler: Handler,
    connections: trio.Nursery,
    relieve: Relieve | None = None,
    wait_for_turn: Turn | None = None,
) -> None:
    """Accept on all sockets of the listener `name` until cancelled, then close the sockets.

    Each connection is handled by its own task in `connections`, and closed afterwards.

    If `relieve` is given, some file descriptors are reserved for other uses. When only these are
    free, `relieve` is called, which may end connections. If `wait_for_turn` is given, it is awaited
    before each connection is accepted.
    """
    shortage = Shortage(name)
    async with trio.open_nursery() as accepting:
        for each in sockets:
            accepting.start_soon(
                _accept, each, handler, connections, shortage, relieve, wait_for_turn
            )


class Shortage:
    """Shortage of descriptors or memory at a listener, which then pauses accepting."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._said_at = float("-inf")

    async def wait(self, number: int) -> None:
        """Pause accepting after the error `number`; log it at most once in `WARN_EVERY_S`."""
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
    wait_for_turn: Turn | None,
) -> None:
    async with listener:
        while True:
            while relieve is not None and are_descriptors_short(listener.socket.fileno()):
                relieve()
                await shortage.wait(errno.EMFILE)
            if wait_for_turn is not None:
                await trio.lowlevel.wait_readable(listener.socket)
                await wait_for_turn()
            try:
                stream = await listener.accept()
            except OSError as error:
                if error.errno not in SHORTAGES:
                    raise
                await shortage.wait(error.errno)
            else:
                connections.start_soon(handle, stream, handler)


def are_descriptors_short(descriptor: int) -> bool:
    """Return whether all file descriptors that are still free are reserved.

    `descriptor` is any open descriptor; it is duplicated to find the lowest free one.
    """
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if allowed == resource.RLIM_INFINITY:
        return False
    try:
        # the system always returns the lowest free descriptor
        following = os.dup(descriptor)
    except OSError:
        return True
    os.close(following)
    return following >= allowed - min(MOST_RESERVED, allowed // RESERVED_PART)


async def handle(stream: trio.SocketStream, handler: Handler) -> None:
    """Call `handler` with an accepted connection, and close the connection afterwards."""
    try:
        await handler(stream)
    finally:
        await trio.aclose_forcefully(stream)
