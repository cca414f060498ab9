"""Streams with TLS of Trio, for HTTP and WebSockets: connections for AMQP have `TlsSocket`."""

from __future__ import annotations

from typing import Final, cast

import trio

# Octets received at once below TLS. Many changes of keys fit into more, and take long.
SECURED_BYTES: Final = 8 * 1024


class _StreamBelowTls:
    """Connected stream that receives a few records at a time; it has what `trio.SSLStream` uses.

    A record that changes the keys costs as much as a kilobyte of data, but has 27 octets. Whatever
    a peer sends, other tasks run after a few hundred of them.
    """

    def __init__(self, stream: trio.SocketStream) -> None:
        self.socket = stream.socket
        self._receive = stream.receive_some
        self.send_all = stream.send_all
        self.wait_send_all_might_not_block = stream.wait_send_all_might_not_block
        self.aclose = stream.aclose

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Return the next octets."""
        return await self._receive(min(SECURED_BYTES, max_bytes or SECURED_BYTES))


def stream_below_tls(stream: trio.SocketStream) -> trio.SocketStream:
    """Return a stream for TLS that receives a few records at a time."""
    return cast(trio.SocketStream, _StreamBelowTls(stream))
