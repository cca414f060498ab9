"""Accept crowds of connections quickly, and begin to serve them host by host.

The backlog of a listening socket is a single queue: a new connection waits until all earlier ones
have been accepted. Accepting is cheap, so all connections in the backlog are accepted at once. They
then wait in one queue per host, and the queues take turns to have a connection served. If too many
connections wait, the oldest connections in the longest queue are closed before any task is started
for them (docs/decisions/0083-room-for-probes.md). Connections of failing hosts have queues of their
own, and begin with low priority.
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

import structlog
import trio

from router.fairness import HostFairQueue, counted_host
from router.net.accepting import (
    GONE,
    SHORTAGES,
    WARN_EVERY_S,
    Handler,
    Shortage,
    direct_socket,
    handle,
)
from router.net.low_priority import CROWD, LowPriorityTurns

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
# The queue in which the connections of failing hosts wait for low priority.
QUEUE: Final = "HTTP"


async def accept_fairly(
    name: str,
    sockets: Iterable[trio.SocketListener],
    low_priority: LowPriorityTurns,
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
    arrivals = WaitingConnections(name, low_priority, most, refusal)
    shortage = Shortage(name)
    try:
        async with trio.open_nursery() as accepting:
            for each in sockets:
                accepting.start_soon(_accept, each, arrivals, shortage)
            accepting.start_soon(_begin, arrivals, handler, connections, room)
            accepting.start_soon(_begin_slowly, arrivals, handler, connections, room)
    finally:
        arrivals.close()


class WaitingConnections:
    """Accepted connections that are not served yet, in one queue per host."""

    def __init__(
        self, name: str, low_priority: LowPriorityTurns, most: int, refusal: bytes
    ) -> None:
        self.is_rush = False
        self._name = name
        self._low_priority = low_priority
        self._most = most
        self._refusal = refusal
        self._waiting: HostFairQueue[socket.socket] = HostFairQueue()
        # those of failing hosts
        self._slow: HostFairQueue[socket.socket] = HostFairQueue()
        self._some = trio.Event()
        self._some_slow = trio.Event()
        self._warned_at = float("-inf")

    def __len__(self) -> int:
        return len(self._waiting) + len(self._slow)

    def add(self, host: str, accepted: socket.socket) -> None:
        """Add a connection; if too many wait, refuse the oldest one from the host with the most.

        Of a slowed host, at most `CROWD` connections wait; the oldest are closed without an answer.
        """
        if self._low_priority.is_slowed(host):
            self._slow.add(host, accepted)
            self._some_slow.set()
            if self._slow.count(host) > CROWD:
                self._oldest(self._slow, host).close()
        else:
            self._waiting.add(host, accepted)
            self._some.set()
        if len(self) > self._most:
            crowd = self._slow or self._waiting
            self._refuse(self._oldest(crowd, crowd.largest()))

    async def wait_until_any(self) -> None:
        """Wait until at least one connection waits to be served."""
        if not self._waiting:
            self._some = trio.Event()
            await self._some.wait()

    async def wait_for_slow_turn(self) -> None:
        """Wait until a connection of a failing host waits, and may be served."""
        while True:
            if not self._slow:
                self._some_slow = trio.Event()
                await self._some_slow.wait()
            await self._low_priority.step(self._slow.next_host(), queue=QUEUE)
            if self._slow:
                return

    def next(self) -> socket.socket | None:
        """Remove and return the connection whose turn it is; return None if none is waiting."""
        return self._waiting.next()

    def next_slow(self) -> socket.socket | None:
        """Do as `next` does, with the connections of failing hosts."""
        return self._slow.next()

    def close(self) -> None:
        """Close all waiting connections."""
        while (accepted := self.next() or self.next_slow()) is not None:
            accepted.close()

    @staticmethod
    def _oldest(queue: HostFairQueue[socket.socket], host: str) -> socket.socket:
        """Remove and return the oldest connection of a host."""
        oldest = queue.oldest(host)
        queue.discard(host, oldest)
        return oldest

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
        with direct_socket(listener) as direct:
            while True:
                await trio.lowlevel.wait_readable(listener.socket)
                number = _accept_some(direct, arrivals)
                if number:
                    await shortage.wait(number)


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
            if error.errno not in GONE:
                raise
        else:
            arrivals.add(counted_host(address[0]), accepted)
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
            _begin_one(accepted, handler, connections)


async def _begin_slowly(
    arrivals: WaitingConnections, handler: Handler, connections: trio.Nursery, room: Room
) -> None:
    while True:
        await arrivals.wait_for_slow_turn()
        await room()
        accepted = arrivals.next_slow()
        if accepted is not None:
            _begin_one(accepted, handler, connections)


def _begin_one(accepted: socket.socket, handler: Handler, connections: trio.Nursery) -> None:
    stream = trio.SocketStream(trio.socket.from_stdlib_socket(accepted))
    connections.start_soon(handle, stream, handler)
