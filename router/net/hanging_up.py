"""Notice that a peer has closed its side of a socket while nothing is read from it."""

from __future__ import annotations

import select
import socket
from typing import Final

import trio

# While unread octets keep the socket readable, it is polled at this interval.
INTERVAL_S: Final = 0.25
# only Linux has POLLRDHUP; elsewhere only the loss of a connection is noticed
_GONE: Final = getattr(select, "POLLRDHUP", 0) | select.POLLHUP | select.POLLERR


async def until_hung_up(sock: socket.socket) -> None:
    """Wait until the peer has closed its side, or is lost, or this side closes the socket.

    Meanwhile no other task may wait for the socket to be readable.
    """
    while sock.fileno() >= 0:
        try:
            await trio.lowlevel.wait_readable(sock)
        except trio.ClosedResourceError:
            return
        if is_hung_up(sock):
            return
        await trio.sleep(INTERVAL_S)


def is_hung_up(sock: socket.socket) -> bool:
    """Return whether the peer has closed its side, or is lost."""
    asked = select.poll()
    asked.register(sock, getattr(select, "POLLRDHUP", 0))
    return any(events & _GONE for _, events in asked.poll(0))
