"""Accept crowds of connections quickly, and begin to serve them host by host.

The backlog of a listening socket is one queue: who connects last waits until all before have been
accepted. So whatever waits there is accepted at once, which costs little, and waits here by host.
Hosts take turns to have connections served. Where too many wait, the oldest of the host with most
make room, before any task is started for them (docs/decisions/0083-room-for-probes.md).
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

import structlog
import trio

from router.fairness import Crowd
from router.net.accepting import SHORTAGES, WARN_EVERY_S, Handler, Shortage, handle

log = structlog.get_logger("router.listener")

# Waits until connections may be served, and says how many.
Room = Callable[[], Awaitable[int]]

# So many connections are accepted in one round of the loop, which takes some milliseconds, and so
# many begin to be served, each of which takes as long as dozens that are accepted.
ACCEPTED_AT_ONCE: Final = 256
BEGUN_AT_ONCE: Final = 8
# While the backlog may have more, and a probe among them, fewer begin.
BEGUN_IN_A_RUSH: Final = 4
# As much of a request is read as may have come, so that closing does not reset the connection,
# which would take the answer away.
_READ_BYTES: Final = 16 * 1024
# What accept says of connections that were gone before they were accepted.
_GONE: Final = frozenset({errno.ECONNABORTED, errno.EPERM, errno.EPROTO, errno.EINTR})


async def accept_in_turns(
    name: str,
    sockets: Iterable[trio.SocketListener],
    handler: Handler,
    connections: trio.Nursery,
    room: Room,
    most: int,
    refusal: bytes,
) -> None:
    """Accept until cancelled, on all sockets of the listener `name`, and then close them.

    Each connection is handled by a task of its own in `connections`, and closed after, as soon as
    `room` says that there is some. Up to `most` wait for that. Where there are more, some are sent
    `refusal` as far as that can be done without waiting, and closed.
    """
    arrivals = Arrivals(name, most, refusal)
    shortage = Shortage(name)
    try:
        async with trio.open_nursery() as accepting:
            for each in sockets:
                accepting.start_soon(_accept, each, arrivals, shortage)
            accepting.start_soon(_begin, arrivals, handler, connections, room)
    finally:
        arrivals.close()


class Arrivals:
    """The connections that have been accepted and are not served yet, by host."""

    def __init__(self, name: str, most: int, refusal: bytes) -> None:
        self.is_rush = False
        self._name = name
        self._most = most
        self._refusal = refusal
        self._waiting: Crowd[socket.socket] = Crowd()
        self._some = trio.Event()
        self._warned_at = float("-inf")

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, host: str, accepted: socket.socket) -> None:
        """Let a connection wait; where too many do, the oldest of the host with most makes room."""
        self._waiting.add(host, accepted)
        self._some.set()
        if len(self._waiting) > self._most:
            largest = self._waiting.largest()
            oldest = self._waiting.oldest(largest)
            self._waiting.discard(largest, oldest)
            self._refuse(oldest)

    async def some(self) -> None:
        """Wait until a connection waits."""
        if not self._waiting:
            self._some = trio.Event()
            await self._some.wait()

    def next(self) -> socket.socket | None:
        """Take out the connection whose turn it is, or return None."""
        return self._waiting.next(lambda _: True)

    def close(self) -> None:
        """Close whatever waits."""
        while (accepted := self.next()) is not None:
            accepted.close()

    def _refuse(self, accepted: socket.socket) -> None:
        """Say that there is no room and close, without waiting for anything."""
        try:
            accepted.recv(_READ_BYTES, socket.MSG_DONTWAIT)
        except OSError:
            # no request has come yet
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


async def _accept(listener: trio.SocketListener, arrivals: Arrivals, shortage: Shortage) -> None:
    async with listener:
        # trio's own accepts one in a round of the loop; this is the same descriptor
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


def _accept_some(listener: socket.socket, arrivals: Arrivals) -> int:
    """Accept what is in the backlog, as far as one round goes; return the errno of a shortage, or 0
    where there is none.
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
    arrivals: Arrivals, handler: Handler, connections: trio.Nursery, room: Room
) -> None:
    while True:
        await arrivals.some()
        # those who were begun before take their room: tasks begin in the next round, in any order
        for _ in range(2):
            await trio.lowlevel.checkpoint()
        count = min(BEGUN_IN_A_RUSH if arrivals.is_rush else BEGUN_AT_ONCE, await room())
        for _ in range(count):
            accepted = arrivals.next()
            if accepted is None:
                break
            stream = trio.SocketStream(trio.socket.from_stdlib_socket(accepted))
            connections.start_soon(handle, stream, handler)
