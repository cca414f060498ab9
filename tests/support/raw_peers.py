"""Peer made of a socket and our own codec, to do what no well-behaved client does."""

from __future__ import annotations

import socket
from types import TracebackType
from typing import Any, Self

from router.amqp.framing import AMQP_HEADER, decode_frame_body, encode_frame
from router.amqp.performatives import Attach, Begin, Flow, Open, Source, Target, Transfer

# Longer than anything takes that a test waits for.
PATIENCE_S = 60.0
HEADER_BYTES = 8


class RawPeer:
    """Connection without SASL that says what it is told to, and hears what comes back."""

    def __init__(
        self, port: int, *, receive_buffer_bytes: int = 0, host: str = "127.0.0.1"
    ) -> None:
        self.socket = socket.socket()
        self.socket.bind((host, 0))
        self.socket.settimeout(PATIENCE_S)
        if receive_buffer_bytes:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        self.socket.connect(("127.0.0.1", port))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.socket.close()

    def send(self, octets: bytes) -> None:
        """Send octets as they are."""
        self.socket.sendall(octets)

    def say(self, *performatives: Any, channel: int = 0) -> None:
        """Send performatives, each in a frame of its own."""
        self.send(b"".join(encode_frame(channel, each) for each in performatives))

    def transfer(self, transfer: Transfer, payload: bytes, *, channel: int = 0) -> None:
        """Send a transfer with a payload."""
        self.send(encode_frame(channel, transfer, payload))

    def header(self, expected: bytes = AMQP_HEADER) -> None:
        """Hear the other side's protocol header."""
        assert self._exactly(HEADER_BYTES) == expected

    def hear(self) -> Any:
        """Return the next frame's performative; None for a heartbeat."""
        head = self._exactly(HEADER_BYTES)
        size = int.from_bytes(head[:4], "big")
        body = self._exactly(size - HEADER_BYTES)
        return decode_frame_body(body, 0, len(body))[0] if body else None

    def hear_until(self, kind: type | tuple[type, ...]) -> Any:
        """Hear frames until one of a kind, or of several, comes, and return it."""
        while not isinstance(found := self.hear(), kind):
            pass
        return found

    def _exactly(self, count: int) -> bytes:
        found = b""
        while len(found) < count:
            more = self.socket.recv(count - len(found))
            if not more:
                raise EOFError(f"the socket ended after {found!r}")
            found += more
        return found

    def rest(self) -> bytes:
        """Return everything until the other side closes the socket, which it has to do."""
        found = b""
        try:
            while more := self.socket.recv(65536):
                found += more
        except ConnectionResetError:
            # what we sent was not all read
            pass
        return found

    def open(self, *, channel: int = 0, **fields: Any) -> None:
        """Exchange headers and opens, and begin a session on a channel."""
        fields.setdefault("container_id", f"raw-{self.socket.getsockname()[1]}")
        self.send(AMQP_HEADER)
        self.say(Open(**fields))
        begin = Begin(next_outgoing_id=0, incoming_window=2**31 - 1, outgoing_window=2**31 - 1)
        self.say(begin, channel=channel)
        assert self._exactly(HEADER_BYTES) == AMQP_HEADER
        self.hear_until(Open)
        self.hear_until(Begin)

    def attach_receiver(self, address: str, credit: int, *, channel: int = 0) -> None:
        """Attach a receiver with handle 0 and give it credit."""
        self.say(
            Attach(
                name="receiver",
                handle=0,
                role=True,
                source=Source(address=address),
                target=Target(),
            ),
            Flow(
                next_incoming_id=0,
                incoming_window=2**31 - 1,
                next_outgoing_id=0,
                outgoing_window=2**31 - 1,
                handle=0,
                delivery_count=0,
                link_credit=credit,
            ),
            channel=channel,
        )
        self.hear_until(Attach)

    def attach_sender(self, address: str, *, channel: int = 0, handle: int = 0) -> None:
        """Attach a sender and wait for credit."""
        self.say(
            Attach(
                name=f"sender-{handle}",
                handle=handle,
                role=False,
                source=Source(),
                target=Target(address=address),
                initial_delivery_count=0,
            ),
            channel=channel,
        )
        self.hear_until(Attach)
        while not self.hear_until(Flow).link_credit:
            pass
