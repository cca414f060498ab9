"""A byte relay on Trio: the floor that the benchmark compares routers with.

It forwards bytes between two sockets without looking at them, in the cheapest way this field's
tools allow: reads of 256 KiB straight from the socket into one buffer, the send tried at once, and
waiting only where the other side is full. Every connection that comes in is joined to one that
goes out, so it has as many connections as a router between the same peers.

    python relay.py LISTEN_PORT TARGET_PORT
"""

from __future__ import annotations

import socket
import sys

import trio

READ_BYTES = 256 * 1024
HOST = "127.0.0.1"


async def pump(source: socket.socket, sink: socket.socket, buffer: memoryview) -> None:
    """Forward from source to sink until source ends; nothing is read while sink is full.

    All pumps share `buffer`. A pump that finds its sink full takes a copy of what is left.
    """
    while True:
        await trio.lowlevel.wait_readable(source)
        try:
            size = source.recv_into(buffer)
        except BlockingIOError:
            continue
        if size == 0:
            sink.shutdown(socket.SHUT_WR)
            return
        try:
            sent = sink.send(buffer[:size])
        except BlockingIOError:
            sent = 0
        if sent < size:
            await send_rest(sink, bytes(buffer[sent:size]))


async def send_rest(sink: socket.socket, data: bytes) -> None:
    """Send what a full socket did not take."""
    rest = memoryview(data)
    while rest:
        await trio.lowlevel.wait_writable(sink)
        try:
            rest = rest[sink.send(rest) :]
        except BlockingIOError:
            continue


async def join(incoming: socket.socket, target_port: int, buffer: memoryview) -> None:
    """Connect to the target and forward both ways until both ways have ended."""
    with incoming:
        try:
            stream = await trio.open_tcp_stream(HOST, target_port)
        except OSError:
            return  # nobody is there yet: the peer is hung up on
        # A plain socket on the same descriptor: trio's own adds a checkpoint to each call.
        with socket.socket(fileno=stream.socket.detach()) as outgoing:
            for end in (incoming, outgoing):
                end.setblocking(False)
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            try:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(pump, incoming, outgoing, buffer)
                    nursery.start_soon(pump, outgoing, incoming, buffer)
            except* OSError:
                pass  # one peer went away without a word: the other is hung up on


async def serve(listen_port: int, target_port: int) -> None:
    """Accept for ever."""
    buffer = memoryview(bytearray(READ_BYTES))
    with socket.create_server((HOST, listen_port), backlog=128) as listener:
        listener.setblocking(False)
        async with trio.open_nursery() as nursery:
            while True:
                await trio.lowlevel.wait_readable(listener)
                incoming, _ = listener.accept()
                nursery.start_soon(join, incoming, target_port, buffer)


if __name__ == "__main__":
    trio.run(serve, int(sys.argv[1]), int(sys.argv[2]))
