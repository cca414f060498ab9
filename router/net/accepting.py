"""Accept connections on a listener's sockets, even when descriptors or memory run short."""

from __future__ import annotations

import errno
import os
import resource
import socket
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager

import structlog
import trio

from router.fairness import counted_host
from router.net.low_priority import LowPriorityTurns

log = structlog.get_logger("router.listener")

Handler = Callable[[trio.SocketStream], Awaitable[object]]
# Function that frees descriptors, if it can, when few are left.
Relieve = Callable[[], None]

# Errors of accept when the process or the system is short of descriptors or memory.
SHORTAGES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS})
# Errors of accept for connections that ended before they were accepted (accept(2)).
GONE = frozenset(
    {
        errno.ECONNABORTED,
        errno.EINTR,
        errno.EPERM,
        errno.EPROTO,
        errno.ENETDOWN,
        errno.ENETUNREACH,
        errno.ENOPROTOOPT,
        errno.EHOSTDOWN,
        errno.EHOSTUNREACH,
        errno.EOPNOTSUPP,
    }
)
# How many connections of crowded hosts are closed at once, and how long accepting pauses when there
# are no more.
CLOSED_AT_ONCE = 4
CROWD_PAUSE_S = 0.004
# How long accepting pauses after such an error as in SHORTAGES. New connections wait in the backlog
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
    low_priority: LowPriorityTurns | None = None,
) -> None:
    """Accept on all sockets of the listener `name` until cancelled, then close the sockets.

    Each connection is handled by its own task in `connections`, and closed afterwards.

    If `relieve` is given, some file descriptors are reserved for other uses. When only these are
    free, `relieve` is called, which may end connections. With `low_priority`, each connection waits
    for its turn to be accepted, and connections of crowded hosts are closed.
    """
    shortage = Shortage(name)
    async with trio.open_nursery() as accepting:
        for each in sockets:
            accepting.start_soon(
                _accept, each, handler, connections, shortage, relieve, low_priority
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
    low_priority: LowPriorityTurns | None,
) -> None:
    async with listener:
        with direct_socket(listener) as direct:
            while True:
                while relieve is not None and are_descriptors_short(direct.fileno()):
                    relieve()
                    await shortage.wait(errno.EMFILE)
                await trio.lowlevel.wait_readable(listener.socket)
                if low_priority is not None:
                    await low_priority.accept()
                try:
                    accepted, closed = _accept_next(direct, low_priority)
                except OSError as error:
                    if error.errno not in SHORTAGES:
                        raise
                    await shortage.wait(error.errno)
                    continue
                if accepted is not None:
                    stream = trio.SocketStream(trio.socket.from_stdlib_socket(accepted))
                    connections.start_soon(handle, stream, handler)
                elif 0 < closed < CLOSED_AT_ONCE:
                    await trio.sleep(CROWD_PAUSE_S)


def _accept_next(
    listener: socket.socket, low_priority: LowPriorityTurns | None
) -> tuple[socket.socket | None, int]:
    """Accept a connection; before that, close connections of crowded hosts.

    Return the connection, if there is one, and how many have been closed.
    """
    closed = 0
    while closed < CLOSED_AT_ONCE:
        try:
            accepted, address = listener.accept()
        except OSError as error:
            if isinstance(error, BlockingIOError) or error.errno in GONE:
                break
            raise
        if low_priority is None or not low_priority.is_crowded(counted_host(address[0])):
            return accepted, closed
        accepted.close()
        closed += 1
    return None, closed


@contextmanager
def direct_socket(listener: trio.SocketListener) -> Iterator[socket.socket]:
    """Yield the listener's socket without Trio, which would accept once per round of the loop."""
    direct = socket.socket(fileno=listener.socket.fileno())
    try:
        direct.setblocking(False)
        yield direct
    finally:
        direct.detach()


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
