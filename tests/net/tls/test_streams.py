"""Streams with TLS for HTTP and WebSockets: how much they receive at once."""

from __future__ import annotations

import trio

from router.net.tls.streams import SECURED_BYTES, stream_below_tls


async def test_few_records_are_received_at_once_below_tls() -> None:
    one, other = trio.socket.socketpair()
    async with trio.SocketStream(one) as near, trio.SocketStream(other) as far:
        await far.send_all(bytes(2 * SECURED_BYTES))
        below = stream_below_tls(near)
        assert len(await below.receive_some()) == SECURED_BYTES
        assert len(await below.receive_some(10)) == 10
        await below.send_all(b"x")
        assert await far.receive_some() == b"x"
