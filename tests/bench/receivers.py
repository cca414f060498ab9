"""Many receivers, each of an address of its own: ``python tests/bench/receivers.py PORT COUNT``.

It writes their frames and reads no more than it must, so that what takes time is the router. Says
on a line of its output when all are attached, and stays until its input ends.
"""

from __future__ import annotations

import selectors
import socket
import struct
import sys
from functools import cache
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from router.amqp.framing import AMQP_HEADER, encode_frame
from router.amqp.performatives import Attach, Begin, Flow, Open, Source, Target

# So many on one connection, and so many attaches under way on it.
LINKS = 5_000
AT_ONCE = 500
WINDOW = 2**31 - 1
# An empty frame, for a peer that would take silence for an end (section 2.4.5).
BEAT = bytes((0, 0, 0, 8, 2, 0, 0, 0))
BEAT_S = 3.0
ATTACH = 0x12
NUMBER = b"######"


class Receivers:
    """Those of one connection."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.attached = 0
        self._kept = b""
        begin = Begin(
            next_outgoing_id=0,
            incoming_window=WINDOW,
            outgoing_window=WINDOW,
            handle_max=LINKS,
        )
        self._say(AMQP_HEADER + encode_frame(0, Open("receivers")) + encode_frame(0, begin))

    def _say(self, octets: bytes) -> None:
        self.socket.sendall(octets)

    def attach(self, first: int, last: int) -> None:
        """Attach receivers of `address.NNNNNN` for some numbers, each with one credit."""
        for start in range(first, last, AT_ONCE):
            end = min(start + AT_ONCE, last)
            wanted = self.attached + end - start
            self._say(b"".join(_frames(number, number - first) for number in range(start, end)))
            while self.attached < wanted:
                self.read()

    def read(self) -> None:
        """Take what has come, and count the attaches in it."""
        octets = self.socket.recv(262_144)
        if not octets:
            raise ConnectionError("the router has closed the connection")
        octets, at = self._kept + octets, 0
        while len(octets) - at >= 8:
            if octets.startswith(b"AMQP", at):
                at += 8
                continue
            (size,) = struct.unpack_from(">I", octets, at)
            if len(octets) - at < size:
                break
            if size > 10 and octets[at + 10] == ATTACH:
                self.attached += 1
            at += size
        self._kept = octets[at:]

    def beat(self) -> None:
        """Say that it is there."""
        self._say(BEAT)


def _frames(number: int, handle: int) -> bytes:
    return _template(handle).replace(NUMBER, b"%06d" % number)


@cache
def _template(handle: int) -> bytes:
    """Return frames of a handle with a placeholder: only the receiver's number differs."""
    text = NUMBER.decode()
    attach = Attach(
        name=f"receiver.{text}",
        handle=handle,
        role=True,
        source=Source(address=f"address.{text}"),
        target=Target(),
    )
    flow = Flow(
        next_incoming_id=0,
        incoming_window=WINDOW,
        next_outgoing_id=0,
        outgoing_window=WINDOW,
        handle=handle,
        delivery_count=0,
        link_credit=1,
    )
    return encode_frame(0, attach) + encode_frame(0, flow)


def main(port: int, count: int) -> None:
    """Attach them, and hold them until the input ends."""
    waiting = selectors.DefaultSelector()
    waiting.register(sys.stdin, selectors.EVENT_READ)
    all_of_them = []
    for first in range(0, count, LINKS):
        some = Receivers(port)
        some.attach(first, min(first + LINKS, count))
        waiting.register(some.socket, selectors.EVENT_READ, some)
        all_of_them.append(some)
        for each in all_of_them:
            each.beat()
    print(sum(each.attached for each in all_of_them), flush=True)
    while True:
        for key, _ in waiting.select(BEAT_S):
            if key.data is None:
                return
            key.data.read()
        for each in all_of_them:
            each.beat()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
