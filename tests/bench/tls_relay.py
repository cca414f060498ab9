"""A byte relay with TLS on Trio: the floor that the benchmark compares routers with TLS with.

It forwards bytes between two connections with TLS by means of `trio.SSLStream`, which is what a
program on Trio would use. Like `relay.py`, it joins every connection that comes in to one that goes
out.

    python tls_relay.py LISTEN_PORT TARGET_PORT CERTIFICATE
"""

from __future__ import annotations

import ssl
import sys
from functools import partial

import trio

READ_BYTES = 256 * 1024
HOST = "127.0.0.1"

Stream = trio.SSLStream[trio.SocketStream]


async def pump(source: Stream, sink: Stream) -> None:
    """Forward from source to sink until source ends."""
    while data := await source.receive_some(READ_BYTES):
        await sink.send_all(data)
    await sink.transport_stream.send_eof()


async def join(
    target_port: int, server: ssl.SSLContext, client: ssl.SSLContext, raw: trio.SocketStream
) -> None:
    """Connect to the target and forward both ways until both ways have ended."""
    target = await trio.open_tcp_stream(HOST, target_port)
    incoming = trio.SSLStream(raw, server, server_side=True, https_compatible=True)
    outgoing = trio.SSLStream(target, client, server_hostname=HOST, https_compatible=True)
    try:
        async with raw, target, trio.open_nursery() as nursery:
            nursery.start_soon(pump, incoming, outgoing)
            nursery.start_soon(pump, outgoing, incoming)
    except* (OSError, trio.BrokenResourceError, trio.ClosedResourceError):
        pass  # one peer went away without a word: the other is hung up on


async def serve(listen_port: int, target_port: int, certificate: str) -> None:
    """Accept for ever."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate)
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.verify_mode = ssl.CERT_NONE
    await trio.serve_tcp(partial(join, target_port, server, client), listen_port, host=HOST)


if __name__ == "__main__":
    trio.run(serve, int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
