"""Accept crowds of connections quickly, and begin to serve them host by host.

The backlog of a listening socket is a single queue: a new connection waits until all earlier ones
have been accepted. Accepting is cheap, so all connections in the backlog are accepted at once. They
then wait in one queue per host, and the queues take turns to have a connection served. If too many
connections wait, the oldest connections in the longest queue are closed before any task is started
for them (docs/decisions/0083-room-for-probes.md).
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

import structlog
import trio

from router.fairness import HostFairQueue
from router.net.accepting import SHORTAGES, WARN_EVERY_S, Handler, Shortage, handle

log = structlog.get_logger("router.listener")

# Function that waits until connections may be served, and returns their number.
Room = Callable[[], Awaitable[int]]

# How many connections are accepted in one round of the loop, which takes some milliseconds, and how
# many begin to be served in one round. Each of these costs as much as accepting dozens.
ACCEPTED_AT_ONCE: Final = 256
BEGUN_AT_ONCE: Final = 8
# Fewer begin while the backlog may still hold connections, such as that of a probe.
BEGUN_IN_A_RUSH: Final = 4
# Octets of a request that are read before closing. Closing with unread octets resets the
# connection, and the client would lose the response.
_READ_BYTES: Final = 16 * 1024
# Errors of accept for connections that ended before they were accepted.
_GONE: Final = frozenset({errno.ECONNABORTED, errno.EPERM, errno.EPROTO, errno.EINTR})


async def accept_fairly(
    name: str,
    sockets: Iterable[trio.SocketListener],
    handler: Handler,
    connections: trio.Nursery,
    room: Room,
    most: int,
    refusal: bytes,
) -> None:
    """Accept on all sockets of the listener `name` until cancelled, then close the sockets.

    Accepted connections wait to be served: `room` blocks until some may be, and returns how many.
    Each connection is handled by its own task in `connections`, and closed afterwards. At most
    `most` connections wait. Excess connections are sent `refusal`, as far as that is possible
    without waiting, and closed.
    """
    arrivals = WaitingConnections(name, most, refusal)
    shortage = Shortage(name)
    try:
        async with trio.open_nursery() as accepting:
            for each in sockets:
                accepting.start_soon(_accept, each, arrivals, shortage)
            accepting.start_soon(_begin, arrivals, handler, connections, room)
    finally:
        arrivals.close()


class WaitingConnections:
    """Accepted connections that are not served yet, in one queue per host."""

    def __init__(self, name: str, most: int, refusal: bytes) -> None:
        self.is_rush = False
        self._name = name
        self._most = most
        self._refusal = refusal
        self._waiting: HostFairQueue[socket.socket] = HostFairQueue()
        self._some = trio.Event()
        self._warned_at = float("-inf")

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, host: str, accepted: socket.socket) -> None:
        """Add a connection; if too many wait, refuse the oldest one from the host with the most."""
        self._waiting.add(host, accepted)
        self._some.set()
        if len(self._waiting) > self._most:
            largest = self._waiting.largest()
            oldest = self._waiting.oldest(largest)
            self._waiting.discard(largest, oldest)
            self._refuse(oldest)

    async def wait_until_any(self) -> None:
        """Wait until at least one connection waits to be served."""
        if not self._waiting:
            self._some = trio.Event()
            await self._some.wait()

    def next(self) -> socket.socket | None:
        """Remove and return the connection whose turn it is; return None if none is waiting."""
        return self._waiting.next()

    def close(self) -> None:
        """Close all waiting connections."""
        while (accepted := self.next()) is not None:
            accepted.close()

    def _refuse(self, accepted: socket.socket) -> None:
        """Send the refusal and close the connection, without waiting for anything."""
        try:
            accepted.recv(_READ_BYTES, socket.MSG_DONTWAIT)
        except OSError:
            # no request has arrived yet
            pass
        try:
            accepted.send(self._refusal, socket.MSG_DONTWAIT)
        except OSError:
            # the client is gone
            pass
        accepted.close()
        now = trio.current_time()
        if now - self._warned_at >= WARN_EVERY_S:
            self._warned_at = now
            log.warning("too many connections at once", listener=self._name)


async def _accept(
    listener: trio.SocketListener, arrivals: WaitingConnections, shortage: Shortage
) -> None:
    async with listener:
        # Trio's accept takes one connection per round of the loop; this is the same descriptor
        direct = socket.socket(fileno=listener.socket.fileno())
        try:
            direct.setblocking(False)
            while True:
                await trio.lowlevel.wait_readable(listener.socket)
                number = _accept_some(direct, arrivals)
                if number:
                    await shortage.wait(number)
        finally:
            direct.detach()


def _accept_some(listener: socket.socket, arrivals: WaitingConnections) -> int:
    """Accept connections from the backlog, up to `ACCEPTED_AT_ONCE`.

    Return the errno if descriptors or memory are short, otherwise 0.
    """
    arrivals.is_rush = True
    for _ in range(ACCEPTED_AT_ONCE):
        try:
            accepted, address = listener.accept()
        except BlockingIOError:
            arrivals.is_rush = False
            return 0
        except OSError as error:
            if error.errno in SHORTAGES:
                arrivals.is_rush = False
                return error.errno
            if error.errno not in _GONE:
                raise
        else:
            arrivals.add(address[0], accepted)
    return 0


async def _begin(
    arrivals: WaitingConnections, handler: Handler, connections: trio.Nursery, room: Room
) -> None:
    while True:
        await arrivals.wait_until_any()
        # let tasks that were started earlier begin: tasks begin in the next round, in any order
        for _ in range(2):
            await trio.lowlevel.checkpoint()
        count = min(BEGUN_IN_A_RUSH if arrivals.is_rush else BEGUN_AT_ONCE, await room())
        for _ in range(count):
            accepted = arrivals.next()
            if accepted is None:
                break
            stream = trio.SocketStream(trio.socket.from_stdlib_socket(accepted))
            connections.start_soon(handle, stream, handler)
